// Writes the man pages of the compiled command tree to dist/man, and the summaries that help shows; part of the build.
import { mkdir, readFile, rm, writeFile } from 'node:fs/promises';
import { commandSummaries } from '../dist/cli/command/command-summaries.js';
import { manPages } from '../dist/cli/man-pages.js';

const { version } = JSON.parse(await readFile(new URL('../package.json', import.meta.url), 'utf8'));
const directory = new URL('../dist/man/', import.meta.url);
await rm(directory, { recursive: true, force: true });
await mkdir(directory, { recursive: true });
for (const [name, text] of await manPages(version)) await writeFile(new URL(name, directory), text);
const summaries = `${JSON.stringify(await commandSummaries(), null, 2)}\n`;
await writeFile(new URL('../dist/command-summaries.json', import.meta.url), summaries);
