// Writes docs/reference: commands from their declarations, and the library from the doc comments of its exports.
// Run it with `npm run reference` after a build; test/unit/reference.test.ts fails where a page is not current.
import { mkdirSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { fileURLToPath } from 'node:url';
import { referencePages } from '../dist/cli/reference.js';
import { apiPage } from './api-page.js';

const root = path.dirname(path.dirname(fileURLToPath(import.meta.url)));
const directory = path.join(root, 'docs', 'reference');
mkdirSync(directory, { recursive: true });
const pages = new Map([...(await referencePages()), ['api.md', apiPage(root)]]);
for (const name of readdirSync(directory)) if (!pages.has(name)) rmSync(path.join(directory, name));
for (const [name, text] of pages) writeFileSync(path.join(directory, name), text);
