import { render } from 'preact';
import { App } from './app.js';
import { takeToken } from './edit/post.js';
import { showPrintableText } from './printable-text.js';

showPrintableText();
takeToken();
const root = document.getElementById('page');
if (root !== null) render(<App />, root);
