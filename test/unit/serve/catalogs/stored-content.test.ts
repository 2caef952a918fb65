import { createHash } from 'node:crypto';
import { appendFile, mkdir, readFile, readdir, rm, truncate, utimes, writeFile } from 'node:fs/promises';
import path from 'node:path';
import { text } from 'node:stream/consumers';
import fc from 'fast-check';
import { describe, expect, it, onTestFinished } from 'vitest';
import { type Catalog, DirectoryCatalog } from '../../../../src/catalog/catalog.js';
import type { Meta } from '../../../../src/catalog/meta.js';
import type { JsonObject } from '../../../../src/document/json.js';
import * as store from '../../../../src/serve/catalogs/content-store.js';
import type { StoreOptions, StoredContent } from '../../../../src/serve/catalogs/stored-content.js';
import { deadName, foreignName } from '../../../support/dead-process.js';
import { streamContent } from '../../../support/stream-content.js';
import { directoryWith } from '../../../support/temporary.js';

/** Does the same, and closes the content at the end of the test. */
function closing<A extends unknown[], C extends StoredContent | undefined>(make: (...args: A) => Promise<C>) {
  return async (...args: A): Promise<C> => {
    const content = await make(...args);
    if (content !== undefined) onTestFinished(() => content.close());
    return content;
  };
}

const { pruneContents } = store;
const openContent = closing(store.openContent);
const storeContent = closing(store.storeContent);

const now = () => new Date('2026-03-04T05:06:07.800Z');
const hour = 60 * 60 * 1000;

function collectWarnings() {
  const warnings: string[] = [];
  const log = (level: string, message: string): void => {
    if (level === 'warn') warnings.push(message);
  };
  return { warnings, logger: { log, progress: () => undefined } };
}

async function storeFiles(
  files: Record<string, string>,
  options: Partial<StoreOptions> = {},
): Promise<StoredContent> {
  const catalog = new DirectoryCatalog(await directoryWith(files), 'catalog');
  return storeContent(catalog, { now, ...options });
}

/** A catalog of these blobs that can be read once at most. */
function catalogOf(values: readonly JsonObject[]): Catalog {
  let reads = 0;
  const unused = () => Promise.reject(new Error('not read again'));
  return {
    name: 'made up',
    async *metas() {
      if (++reads > 1) throw new Error('read twice');
      for (const value of values) {
        const { schema = '', package: packageName = '', name = '' } = value as Record<string, string>;
        const origin = { file: 'f', offset: 0, length: 0, syntax: 'json' } as const;
        yield await Promise.resolve({ schema, package: packageName, name, value, origin } satisfies Meta);
      }
    },
    read: unused,
    readText: unused,
    lineOf: unused,
    close: () => Promise.resolve(),
  };
}

const unreadable: Catalog = {
  ...catalogOf([]),
  // eslint-disable-next-line require-yield
  async *metas() {
    await Promise.resolve();
    throw new Error('the catalog was read');
  },
};

function hex(hash: string): string {
  return hash.slice('sha256:'.length);
}

describe('serve/catalogs/stored-content', () => {
  it('writes one blob per line: sorted at every depth, compact, text unchanged, in walk order', async () => {
    const content = await storeFiles({
      'b/catalog.yaml': 'schema: why\nz: [{b: 1, a: 2}]\na: "<&>\u00e9\u2013"\n---\nschema: z\n',
      'a.json':
        '{"schema":"x","n":12345678901234567890,"f":1.50,"e":{"10":1,"9":2,"b":null,"B":true}}\n{"schema" : "w"}',
    });
    expect(await text(streamContent(content))).toBe(
      '{"e":{"10":1,"9":2,"B":true,"b":null},"f":1.5,"n":12345678901234567890,"schema":"x"}\n' +
        '{"schema":"w"}\n' +
        '{"a":"<&>\u00e9\u2013","schema":"why","z":[{"a":2,"b":1}]}\n' +
        '{"schema":"z"}\n',
    );
    expect(content).toMatchObject({ count: 4, storedAt: now() });
  });

  it('has the sha256 of its lines as hash, independent of their files', async () => {
    const json = await storeFiles({ 'a.json': '{"schema":"a","v":[1]}{"schema":"b"}' });
    const yaml = await storeFiles({ 'x/y.yaml': 'v:\n- 1\nschema: a\n', 'z.yaml': 'schema: b' });
    const lines = '{"schema":"a","v":[1]}\n{"schema":"b"}\n';
    expect(json.hash).toBe(`sha256:${createHash('sha256').update(lines).digest('hex')}`);
    expect(yaml.hash).toBe(json.hash);
    expect(json.size).toBe(lines.length);
  });

  it('stores lines that are larger than its buffers between small ones', async () => {
    const values = [
      { schema: 's', v: 'x' },
      { schema: 's', v: 'é'.repeat(3_000_000) },
      { schema: 'e', v: 'y' },
    ];
    const content = await storeContent(catalogOf(values), { now });
    const lines = values.map(({ schema, v }) => `${JSON.stringify({ schema, v })}\n`);
    expect(await text(streamContent(content))).toBe(lines.join(''));
    const [last] = content.find({ schema: 'e', package: '', name: '' });
    expect(await text(streamContent(content, last))).toBe(lines[2]);
  });

  it('finds the same lines as a filter, in order, adjacent ones joined', async () => {
    const word = fc.constantFrom('', 'a', 'b', 'c');
    const blob = fc.record({ schema: fc.constantFrom('a', 'b', 'olm.package'), package: word, name: word });
    await fc.assert(
      fc.asyncProperty(fc.array(blob, { maxLength: 30 }), blob, word, async (blobs, asked, schema) => {
        const query = { ...asked, schema };
        const content = await storeContent(catalogOf(blobs), { now });
        const wanted = blobs.filter((one) =>
          (['schema', 'package', 'name'] as const).every(
            (key) => query[key] === '' || one[key] === query[key],
          ),
        );
        const sections = content.find(query);
        let found = '';
        for (const section of sections) found += await text(streamContent(content, section));
        expect(found).toBe(
          wanted
            .map(({ schema, package: p, name }) => `${JSON.stringify({ name, package: p, schema })}\n`)
            .join(''),
        );
        expect(
          [...content.blobs(query)].map(({ schema, package: p, name }) => ({ schema, package: p, name })),
        ).toEqual(wanted);
        for (const [i, section] of sections.entries()) {
          const before = sections[i - 1];
          if (before !== undefined) expect(section.offset).toBeGreaterThan(before.offset + before.length);
        }
        const names = blobs.map((one) => one.package || (one.schema === 'olm.package' ? one.name : ''));
        const both = [
          ...names,
          ...blobs.filter((one) => one.schema === 'olm.package').map(({ name }) => name),
        ];
        expect(content.packages).toEqual([...new Set(both)].filter((name) => name !== '').sort());
        await content.close();
      }),
      { numRuns: 60 },
    );
  });

  it('is found by hash, with its date and index, by the next process', async () => {
    const directory = path.join(await directoryWith(), 'cache');
    const first = await storeFiles(
      { 'a.json': '{"schema":"a","name":"m"}{"schema":"b","name":"m"}' },
      { directory },
    );
    const later = () => new Date('2027-01-01T00:00:00Z');
    const second = await openContent(first.hash, { directory });
    const third = await storeFiles(
      { 'b.yaml': 'schema: a\nname: m\n---\nschema: b\nname: m\n' },
      { directory, now: later },
    );
    for (const content of [second, third]) {
      expect(content).toMatchObject({ hash: first.hash, size: first.size, count: 2, storedAt: now() });
      expect(content?.find({ schema: 'b', package: '', name: 'm' })).toEqual([{ offset: 26, length: 26 }]);
      expect(content && (await text(streamContent(content)))).toBe(await text(streamContent(first)));
    }
    expect((await readdir(directory)).sort()).toEqual([hex(first.hash)]);
  });

  it('uses content stored under the same key without reading the catalog', async () => {
    const directory = await directoryWith();
    const first = await storeContent(catalogOf([{ schema: 'a' }]), { now, directory, key: 'sha256:1' });
    const second = await storeContent(unreadable, { now, directory, key: 'sha256:1' });
    expect(second.hash).toBe(first.hash);
    await expect(storeContent(unreadable, { now, directory, key: 'sha256:2' })).rejects.toThrow('was read');
  });

  it.each<[string, (place: string) => Promise<void>]>([
    [
      'changed content',
      async (place) => {
        const file = path.join(place, 'catalog.jsonl');
        const bytes = await readFile(file);
        bytes[3] = 0x7a;
        await writeFile(file, bytes);
      },
    ],
    ['content that is cut off', (place) => truncate(path.join(place, 'catalog.jsonl'), 5)],
    ['content that goes on', (place) => appendFile(path.join(place, 'catalog.jsonl'), '{}\n')],
    ['an index that is cut off', (place) => truncate(path.join(place, 'index.json'), 90)],
    ['an index of garbage', (place) => writeFile(path.join(place, 'index.json'), 'garbage')],
    [
      'a directory for content',
      async (place) => {
        await rm(path.join(place, 'catalog.jsonl'));
        await mkdir(path.join(place, 'catalog.jsonl'));
      },
    ],
  ])('neither serves nor keeps %s', async (_what, damage) => {
    const directory = await directoryWith();
    const values = [{ schema: 'a', name: 'one' }];
    const options = { now, directory, key: 'k' };
    const first = await storeContent(catalogOf(values), options);
    const place = path.join(directory, hex(first.hash));
    await damage(place);
    const { warnings, logger } = collectWarnings();
    expect(await openContent(first.hash, { directory, logger })).toBeUndefined();
    expect(warnings).toEqual([expect.stringMatching(/: not used: /)]);
    const second = await storeContent(catalogOf(values), options);
    expect(second.hash).toBe(first.hash);
    expect(await readFile(path.join(place, 'catalog.jsonl'), 'utf8')).toBe('{"name":"one","schema":"a"}\n');
    expect(await openContent(first.hash, { directory })).toBeDefined();
    expect((await readdir(directory)).sort()).toEqual([hex(first.hash), 'keys'].sort());
  });

  it('does not use an index that belongs to other content', async () => {
    const directory = await directoryWith();
    const one = await storeContent(catalogOf([{ schema: 'a' }]), { now, directory });
    const two = await storeContent(catalogOf([{ schema: 'b' }]), { now, directory });
    const index = await readFile(path.join(directory, hex(two.hash), 'index.json'));
    await writeFile(path.join(directory, hex(one.hash), 'index.json'), index);
    expect(await openContent(one.hash, { directory })).toBeUndefined();
  });

  it('leaves nothing of a catalog that cannot be read completely', async () => {
    const directory = await directoryWith();
    const bad = { 'a.json': '{"schema":"a"}', 'b.json': '{"name":"no schema"}' };
    await expect(storeFiles(bad, { directory })).rejects.toMatchObject({ code: 'INVALID' });
    expect(await readdir(directory)).toEqual([]);
  });

  it('stops when it is cancelled, leaving nothing', async () => {
    const directory = await directoryWith();
    const stop = new AbortController();
    stop.abort();
    const stored = storeFiles({ 'a.json': '{"schema":"a"}' }, { directory, signal: stop.signal });
    await expect(stored).rejects.toMatchObject({ code: 'CANCELLED' });
    expect(await readdir(directory)).toEqual([]);
  });

  it('stores content in a nameless file if the directory is unusable, and else in memory', async () => {
    const root = await directoryWith({ file: '', 'catalog/a.json': '{"schema":"a"}{"schema":"b"}' });
    const directory = path.join(root, 'file', 'cache');
    const temporaryDirectory = path.join(root, 'tmp');
    await mkdir(temporaryDirectory);
    const catalog = () => new DirectoryCatalog(path.join(root, 'catalog'));
    const { warnings, logger } = collectWarnings();
    const nameless = await storeContent(catalog(), { now, directory, temporaryDirectory, logger });
    expect(warnings).toEqual([`${directory}: cannot store the catalog: not a directory`]);
    expect(await readdir(temporaryDirectory)).toEqual([]);
    const inMemory = await storeContent(catalog(), { now, temporaryDirectory: directory, logger });
    expect(warnings).toHaveLength(2);
    for (const content of [nameless, inMemory]) {
      expect(await text(streamContent(content))).toBe('{"schema":"a"}\n{"schema":"b"}\n');
      expect(await text(streamContent(content, { offset: 15, length: 15 }))).toBe('{"schema":"b"}\n');
      await content.close();
    }
  });

  it('stores content that is larger than a chunk of memory', async () => {
    const values = Array.from({ length: 50 }, (_, i) => ({
      name: `${i}`,
      schema: 's',
      v: 'x'.repeat(70_000 + i),
    }));
    const content = await storeContent(catalogOf(values), { now });
    expect(await text(streamContent(content))).toBe(
      values.map((value) => `${JSON.stringify(value)}\n`).join(''),
    );
    const [section] = content.find({ schema: '', package: '', name: '15' });
    expect(JSON.parse(await text(streamContent(content, section)))).toEqual(values[15]);
  });

  it('is stored by two at the same time, and intact for both', async () => {
    const directory = await directoryWith();
    const values = Array.from({ length: 2000 }, (_, i) => ({ schema: 's', name: `n${i}` }));
    const both = await Promise.all([1, 2, 3].map(() => storeContent(catalogOf(values), { now, directory })));
    for (const content of both) expect((await text(streamContent(content))).split('\n')).toHaveLength(2001);
    expect(await readdir(directory)).toEqual([hex((both[0] as StoredContent).hash)]);
  });

  it('stays readable for its readers when it is closed and its directory removed', async () => {
    const directory = await directoryWith();
    const content = await storeContent(catalogOf([{ schema: 'a' }]), { now, directory });
    const reading = streamContent(content);
    let closed = false;
    const closing = content.close().then(() => (closed = true));
    await rm(directory, { recursive: true });
    expect(closed).toBe(false);
    expect(await text(reading)).toBe('{"schema":"a"}\n');
    await closing;
    expect(() => streamContent(content)).toThrow(': closed');
  });

  it('sweeps leftovers of killed processes at once, and old ones of other machines', async () => {
    const [dead, stale, growing] = [await deadName(), foreignName('aaaa'), foreignName('bbbb')];
    const directory = await directoryWith({
      [`${dead}/catalog.jsonl`]: '{"sch',
      [`${stale}/catalog.jsonl`]: '{"sch',
      [`${growing}/catalog.jsonl`]: '{"sch',
    });
    const old = new Date(now().getTime() - 2 * hour);
    for (const name of [`${stale}/catalog.jsonl`, stale, growing])
      await utimes(path.join(directory, name), old, old);
    await utimes(path.join(directory, growing, 'catalog.jsonl'), now(), now());
    const content = await storeContent(catalogOf([{ schema: 'a' }]), { now, directory });
    expect((await readdir(directory)).sort()).toEqual([growing, hex(content.hash)].sort());
  });

  it('prunes unreferenced contents except for recent ones; open ones stay readable', async () => {
    const directory = await directoryWith({ README: 'not ours' });
    const contents: StoredContent[] = [];
    for (const schema of ['a', 'b', 'c'])
      contents.push(await storeContent(catalogOf([{ schema }]), { now, directory }));
    const [a, b, c] = contents as [StoredContent, StoredContent, StoredContent];
    const old = new Date(now().getTime() - 2 * hour);
    for (const { hash } of [a, b]) await utimes(path.join(directory, hex(hash)), old, old);
    await utimes(path.join(directory, hex(c.hash)), now(), now());
    await pruneContents(directory, new Set([a.hash]), now());
    expect((await readdir(directory)).sort()).toEqual([hex(a.hash), hex(c.hash), 'README'].sort());
    expect(await text(streamContent(b))).toBe('{"schema":"b"}\n');
  });

  it('prunes keys without content', async () => {
    const directory = await directoryWith();
    const kept = await storeContent(catalogOf([{ schema: 'a' }]), { now, directory, key: 'one' });
    const gone = await storeContent(catalogOf([{ schema: 'b' }]), { now, directory, key: 'two' });
    await rm(path.join(directory, hex(gone.hash)), { recursive: true });
    await pruneContents(directory, new Set([kept.hash]), now());
    expect(await readdir(path.join(directory, 'keys'))).toHaveLength(1);
    const again = await storeContent(unreadable, { now, directory, key: 'one' });
    expect(again.hash).toBe(kept.hash);
  });

  it.each(['', 'sha256:..', '../../etc', `sha256:${'A'.repeat(64)}`, `sha256:${'0'.repeat(64)}`])(
    'has no content of hash %j',
    async (hash) => {
      const { warnings, logger } = collectWarnings();
      expect(await openContent(hash, { directory: await directoryWith(), logger })).toBeUndefined();
      expect(warnings).toEqual([]);
    },
  );
});
