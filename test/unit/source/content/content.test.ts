import { execFileSync } from 'node:child_process';
import { mkdir, readFile, readdir, rm, symlink, utimes, writeFile } from 'node:fs/promises';
import path from 'node:path';
import { gzipSync } from 'node:zlib';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { formatMessage } from '../../../../src/core/diagnostic.js';
import { defaultArchiveLimits } from '../../../../src/archive/limits.js';
import { layerOf } from '../../../../src/archive/tar-writer.js';
import type { OpmateError } from '../../../../src/core/errors.js';
import { buildImage, pushImage } from '../../../../src/oci/image/image-builder.js';
import { openLayout } from '../../../../src/oci/layout/layout.js';
import type { OpenedContent } from '../../../../src/source/content/content.js';
import type { ContentPlace } from '../../../../src/source/place.js';
import { ContentFindingsError } from '../../../../src/source/content/content-findings.js';
import { openContentStore } from '../../../../src/source/content/content-store.js';
import { type Workbench, failureOf, openWorkbench } from '../../../support/connect.js';
import { type FaultRegistry, sha256, startFaultRegistry } from '../../../support/fault-registry.js';
import { gitRepository } from '../../../support/git-server.js';
import { rawTar } from '../../../support/tar.js';
import { directoryWith } from '../../../support/temporary.js';
import { contentOptions, placedAt, type Opening, openWith } from './content-world.js';

const files = { 'manifests/a.yaml': 'kind: A\n', 'metadata/annotations.yaml': 'annotations: {}\n' };
const tarOf = (content: Record<string, string>): Buffer =>
  rawTar(Object.entries(content).map(([name, text]) => ({ name, content: text })));

let bench: Workbench;
let server: FaultRegistry;
let options: Opening;

beforeEach(async () => {
  bench = await openWorkbench();
  server = await startFaultRegistry();
  options = await contentOptions(bench);
});

afterEach(async () => {
  await server.close();
  await bench.close();
});

async function filesIn(directory: string): Promise<Record<string, string>> {
  const found: Record<string, string> = {};
  for (const entry of await readdir(directory, { recursive: true, withFileTypes: true })) {
    if (!entry.isFile()) continue;
    const file = path.join(entry.parentPath, entry.name);
    found[path.relative(directory, file)] = await readFile(file, 'utf8');
  }
  return found;
}

/** What a source gives; everything is closed afterwards, and nothing is left. */
async function read(
  source: ContentPlace,
  more: Partial<Opening> = {},
): Promise<{ files: Record<string, string> } & Pick<OpenedContent, 'content' | 'pins' | 'isInPlace'>> {
  const opened = await openWith([placedAt('src', source)], { ...options, ...more });
  try {
    const { content, pins, isInPlace } = opened;
    return { files: await filesIn(opened.directory), content, pins, isInPlace };
  } finally {
    await opened.close();
    expect(await readdir(options.temporaryDirectory)).toEqual([]);
  }
}

const open = (source: ContentPlace, more: Partial<Opening> = {}): Promise<OpenedContent> =>
  openWith([placedAt('src', source)], { ...options, ...more });

/** The files above from each kind of source, and what its pin ends with. */
async function sourcesOfAllKinds(): Promise<{ source: ContentPlace; ref: RegExp }[]> {
  const directory = await directoryWith(files);
  const archive = path.join(await directoryWith({ 'b.tgz': gzipSync(tarOf(files)) }), 'b.tgz');
  const layout = path.join(await directoryWith(), 'layout');
  const layer = await layerOf(
    Object.entries(files).map(([name, text]) => ({ path: name, content: Buffer.from(text) })),
  );
  await pushImage(
    await openLayout(layout, { create: true }),
    'v1',
    await buildImage({ layers: [layer], labels: {} }),
  );
  const repository = await gitRepository(
    Object.fromEntries(Object.entries(files).map(([name, text]) => [`deploy/${name}`, text])),
  );
  const commit = repository.git('rev-parse', 'HEAD');
  server.on({ path: '/b.tar', respond: { body: tarOf(files) } });
  const maps = await directoryWith({
    'maps.yaml': ['manifests', 'metadata']
      .map((part) => {
        const data = Object.entries(files)
          .filter(([name]) => name.startsWith(part))
          .map(([name, text]) => [name.slice(part.length + 1), text]);
        const map = { apiVersion: 'v1', kind: 'ConfigMap', metadata: { name: part }, immutable: true };
        return JSON.stringify({ ...map, data: Object.fromEntries(data) as object });
      })
      .join('\n---\n'),
  });
  return [
    { source: { kind: 'directory', path: directory }, ref: /^directory@sha256:/ },
    { source: { kind: 'archive', path: archive }, ref: /^archive@sha256:/ },
    { source: { kind: 'image', ref: `oci:${layout}:v1` }, ref: /^oci:.*layout@sha256:[0-9a-f]{64}$/ },
    {
      source: { kind: 'git', repository: repository.url, branch: 'main', directory: 'deploy' },
      ref: new RegExp(`^git\\+file://.*#${commit}:deploy$`),
    },
    {
      source: { kind: 'http', url: `${server.origin}/b.tar?token=s3cret` },
      ref: new RegExp(`/b\\.tar@${sha256(tarOf(files))}$`),
    },
    {
      source: {
        kind: 'configMaps',
        file: path.join(maps, 'maps.yaml'),
        configMaps: [
          { name: 'manifests', path: 'manifests' },
          { name: 'metadata', path: 'metadata' },
        ],
      },
      ref: /^configMaps@sha256:/,
    },
  ];
}

describe('source/content', () => {
  it('gives the same files, and the same hash, from sources of all kinds', async () => {
    const hashes = new Set<string>();
    for (const { source, ref } of await sourcesOfAllKinds()) {
      const found = await read(source);
      expect(found.files).toEqual(files);
      expect(found.isInPlace).toBe(source.kind === 'directory');
      expect(found.pins).toHaveLength(1);
      expect(found.pins[0]).toMatchObject({ name: 'src', type: source.kind, content: found.content });
      expect(found.pins[0]?.ref).toMatch(ref);
      expect(JSON.stringify(found.pins)).not.toContain('s3cret');
      hashes.add(found.content);
    }
    expect([...hashes]).toHaveLength(1);
  });

  it('takes what a pin says, and refuses what has changed since', async () => {
    for (const { source } of await sourcesOfAllKinds()) {
      const { pins } = await read(source);
      expect((await read(source, { pins, requireDigest: true })).pins).toEqual(pins);
      const content = `sha256:${'0'.repeat(64)}`;
      const other = pins.map((pin) => ({ ...pin, content }));
      const error = await failureOf(open(source, { pins: other }));
      expect(error).toMatchObject({ code: 'DIGEST' });
      expect(error.message).toContain(content);
      expect(error.message).toContain(pins[0]?.content);
      expect(error.hint).toContain('options.updateLock');
      expect((await failureOf(open(source, { pins: [] }))).message).toBe('src: is not in the lock');
    }
  });

  it('does not follow a branch, a tag or a URL that a lock has pinned', async () => {
    const repository = await gitRepository(files);
    const source: ContentPlace = { kind: 'git', repository: repository.url, branch: 'main' };
    const first = await read(source);
    await repository.commit({ 'manifests/a.yaml': 'kind: B\n' });
    expect((await read(source, { pins: first.pins })).files).toEqual(files);
    expect((await read(source)).content).not.toBe(first.content);
    const dev: ContentPlace = { ...source, branch: 'dev' };
    expect((await failureOf(open(dev, { pins: first.pins }))).message).toBe(
      `src: locked as git ${repository.url} branch main, got git ${repository.url} branch dev`,
    );
    server.on({ path: '/b.tar', respond: { body: tarOf(files) } });
    const url: ContentPlace = { kind: 'http', url: `${server.origin}/b.tar` };
    const { pins } = await read(url);
    server.on({ path: '/b.tar', respond: { body: tarOf({ ...files, more: '' }) } });
    expect(await failureOf(open(url, { pins }))).toMatchObject({ code: 'DIGEST' });
  });

  it('refuses all that is not pinned at once, where it has to be', async () => {
    const commit = 'a'.repeat(40);
    const placed = [
      placedAt('one', { kind: 'image', ref: 'localhost:1/ns/name:v1' }, 'one'),
      placedAt('two', { kind: 'git', repository: 'https://localhost:1/x', branch: 'main' }, 'two'),
      placedAt('three', { kind: 'git', repository: 'https://localhost:1/x', revision: 'v1' }, 'three'),
      placedAt('four', { kind: 'http', url: 'https://localhost:1/x' }, 'four'),
      placedAt('five', { kind: 'git', repository: 'https://localhost:1/x', commit }, 'five'),
      placedAt('six', { kind: 'directory', path: '/nonexistent' }, 'six'),
    ];
    const error = await failureOf(openWith(placed, { ...options, requireDigest: true }));
    expect(error).toBeInstanceOf(ContentFindingsError);
    expect((error as ContentFindingsError).diagnostics.map(formatMessage)).toEqual([
      'one: image is not pinned by digest',
      'two: git source is not pinned by commit',
      'three: git source is not pinned by commit',
      'four: URL is not pinned by checksum',
    ]);
  });

  it('puts several sources together, and names both where they have the same file', async () => {
    const [first, second] = [await directoryWith(files), await directoryWith({ 'a.yaml': 'x', 'c/d': 'y' })];
    const archive = path.join(await directoryWith({ 'b.tar': tarOf({ 'e.yaml': 'z' }) }), 'b.tar');
    const opened = await openWith(
      [
        placedAt('first', { kind: 'directory', path: first }),
        placedAt('second', { kind: 'directory', path: second }, 'more/of'),
        placedAt('third', { kind: 'archive', path: archive }, './more/of/'),
      ],
      options,
    );
    expect(await filesIn(opened.directory)).toEqual({
      ...files,
      'more/of/a.yaml': 'x',
      'more/of/c/d': 'y',
      'more/of/e.yaml': 'z',
    });
    expect(opened).toMatchObject({ isInPlace: false });
    expect(opened.pins.map(({ name }) => name)).toEqual(['first', 'second', 'third']);
    const whole = await directoryWith(await filesIn(opened.directory));
    await opened.close();
    expect(opened.content).toBe((await read({ kind: 'directory', path: whole })).content);
    expect(await filesIn(first)).toEqual(files);
    const clash = await failureOf(
      openWith(
        [
          placedAt('first', { kind: 'directory', path: first }),
          placedAt('second', { kind: 'directory', path: second }, 'manifests'),
          placedAt('third', { kind: 'directory', path: second }, 'metadata/annotations.yaml'),
        ],
        options,
      ),
    );
    expect((clash as ContentFindingsError).diagnostics.map(formatMessage)).toEqual([
      'manifests/a.yaml: duplicate file in first and second',
      'metadata/annotations.yaml: is a file in first and a directory in third',
    ]);
    expect(await readdir(options.temporaryDirectory)).toEqual([]);
  });

  it.each(['/etc', '../up', 'a/../../up', 'C:\\x', 'a\0b'])(
    'refuses the destination %j',
    async (destination) => {
      const source: ContentPlace = { kind: 'directory', path: await directoryWith(files) };
      const error = await failureOf(openWith([placedAt('src', source, destination)], options));
      expect(error).toMatchObject({ code: 'UNSAFE' });
      expect(error.message).toContain('src: destination');
    },
  );

  it('sees that a directory changes while it is read', async () => {
    const directory = await directoryWith(files);
    const opened = await open({ kind: 'directory', path: directory }, { roots: ['manifests', 'metadata'] });
    await writeFile(path.join(directory, 'README.md'), 'not wanted');
    await opened.confirm();
    const file = path.join(directory, 'manifests/a.yaml');
    await utimes(file, 1, 1);
    expect((await failureOf(opened.confirm())).message).toBe(
      `${file}: changed by another process while reading`,
    );
    await opened.close();
    for (const change of [
      () => writeFile(path.join(directory, 'manifests/b.yaml'), ''),
      () => rm(file),
      () => mkdir(path.join(directory, 'manifests/sub')),
    ]) {
      const again = await open({ kind: 'directory', path: directory });
      await change();
      expect((await failureOf(again.confirm())).message).toContain(
        'changed by another process while reading',
      );
    }
  });

  it('follows the links in a directory, those that lead out of it where told, and waits for no pipe', async () => {
    const elsewhere = await directoryWith({ 'x.yaml': 'x' });
    const directory = await directoryWith({ 'manifests/a.yaml': 'a' });
    await symlink(path.join(elsewhere, 'x.yaml'), path.join(directory, 'manifests/x.yaml'));
    await symlink(elsewhere, path.join(directory, 'metadata'));
    await symlink('nowhere', path.join(directory, 'manifests/broken'));
    await symlink('..', path.join(directory, 'manifests/circle'));
    execFileSync('mkfifo', [path.join(directory, 'manifests/pipe')]);
    const flat = await directoryWith({
      'manifests/a.yaml': 'a',
      'manifests/x.yaml': 'x',
      'metadata/x.yaml': 'x',
    });
    const { content } = await read({ kind: 'directory', path: flat });
    const linked = { kind: 'directory', path: directory } as const;
    expect((await read(linked, { followLinks: true })).content).toBe(content);
    const { message, code } = (await failureOf(read(linked))) as OpmateError;
    expect(code).toBe('UNSAFE');
    expect(message).toContain('manifests/x.yaml: links to ');
    expect(message).toContain('metadata: links to ');
  });

  it('knows directories by what is in them, wherever they stand and whatever their modes', async () => {
    const hashOf = async (more: Record<string, string>, empty?: string): Promise<string> => {
      const directory = await directoryWith(more);
      if (empty !== undefined) await mkdir(path.join(directory, empty));
      return (await read({ kind: 'directory', path: directory })).content;
    };
    const plain = await hashOf({ a: '1', 'b/c': '2' });
    expect(await hashOf({ 'b/c': '2', a: '1' })).toBe(plain);
    const others = [
      await hashOf({ a: '1', 'b/c': '2' }, 'empty'),
      await hashOf({ a: '1', b: '2' }),
      await hashOf({ a: '2', 'b/c': '1' }),
      await hashOf({ 'b/c': '2' }),
    ];
    expect(new Set([plain, ...others]).size).toBe(5);
  });

  it('refuses archives that lie about their place, size or end', async () => {
    const limits = { ...defaultArchiveLimits, maxUnpackedSize: 100_000 };
    const cases: [Buffer, string][] = [
      [rawTar([{ name: '../evil', content: 'x' }]), 'UNSAFE'],
      [gzipSync(tarOf(files)).subarray(0, 60), 'SYNTAX'],
      [gzipSync(rawTar([{ name: 'bomb', content: Buffer.alloc(1_000_000) }])), 'LIMIT'],
      [rawTar([{ name: 'link', flag: '2', linkName: '../../etc/passwd' }]), 'INVALID'],
    ];
    for (const [body, code] of cases) {
      const place = await directoryWith({ 'a.tar': body });
      const local = await failureOf(open({ kind: 'archive', path: path.join(place, 'a.tar') }, { limits }));
      expect(local).toMatchObject({ code });
      server.on({ path: `/${code}`, respond: { body } });
      expect(
        await failureOf(open({ kind: 'http', url: `${server.origin}/${code}` }, { limits })),
      ).toMatchObject({ code });
    }
    expect(await readdir(options.temporaryDirectory)).toEqual([]);
  });

  it('is cancelled, and leaves nothing', async () => {
    const signal = AbortSignal.abort();
    for (const { source } of await sourcesOfAllKinds()) {
      expect(await failureOf(open(source, { signal }))).toMatchObject({ code: 'CANCELLED' });
    }
    expect(await readdir(options.temporaryDirectory)).toEqual([]);
  });

  it('keeps unpacked content by its hash, and needs nobody for what is pinned', async () => {
    const directory = await directoryWith();
    const contentStore = await openContentStore({ directory, now: options.now() });
    for (const { source } of await sourcesOfAllKinds()) {
      const first = await read(source, { contentStore });
      expect(first.files).toEqual(files);
      if (source.kind === 'directory' || source.kind === 'configMaps' || source.kind === 'archive') continue;
      const gone = { ...options, environment: {}, connect: () => Promise.reject(new Error('asked')) };
      const again = await read(source, { ...gone, contentStore, pins: first.pins });
      expect(again).toEqual(first);
    }
    const names = await readdir(directory);
    expect(names).toEqual([expect.stringMatching(/^sha256-[0-9a-f]{64}$/), 'tmp']);
    expect(await readdir(path.join(directory, 'tmp'))).toEqual([]);
  });
});

describe('source/content-store', () => {
  it('removes what is damaged, and what nobody has asked for in a long time', async () => {
    const directory = await directoryWith();
    const logger = {
      log: (_: string, message: string) => void logged.push(message),
      progress: () => undefined,
    };
    const logged: string[] = [];
    const now = new Date('2026-01-01T00:00:00Z');
    const store = await openContentStore({ directory, now, logger });
    server.on({ path: '/b.tar', respond: { body: tarOf(files) } });
    const source: ContentPlace = { kind: 'http', url: `${server.origin}/b.tar` };
    const { pins, content } = await read(source, { contentStore: store });
    const place = path.join(directory, content.replace(':', '-'));
    await writeFile(path.join(place, 'manifests/a.yaml'), 'kind: Evil\n');
    expect((await read(source, { contentStore: store, pins })).files).toEqual(files);
    expect(logged).toEqual([`${place}: damaged, fetching again: hash mismatch`]);
    await openContentStore({ directory, now: new Date('2026-01-20T00:00:00Z') });
    await utimes(place, now, now);
    expect(await store?.find(content)).toMatchObject({ directory: place });
    await openContentStore({ directory, now: new Date('2026-02-20T00:00:00Z') });
    expect(await store?.find(content)).toBeUndefined();
    expect(await readdir(directory)).toEqual(['tmp']);
  });

  it('serves several at once', async () => {
    const directory = await directoryWith();
    server.on({ path: '/b.tar', respond: { body: tarOf(files) } });
    const source: ContentPlace = { kind: 'http', url: `${server.origin}/b.tar` };
    const opened = await Promise.all(
      Array.from({ length: 6 }, async () =>
        open(source, { contentStore: await openContentStore({ directory, now: options.now() }) }),
      ),
    );
    for (const one of opened) expect(await filesIn(one.directory)).toEqual(files);
    for (const one of opened) await one.close();
    expect(await readdir(path.join(directory, 'tmp'))).toEqual([]);
  });
});
