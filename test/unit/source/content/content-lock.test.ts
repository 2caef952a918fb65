import { readFile, readdir } from 'node:fs/promises';
import path from 'node:path';
import { Ajv } from 'ajv';
import { describe, expect, it } from 'vitest';
import type { Pin } from '../../../../src/source/content/content.js';
import {
  encodeContentLock,
  openContentLock,
  parseContentLock,
} from '../../../../src/source/content/content-lock.js';
import { failureOf } from '../../../support/connect.js';
import { directoryWith } from '../../../support/temporary.js';

const content = `sha256:${'a'.repeat(64)}`;
const pins: Pin[] = [
  {
    name: 'quay.io/ns/a:v1',
    type: 'image',
    ref: `quay.io/ns/a@${content}`,
    content,
    source: 'image quay.io/ns/a:v1',
  },
  { name: 'b <&>', type: 'directory', ref: `directory@${content}`, content, source: 'directory' },
];
const schemaFile = path.resolve(import.meta.dirname, '../../../../schemas/bundle-lock.schema.json');
const matches = new Ajv().compile(JSON.parse(await readFile(schemaFile, 'utf8')) as object);

describe('source/content-lock', () => {
  it('writes what it reads, as the schema says, whole or not at all', async () => {
    const directory = await directoryWith();
    const file = path.join(directory, 'bundle.lock');
    const missing = await openContentLock({ lock: file });
    expect(missing.pins).toBeUndefined();
    await missing.write(pins);
    const existing = await openContentLock({ lock: file });
    expect(existing.pins).toEqual(pins);
    await existing.write([]);
    expect(matches(JSON.parse(await readFile(file, 'utf8')))).toBe(true);
    expect(encodeContentLock(pins)).toBe(await readFile(file, 'utf8'));
    const updated = await openContentLock({ lock: file, updateLock: true });
    expect(updated.pins).toBeUndefined();
    await updated.write([]);
    expect((await openContentLock({ lock: file })).pins).toEqual([]);
    expect(await readdir(directory)).toEqual(['bundle.lock']);
  });

  it('needs a file to update', async () => {
    await expect(openContentLock({ updateLock: true })).rejects.toMatchObject({ code: 'USAGE' });
    await (await openContentLock({})).write(pins);
  });

  function expectFault(text: string, problem: string): void {
    const fault = expect.objectContaining({ problem, file: 'l.json', line: 1 }) as Error;
    expect(() => parseContentLock(text, 'l.json')).toThrow(fault);
  }

  it.each([
    ['[]', 'expected an object, got a list'],
    ['{"kind":"other","version":1,"sources":[]}', 'kind: expected opmate.bundle.lock, got "other"'],
    ['{"kind":"opmate.bundle.lock","version":2,"sources":[]}', 'version: unsupported value 2'],
    ['{"kind":"opmate.bundle.lock","version":1,"sources":{}}', 'sources: expected a list, got an object'],
    ['{"kind":"opmate.bundle.lock","version":1,"sources":[],"more":1}', 'more: unknown field'],
  ])('refuses %s', (text, problem) => {
    expectFault(text, problem);
    expect(matches(JSON.parse(text))).toBe(false);
  });

  it('names the line of what is no JSON, and what to do', () => {
    const hint = 'specify a bundle lock, or update the file with options.updateLock';
    for (const [text, line] of [
      ['', 1],
      ['{\n"kind": }', 2],
    ] as const) {
      const place = { code: 'SYNTAX', subject: `l.json:${line}`, file: 'l.json', line, hint };
      expect(() => parseContentLock(text, 'l.json')).toThrow(expect.objectContaining(place) as Error);
    }
    expect(() => parseContentLock('[]', 'l.json')).toThrow(expect.objectContaining({ hint }) as Error);
  });

  it.each([
    [{ name: '' }, 'sources[0].name: missing'],
    [{ type: 'upload' }, 'sources[0].type: unsupported value "upload"'],
    [{ content: 'sha256:1' }, 'sources[0].content: invalid digest "sha256:1"'],
    [{ ref: 1 }, 'sources[0].ref: expected a string, got the number 1'],
    [{ source: undefined }, 'sources[0].source: missing'],
    [{ extra: 1 }, 'sources[0].extra: unknown field'],
    [{ roots: [] }, 'sources[0].roots: expected a list of directories'],
    [{ roots: ['manifests', 1] }, 'sources[0].roots[1]: expected a string, got the number 1'],
  ])('refuses a source with %o', (change, problem) => {
    const value = { kind: 'opmate.bundle.lock', version: 1, sources: [{ ...pins[0], ...change }] };
    expectFault(JSON.stringify(value), problem);
    expect(matches(JSON.parse(JSON.stringify(value)))).toBe(false);
  });

  it('keeps which part of a source was read', () => {
    const [first] = pins as [Pin];
    const text = encodeContentLock([{ ...first, roots: ['manifests', 'metadata'] }]);
    expect(matches(JSON.parse(text))).toBe(true);
    expect(parseContentLock(text, 'l.json')[0]?.roots).toEqual(['manifests', 'metadata']);
  });

  it('refuses two of one name, and what is no file', async () => {
    const [first] = pins;
    const value = { kind: 'opmate.bundle.lock', version: 1, sources: [first, first] };
    expect(() => parseContentLock(JSON.stringify(value), 'l.json')).toThrow(
      'sources[1].name: duplicate "quay.io/ns/a:v1"',
    );
    const directory = await directoryWith();
    const lock = await openContentLock({ lock: directory, updateLock: true });
    expect((await failureOf(lock.write(pins))).message).toContain('is a directory');
  });
});
