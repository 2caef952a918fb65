import { readFile, readdir } from 'node:fs/promises';
import path from 'node:path';
import { describe, expect, it } from 'vitest';
import { projectRoot } from '../support/command-line.js';

const text = await readFile(path.join(projectRoot, 'docs', 'editors.md'), 'utf8');
const files = (await readdir(path.join(projectRoot, 'schemas'))).filter((name) => name.endsWith('.json'));
const named = new Set(
  [...text.matchAll(/[`/]([a-z-]+(?:\.schema)?\.json)\b/g)].map(([, name]) => name as string),
);

describe('docs/editors.md', () => {
  it('names every schema', () => {
    expect(files.filter((name) => !named.has(name))).toEqual([]);
  });

  it('names no schema that is not there', () => {
    const others = new Set(['settings.json']);
    expect([...named].filter((name) => !files.includes(name) && !others.has(name))).toEqual([]);
  });

  it('has settings that an editor can read', () => {
    const [, settings = ''] = /```json\n([^]*?)```/.exec(text) ?? [];
    const { 'yaml.schemas': schemas } = JSON.parse(settings) as { 'yaml.schemas': Record<string, string> };
    const table = [...text.matchAll(/^\| `(\S+\.json)` \|/gm)].map(([, name]) => name);
    expect(Object.keys(schemas).map((name) => path.basename(name))).toEqual(table);
  });
});
