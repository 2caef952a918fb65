import { render } from 'preact';
import { App } from './app.js';
import { showPrintableText } from './printable-text.js';

showPrintableText();
const root = document.getElementById('page');
if (root !== null) render(<App />, root);
