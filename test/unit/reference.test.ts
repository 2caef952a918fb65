import { readFileSync, readdirSync } from 'node:fs';
import path from 'node:path';
import { expect, it } from 'vitest';
import { referencePages } from '../../src/cli/reference.js';

const script = new URL('../../bin/api-page.js', import.meta.url).href;
const { apiPage } = (await import(script)) as { apiPage: (root: string) => string };
const root = path.resolve(import.meta.dirname, '../..');
const directory = path.join(root, 'docs', 'reference');

it('has a current page for every command and for the library: else run npm run reference', async () => {
  const pages = new Map([...(await referencePages()), ['api.md', apiPage(root)]]);
  expect(readdirSync(directory).sort()).toEqual([...pages.keys()].sort());
  const stale = [...pages].filter(
    ([name, text]) => readFileSync(path.join(directory, name), 'utf8') !== text,
  );
  expect(stale.map(([name]) => name)).toEqual([]);
});

it('documents every verb of the library', () => {
  const [, verbs = ''] = apiPage(root).split(/^## /m).slice(0, 2);
  const undocumented = verbs
    .split(/^### /m)
    .slice(1)
    .filter((text) => /^\w+\n\n```/.test(text));
  expect(undocumented).toEqual([]);
});
