// Writes the man pages of the compiled command tree to dist/man; part of the build.
import { mkdir, readFile, rm, writeFile } from 'node:fs/promises';
import { manPages } from '../dist/cli/man-pages.js';

const { version } = JSON.parse(await readFile(new URL('../package.json', import.meta.url), 'utf8'));
const directory = new URL('../dist/man/', import.meta.url);
await rm(directory, { recursive: true, force: true });
await mkdir(directory, { recursive: true });
for (const [name, text] of await manPages(version)) await writeFile(new URL(name, directory), text);
