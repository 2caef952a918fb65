import { spawnSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import {
  copyFile,
  mkdir,
  open,
  readFile,
  readdir,
  rename,
  rm,
  stat,
  symlink,
  truncate,
  writeFile,
} from 'node:fs/promises';
import path from 'node:path';
import { Readable } from 'node:stream';
import { Ajv } from 'ajv';
import { describe, expect, it } from 'vitest';
import { OpmateError } from '../../../../src/core/errors.js';
import type { Logger } from '../../../../src/core/log.js';
import {
  encodeArchiveIndex,
  computeSetId,
  type ArchiveIndex,
  readArchiveIndex,
} from '../../../../src/oci/archive-set/archive-index.js';
import { openOciArchive } from '../../../../src/oci/archive-set/archive-source.js';
import { type ArchivedBlob, writeArchiveSet } from '../../../../src/oci/archive-set/archive-set-writer.js';
import { openArchiveSets } from '../../../../src/oci/archive-set/archive-set-reader.js';
import { type Descriptor, mediaTypes } from '../../../../src/oci/image/types.js';
import { ArchiveContent, layerBytes, someContent, sumsOf } from '../../../support/archive-content.js';
import { descriptorOf, readAll } from '../../../support/images.js';
import { directoryWith } from '../../../support/temporary.js';

const schema = JSON.parse(await readFile('schemas/mirror-archive.json', 'utf8')) as object;
const matchesSchema = new Ajv().compile(schema);

const part = (directory: string, number = 1): string =>
  path.join(directory, `mirror_${String(number).padStart(6, '0')}.tar`);
const indexFile = (directory: string): string => path.join(directory, 'mirror_archive.json');
const total = (index: ArchiveIndex): number =>
  [...index.blobs.values()].reduce((sum, { size }) => sum + size, 0);
const partials = async (directory: string): Promise<string[]> =>
  (await readdir(directory)).filter((name) => name.endsWith('.partial'));

/** What a failure says. */
async function failureOf(work: Promise<unknown>): Promise<OpmateError> {
  const error: unknown = await work.then(
    () => undefined,
    (thrown: unknown) => thrown,
  );
  if (error instanceof OpmateError) return error;
  throw new Error(`expected an OpmateError, not ${String(error)}`);
}

/** Keeps the warnings. */
function warningsOf(): Logger & { warnings: string[] } {
  const warnings: string[] = [];
  return {
    warnings,
    log: (level, message) => void (level === 'warn' && warnings.push(message)),
    progress: () => undefined,
  };
}

/** Writes until a blob's turn comes that cannot be had; what was complete by then stays. */
async function interrupt(directory: string, content: ArchiveContent, digest: string): Promise<void> {
  const failing = new ArchiveContent();
  failing.images.push(...content.images);
  failing.blobs.push(...content.blobs.map((blob) => ({ ...blob })));
  failing.spoil(digest, () => {
    throw new OpmateError('NETWORK', 'connection lost');
  });
  const error = await failureOf(failing.write(directory, { concurrency: 1 }));
  expect(error.message).toBe('connection lost');
}

async function flip(file: string, offset: number): Promise<void> {
  const handle = await open(file, 'r+');
  const byte = Buffer.alloc(1);
  await handle.read(byte, 0, 1, offset);
  await handle.write(Buffer.from([(byte[0] as number) ^ 0x40]), 0, 1, offset);
  await handle.close();
}

describe('oci/archive-set', () => {
  it('writes a tar of an OCI layout and its index', async () => {
    const directory = await directoryWith();
    const content = someContent();
    const { index, fetchedBytes, keptBytes } = await content.write(directory);
    expect(await readdir(directory)).toEqual(['mirror_000001.tar', 'mirror_archive.json']);
    expect(await readArchiveIndex(directory)).toEqual(index);
    expect(await readArchiveIndex(indexFile(directory))).toEqual(index);
    expect([fetchedBytes, keptBytes]).toEqual([total(index), 0]);
    expect(content.fetched).toHaveLength(index.blobs.size);
    expect(matchesSchema(JSON.parse(await readFile(indexFile(directory), 'utf8')))).toBe(true);

    const bytes = await readFile(part(directory));
    const sha256 = createHash('sha256').update(bytes).digest('hex');
    expect(index.parts).toEqual([{ file: 'mirror_000001.tar', size: bytes.length, sha256 }]);
    for (const [digest, { size, offset }] of index.blobs) {
      expect(descriptorOf(bytes.subarray(offset, offset + size)).digest).toBe(digest);
    }
    const archive = await openOciArchive(part(directory));
    expect(await archive.listTags()).toEqual(['ns/one:v1', 'ns/two:v1']);
    const { bytes: manifest } = await archive.getManifest('ns/one:v1');
    expect(descriptorOf(manifest).digest).toBe(content.images[0]?.root.digest);
    await archive.close();
    const listed = spawnSync('tar', ['-tf', part(directory)], { encoding: 'utf8' });
    expect(listed.stderr).toBe('');
    expect(listed.stdout.trim().split('\n')).toHaveLength(index.blobs.size + 2);
  });

  it('writes the same bytes for the same content in any order', async () => {
    const [one, two] = [await directoryWith(), await directoryWith()];
    const content = someContent();
    await content.write(one, { partBytes: 200_000 });
    content.images.reverse();
    content.blobs.reverse();
    await content.write(two, { partBytes: 200_000, concurrency: 1 });
    expect(await sumsOf(two)).toEqual(await sumsOf(one));
  });

  it('fills parts up to their size, headers and padding included', async () => {
    const content = new ArchiveContent();
    // Header and content take two kilobytes each, the end of a part one.
    for (let i = 0; i < 9; i++) content.add(layerBytes(1536, String(i)));
    content.image('ns/one', undefined);
    for (const partBytes of [9 * 1024, 9 * 1024 - 1]) {
      const directory = await directoryWith();
      const { index } = await content.write(directory, { partBytes });
      for (const [i, { file, size }] of index.parts.entries()) {
        expect(size).toBeLessThanOrEqual(partBytes);
        expect((await stat(path.join(directory, file))).size).toBe(size);
        const isFilled = [...index.blobs.values()].some((blob) => blob.part === i + 1);
        // The list of images may need a part of its own.
        expect(isFilled || i + 1 === index.parts.length).toBe(true);
      }
      const last = index.parts.length;
      expect((await readdir(directory)).length).toBe(last + 1);
      const archive = await openOciArchive(part(directory, last));
      expect(await archive.soleReference()).toBe(content.images[0]?.root.digest);
      await archive.close();
    }
  });

  it('writes a blob that is too large to a larger part, or refuses it if strict', async () => {
    const directory = await directoryWith();
    const content = someContent();
    const logger = warningsOf();
    const { index } = await content.write(directory, { partBytes: 100_000, logger });
    const large = descriptorOf(layerBytes(1_500_000, 'c')).digest;
    expect(logger.warnings).toEqual([
      `layer ${large} of 1.4 MiB does not fit into a part of 98 KiB: using a larger part`,
    ]);
    const parts = [...index.blobs.values()].map((blob) => blob.part);
    expect(parts.filter((number) => number === index.blobs.get(large)?.part)).toHaveLength(1);

    const strict = await directoryWith();
    content.fetched.length = 0;
    const error = await failureOf(content.write(strict, { partBytes: 100_000, strict: true }));
    expect([error.code, error.hint]).toEqual(['LIMIT', 'set archiveSize to 1 or more']);
    expect(content.fetched).toEqual([]);
    expect(await readdir(strict)).toEqual([]);
  });

  it('fetches nothing if the disk is too small', async () => {
    const directory = await directoryWith();
    const content = someContent();
    const descriptor = { ...descriptorOf('huge'), size: 2 ** 50 };
    content.blobs.push({ descriptor, open: () => Readable.from([]) });
    const error = await failureOf(content.write(path.join(directory, 'new', 'archive')));
    expect(error.code).toBe('IO');
    expect(error.message).toMatch(/: not enough disk space: 1024 TiB needed, \S+ [KMGT]iB free$/);
    expect(content.fetched).toEqual([]);
    expect(await readdir(directory)).toEqual([]);
  });

  it('reuses the intact blobs of an interrupted run', async () => {
    const [directory, clean] = [await directoryWith(), await directoryWith()];
    const content = someContent();
    const { index } = await content.write(clean);
    const order = [...index.blobs.keys()];
    await interrupt(directory, content, order.at(-2) as string);
    expect(await readdir(directory)).not.toContain('mirror_archive.json');
    const partial = (await partials(directory)).find((name) => name.startsWith('mirror_000001'));
    const first = index.blobs.get(order[0] as string) as { offset: number; size: number };
    await flip(path.join(directory, partial as string), first.offset + first.size - 1);

    content.fetched.length = 0;
    const second = await content.write(directory);
    const expected = [order[0], ...order.slice(-2)].sort();
    expect([...content.fetched].sort()).toEqual(expected);
    const again = expected.reduce((sum, digest) => sum + (index.blobs.get(digest as string)?.size ?? 0), 0);
    expect(second).toMatchObject({ fetchedBytes: again, keptBytes: total(index) - again });
    expect(await sumsOf(directory)).toEqual(await sumsOf(clean));
  });

  it('reuses blobs of unfinished files of other content', async () => {
    const [directory, clean] = [await directoryWith(), await directoryWith()];
    const before = someContent();
    const order = [...(await before.write(clean)).index.blobs.keys()];
    await interrupt(directory, before, order.at(-1) as string);
    const after = someContent();
    const added = after.image('ns/three', 'v3', layerBytes(9000, 'new'));
    await after.write(directory);
    const news = [order.at(-1), added.digest, descriptorOf(layerBytes(9000, 'new')).digest];
    expect(after.fetched).toEqual(expect.arrayContaining(news));
    expect(after.fetched).toHaveLength(4);
    await after.write(clean);
    expect(await sumsOf(directory)).toEqual(await sumsOf(clean));
  });

  it.each([
    ['invalid JSON', 'not JSON'],
    ['blobs outside of its files', undefined],
  ])('begins anew where what an interrupted run left tells %s', async (_what, text) => {
    const [directory, clean] = [await directoryWith(), await directoryWith()];
    const content = someContent();
    const order = [...(await content.write(clean)).index.blobs.keys()];
    await interrupt(directory, content, order.at(-1) as string);
    const plan = (await partials(directory)).find((name) => name.startsWith('mirror_archive')) as string;
    const told = await readFile(path.join(directory, plan), 'utf8');
    await writeFile(path.join(directory, plan), text ?? told.replaceAll('"offset":', '"offset":9'));
    content.fetched.length = 0;
    const logger = warningsOf();
    await content.write(directory, { logger });
    expect(logger.warnings).toHaveLength(1);
    expect(content.fetched).toHaveLength(order.length);
    expect(await sumsOf(directory)).toEqual(await sumsOf(clean));
  });

  it('keeps an unchanged archive and repairs a damaged one', async () => {
    const directory = await directoryWith();
    const content = someContent();
    const { index } = await content.write(directory, { partBytes: 100_000 });
    const sums = await sumsOf(directory);
    const { ino } = await stat(part(directory));
    content.fetched.length = 0;
    const again = await content.write(directory, { partBytes: 100_000 });
    expect(again).toEqual({ index, fetchedBytes: 0, keptBytes: total(index) });
    expect((await stat(part(directory))).ino).toBe(ino);

    const [digest, { offset }] = [...index.blobs].at(-1) as [string, { offset: number }];
    await flip(part(directory, index.parts.length), offset);
    await rm(part(directory, 1));
    const logger = warningsOf();
    await content.write(directory, { partBytes: 100_000, logger });
    const lost = [...index.blobs].filter(([, blob]) => blob.part === 1).map(([name]) => name);
    expect([...content.fetched].sort()).toEqual([...lost, digest].sort());
    expect(await sumsOf(directory)).toEqual(sums);
  });

  it('replaces a previous archive only when the new one is complete', async () => {
    const [directory, clean] = [await directoryWith(), await directoryWith()];
    await someContent().write(directory, { partBytes: 80_000 });
    const sums = await sumsOf(directory);
    expect(Object.keys(sums).length).toBeGreaterThan(3);
    const after = someContent();
    const added = after.image('ns/three', 'v3', layerBytes(9000, 'new'));
    await interrupt(directory, after, added.digest);
    const now = await sumsOf(directory);
    for (const [name, sum] of Object.entries(sums)) expect(now[name]).toBe(sum);
    await openArchiveSets([directory]);

    after.fetched.length = 0;
    await after.write(directory);
    expect(after.fetched).toContain(added.digest);
    expect(after.fetched.length).toBeLessThanOrEqual(3);
    await after.write(clean);
    expect(await sumsOf(directory)).toEqual(await sumsOf(clean));
  });

  it('resumes from any point at which renaming the parts was interrupted', async () => {
    const [clean, old] = [await directoryWith(), await directoryWith()];
    const content = someContent();
    const { index } = await content.write(clean, { partBytes: 80_000 });
    const sums = await sumsOf(clean);
    const other = new ArchiveContent();
    for (let i = 0; i < 9; i++) other.add(layerBytes(70_000, `other ${i}`));
    await other.write(old, { partBytes: 80_000 });
    // What the unfinished files of this content are called.
    const probe = await directoryWith();
    const failing = someContent();
    failing.spoil([...index.blobs.keys()].at(-1) as string, () => Promise.reject(new Error('stopped')));
    await expect(failing.write(probe, { partBytes: 80_000 })).rejects.toThrow('stopped');
    const planName = (await partials(probe)).find((name) => name.startsWith('mirror_archive')) as string;
    const key = planName.split('.')[1] as string;
    for (let renamed = 0; renamed <= index.parts.length; renamed++) {
      const directory = await directoryWith();
      for (const name of await readdir(old)) {
        if (name.endsWith('.tar')) await copyFile(path.join(old, name), path.join(directory, name));
      }
      await copyFile(indexFile(clean), path.join(directory, planName));
      for (const [i, { file }] of index.parts.entries()) {
        const name = i < renamed ? file : file.replace('.tar', `.${key}.partial`);
        await copyFile(path.join(clean, file), path.join(directory, name));
      }
      await expect(openArchiveSets([directory])).rejects.toThrow(
        /not an archive: mirror_archive.*\.json not found/,
      );
      content.fetched.length = 0;
      await content.write(directory, { partBytes: 80_000 });
      expect(content.fetched).toEqual([]);
      expect(await sumsOf(directory)).toEqual(sums);
    }
  });

  it('leaves parts of another program alone', async () => {
    const content = someContent();
    const directory = await directoryWith({
      'mirror_000001.tar': 'of oc-mirror',
      'mirror_000007.tar': 'too',
    });
    const before = await sumsOf(directory);
    const { message, hint } = await failureOf(content.write(directory));
    expect(message).toBe(`${part(directory)} and 1 more: not an archive of opmate`);
    expect(hint).toContain('specify another directory');
    // What a run that did not end has left of itself makes them no more ours.
    const order = [...(await content.write(await directoryWith())).index.blobs.keys()];
    await Promise.all([1, 7].map((number) => rm(part(directory, number))));
    await interrupt(directory, content, order.at(-1) as string);
    await writeFile(part(directory), 'of oc-mirror');
    content.fetched.length = 0;
    expect((await failureOf(content.write(directory))).message).toMatch(/\.tar: not an archive of opmate$/);
    expect(content.fetched).toEqual([]);
    expect(await sumsOf(directory)).toMatchObject({
      'mirror_000001.tar': before['mirror_000001.tar'] as string,
    });
  });

  it('omits blobs of the base and of its base', async () => {
    const [one, two, three] = [await directoryWith(), await directoryWith(), await directoryWith()];
    const first = await someContent().write(one);
    const content = someContent();
    content.image('ns/three', 'v3', layerBytes(9000, 'new'));
    const second = await content.write(two, { base: first.index });
    expect(second.index.base).toBe(first.index.id);
    expect([...second.index.inBase.keys()].sort()).toEqual([...first.index.blobs.keys()].sort());
    expect(second.index.blobs.size).toBe(3);
    expect(second.fetchedBytes).toBe(total(second.index));
    expect(matchesSchema(JSON.parse(await readFile(indexFile(two), 'utf8')))).toBe(true);
    content.image('ns/four', 'v4', layerBytes(5000, 'newer'));
    const third = await content.write(three, { base: second.index });
    expect(third.index.base).toBe(second.index.id);
    expect(third.index.blobs.size).toBe(3);

    const alone = await openArchiveSets([three]);
    expect(alone.missing()).toEqual(third.index.inBase);
    await expect(alone.repository('ns/one').getManifest('v1')).rejects.toThrow(
      /ns\/one:v1: manifest sha256:\w+ not found$/,
    );
    const some = await openArchiveSets([three, two]);
    expect([...some.missing().keys()].sort()).toEqual([...first.index.blobs.keys()].sort());
    const all = await openArchiveSets([three, two, one]);
    expect(all.missing().size).toBe(0);
    const { bytes } = await all.repository('ns/one').getManifest('v1');
    for (const layer of (JSON.parse(bytes.toString()) as { layers: Descriptor[] }).layers)
      await readAll(await all.repository('ns/one').openBlob(layer));
  });

  it('has no base if it needs none of its blobs', async () => {
    const [one, two] = [await directoryWith(), await directoryWith()];
    const { index: base } = await someContent().write(one);
    const content = new ArchiveContent();
    content.image('ns/other', 'v1', 'layer');
    const { index } = await content.write(two, { base });
    expect([index.base, index.inBase.size]).toEqual([undefined, 0]);
  });

  it.each<[string, (content: ArchiveContent, digest: string) => void, RegExp]>([
    [
      'other bytes',
      (content, digest) => content.spoil(digest, () => Readable.from([layerBytes(3000, 'x')])),
      /content has digest sha256:/,
    ],
    [
      'fewer bytes',
      (content, digest) => content.spoil(digest, () => Readable.from([Buffer.alloc(2999)])),
      /expected 3000 bytes, got 2999/,
    ],
    [
      'more bytes',
      (content, digest) => content.spoil(digest, () => Readable.from([Buffer.alloc(3001)])),
      /expected 3000 bytes, got more/,
    ],
  ])('refuses a blob that comes with %s', async (_what, spoil, message) => {
    const directory = await directoryWith();
    const content = someContent();
    const { digest } = descriptorOf(layerBytes(3000, 'a'));
    spoil(content, digest);
    const error = await failureOf(content.write(directory));
    expect(error.code).toBe('DIGEST');
    expect(error.message).toMatch(message);
    expect(error.message).toContain(digest);
    expect(await readdir(directory)).not.toContain('mirror_archive.json');
    // What was wrong is fetched again, and nothing else that was complete.
    const again = someContent();
    await again.write(directory);
    expect(again.fetched).toContain(digest);
  });

  it('fetches a damaged blob again', async () => {
    const directory = await directoryWith();
    const content = someContent();
    const bytes = layerBytes(3000, 'a');
    const { digest } = descriptorOf(bytes);
    const arrivals = [layerBytes(3000, 'x'), bytes.subarray(1), bytes];
    content.spoil(digest, () => Readable.from([arrivals.shift() as Buffer]));
    const { index } = await content.write(directory);
    expect(arrivals).toEqual([]);
    expect(index.blobs.has(digest)).toBe(true);
    const intact = await directoryWith();
    await someContent().write(intact);
    expect((await readFile(part(directory))).equals(await readFile(part(intact)))).toBe(true);
  });

  it.each<[string, (content: ArchiveContent) => void, RegExp]>([
    [
      'a name with two images',
      (content) => void content.image('ns/one', 'v1'),
      /^ns\/one:v1: conflicting images sha256:/,
    ],
    [
      'an invalid repository name',
      (content) => void content.image('ns/../x', 'v1'),
      /invalid repository name "ns\/..\/x"/,
    ],
    ['an invalid tag', (content) => void content.image('ns/x', 'a/b'), /invalid tag "a\/b"$/],
    [
      'a missing manifest',
      (content) => void content.images.push({ repository: 'ns/x', tag: 'v1', root: descriptorOf('x') }),
      /^ns\/x:v1: manifest sha256:.* not found$/,
    ],
    [
      'one digest with two sizes',
      (content) =>
        void content.blobs.push({
          descriptor: { ...descriptorOf(''), size: 5 },
          open: () => Readable.from([]),
        }),
      /conflicting sizes: 5 and 0 bytes/,
    ],
    [
      'an invalid digest',
      (content) =>
        void content.blobs.push({
          descriptor: { mediaType: '', digest: 'sha256:../../x', size: 5 },
          open: () => Readable.from([]),
        }),
      /digest "sha256:\.\.\/\.\.\/x": invalid/,
    ],
  ])('refuses %s before anything is fetched', async (_what, change, message) => {
    const directory = await directoryWith();
    const content = someContent();
    change(content);
    const error = await failureOf(content.write(directory));
    expect(error.message).toMatch(message);
    expect([error.code, content.fetched.length, await readdir(directory)]).toEqual(['INVALID', 0, []]);
  });

  it('stops when cancelled, even within a blob, and resumes later', async () => {
    const directory = await directoryWith();
    const content = someContent();
    const stop = new AbortController();
    const { digest } = descriptorOf(layerBytes(1_500_000, 'c'));
    content.spoil(digest, () => {
      const endless = new Readable({ read: () => undefined });
      endless.push(layerBytes(1000, 'c'));
      const isWritten = async (): Promise<boolean> => {
        const sizes = (await partials(directory)).map(
          async (name) => (await stat(path.join(directory, name))).size,
        );
        return (await Promise.all(sizes)).some((size) => size > 0);
      };
      void expect
        .poll(isWritten, { interval: 5 })
        .toBe(true)
        .then(() => stop.abort());
      return endless;
    });
    const error = await failureOf(content.write(directory, { signal: stop.signal }));
    expect(error.code).toBe('CANCELLED');
    const again = someContent();
    const { keptBytes } = await again.write(directory);
    expect(keptBytes).toBeGreaterThan(0);
    expect(again.fetched).toContain(digest);
  });

  it('never writes through symbolic links', async () => {
    const directory = await directoryWith({ 'victim/file': 'precious' });
    const target = path.join(directory, 'target');
    const content = someContent();
    const order = [...(await content.write(path.join(directory, 'clean'))).index.blobs.keys()];
    await interrupt(target, content, order.at(-1) as string);
    const partial = (await partials(target)).find((name) => name.startsWith('mirror_000001')) as string;
    await rm(path.join(target, partial));
    await symlink(path.join(directory, 'victim/file'), path.join(target, partial));
    const error = await failureOf(content.write(target));
    expect(error.message).toMatch(/\.partial: too many levels of symbolic links$/);
    expect(await readFile(path.join(directory, 'victim/file'), 'utf8')).toBe('precious');
  });

  it('refuses more blobs than a reader accepts', async () => {
    const directory = await directoryWith();
    const [blob] = someContent().blobs;
    const blobs = new Array<typeof blob>(1_000_001).fill(blob) as ArchivedBlob[];
    const error = await failureOf(writeArchiveSet(directory, [], blobs, { partBytes: 1e9, lock: '' }));
    expect([error.code, error.message]).toEqual(['LIMIT', `${directory}: more than 1000000 blobs or images`]);
  });

  it('writes an archive without images', async () => {
    const directory = await directoryWith();
    const { index } = await writeArchiveSet(directory, [], [], { partBytes: 1, lock: '' });
    expect([index.parts.length, index.blobs.size, index.lock]).toEqual([1, 0, '']);
    expect((await openArchiveSets([directory])).entries).toEqual([]);
  });

  it('writes blobs with SHA-512 digests with headers that other programs read', async () => {
    const directory = await directoryWith();
    const bytes = layerBytes(2000, 'long');
    const hex = createHash('sha512').update(bytes).digest('hex');
    const content = someContent();
    const descriptor = { mediaType: mediaTypes.ociLayer, digest: `sha512:${hex}`, size: bytes.length };
    content.blobs.push({ descriptor, open: () => Readable.from([bytes]) });
    await content.write(directory);
    const archive = await openArchiveSets([directory]);
    expect(await readAll(await archive.repository('ns/one').openBlob(descriptor))).toEqual(bytes);
    const { stdout } = spawnSync('tar', ['-xOf', part(directory), `blobs/sha512/${hex}`]);
    expect(stdout).toEqual(bytes);
  });
});

describe('oci/archive-set, reading', () => {
  it('opens repositories by name with the blobs of all sets', async () => {
    const directory = await directoryWith();
    const content = someContent();
    await content.write(directory, { partBytes: 200_000 });
    const archive = await openArchiveSets([directory]);
    const two = archive.repository('ns/two');
    expect(await two.listTags()).toEqual(['v1']);
    const [, tagged, untagged] = content.images;
    expect(await two.headManifest('v1')).toEqual(tagged?.root);
    const { bytes } = await two.getManifest(untagged?.root.digest as string);
    const [blob] = (JSON.parse(bytes.toString()) as { layers: Descriptor[] }).layers;
    expect((await readAll(await two.openBlob(blob as Descriptor))).length).toBe(1_500_000);
    expect(await readAll(await two.openBlob(descriptorOf('')))).toHaveLength(0);
    await expect(two.getManifest('v2')).rejects.toThrow(/ns\/two:v2: not found/);
    expect(await archive.repository('ns/none').listTags()).toEqual([]);
    await archive.close();
  });

  it('lists the referrers of an image', async () => {
    const directory = await directoryWith();
    const content = someContent();
    const subject = content.images[0]?.root as Descriptor;
    const config = content.add('{}', mediaTypes.ociEmpty);
    const signature = content.manifest('ns/one', undefined, {
      artifactType: 'application/signature',
      config,
      layers: [content.add('signed')],
      subject,
    });
    await content.write(directory);
    const archive = await openArchiveSets([directory]);
    const referrers = await archive.repository('ns/one').listReferrers(subject.digest);
    expect(referrers).toEqual([{ ...signature, artifactType: 'application/signature' }]);
  });

  it('refuses damaged content', async () => {
    const directory = await directoryWith();
    const content = someContent();
    const { index } = await content.write(directory);
    const layer = descriptorOf(layerBytes(1_500_000, 'c'));
    const { offset } = index.blobs.get(layer.digest) as { offset: number };
    await flip(part(directory), offset + 1_499_999);
    const repository = (await openArchiveSets([directory])).repository('ns/two');
    await expect(readAll(await repository.openBlob(layer))).rejects.toThrow(
      /mirror_000001\.tar: \S+: blob sha256:\w{64}: content has digest sha256:\w{64}$/,
    );
    const root = content.images[1]?.root as Descriptor;
    await flip(part(directory), (index.blobs.get(root.digest) as { offset: number }).offset);
    await expect(repository.getManifest('v1')).rejects.toThrow(/content has digest/);
  });

  it.each<[string, (directory: string) => Promise<unknown>, string, RegExp]>([
    [
      'missing',
      (directory) => rm(part(directory)),
      'NOT_FOUND',
      /mirror_000001\.tar: part of the archive not found$/,
    ],
    [
      'too short',
      (directory) => truncate(part(directory), 1024),
      'DIGEST',
      /mirror_000001\.tar: expected \d+ bytes, got 1024$/,
    ],
    [
      'a link',
      async (directory) => {
        await rename(part(directory), path.join(directory, 'elsewhere'));
        await symlink('elsewhere', part(directory));
      },
      'INVALID',
      /mirror_000001\.tar: not a regular file$/,
    ],
    [
      'a directory',
      async (directory) => {
        await rm(part(directory));
        await mkdir(part(directory));
      },
      'INVALID',
      /mirror_000001\.tar: not a regular file$/,
    ],
  ])('refuses a part that is %s', async (_what, change, code, message) => {
    const directory = await directoryWith();
    await someContent().write(directory);
    await change(directory);
    const error = await failureOf(openArchiveSets([directory]));
    expect(error.code).toBe(code);
    expect(error.message).toMatch(message);
    expect(error.hint).toBeTruthy();
  });

  it.each<[string, (directory: string) => Promise<unknown>, string, RegExp]>([
    [
      'nothing',
      (directory) => rm(indexFile(directory)),
      'NOT_FOUND',
      /: not an archive: mirror_archive\.json not found$/,
    ],
    [
      'half of it',
      (directory) => truncate(indexFile(directory), 500),
      'SYNTAX',
      /mirror_archive\.json: invalid JSON$/,
    ],
    [
      'a link',
      async (directory) => {
        await rename(indexFile(directory), path.join(directory, 'elsewhere'));
        await symlink('elsewhere', indexFile(directory));
      },
      'IO',
      /too many levels of symbolic links$/,
    ],
    [
      'a pipe',
      async (directory) => {
        await rm(indexFile(directory));
        expect(spawnSync('mkfifo', [indexFile(directory)]).status).toBe(0);
      },
      'IO',
      /mirror_archive\.json: not an ordinary file$/,
    ],
    [
      'more than 256 MiB',
      (directory) => truncate(indexFile(directory), 2 ** 28 + 1),
      'LIMIT',
      /: more than 268435456 bytes$/,
    ],
  ])('says so where the index is %s', async (_what, change, code, message) => {
    const directory = await directoryWith();
    await someContent().write(directory);
    await change(directory);
    const error = await failureOf(readArchiveIndex(directory));
    expect(error.code).toBe(code);
    expect(error.message).toMatch(message);
  });

  it('reports a missing directory', async () => {
    const error = await failureOf(readArchiveIndex('/nowhere/at-all'));
    expect([error.code, error.message]).toEqual(['NOT_FOUND', '/nowhere/at-all: no such file or directory']);
  });

  // eslint-disable-next-line @typescript-eslint/no-explicit-any
  type Document = any;
  const digest = `sha256:${'0'.repeat(64)}`;
  it.each<[string, (document: Document) => unknown, RegExp]>([
    ['a newer version', (d) => (d.version = 2), /: version: unsupported value 2$/],
    ['no version', (d) => delete d.version, /: version: missing$/],
    ['no parts', (d) => (d.parts = []), /: no parts$/],
    [
      'parts that are an object',
      (d) => (d.parts = { length: 1e9 }),
      /parts: expected a list, got an object$/,
    ],
    ['a part of null', (d) => (d.parts[0] = null), /parts\[0\]: expected an object, got null$/],
    [
      'a part in a parent directory',
      (d) => (d.parts[0].file = '../mirror_000001.tar'),
      /parts\[0\]\.file: expected mirror_000001\.tar, got "\.\.\/mirror_000001\.tar"/,
    ],
    [
      'a part with an absolute path',
      (d) => (d.parts[0].file = '/etc/passwd'),
      /file: expected mirror_000001\.tar, got "\/etc\/passwd"/,
    ],
    [
      'a part of a negative size',
      (d) => (d.parts[0].size = -1),
      /parts\[0\]\.size: expected a size in bytes, got -1$/,
    ],
    [
      'a part of another size',
      (d) => (d.parts[0].size += 512),
      /mirror_000001\.tar: expected \d+ bytes, got \d+/,
    ],
    ['an empty sum', (d) => (d.parts[0].sha256 = ''), /parts\[0\]\.sha256: expected a SHA-256 sum, got ""$/],
    [
      'an offset outside of the part',
      (d) => (d.blobs.at(-1).offset = 1e12),
      /expected offset \d+ in mirror_000001\.tar, got 1000000000000/,
    ],
    [
      'a negative offset',
      (d) => (d.blobs[0].offset = -512),
      /blobs\[0\]\.offset: expected a size in bytes, got -512$/,
    ],
    [
      'an offset that is a string',
      (d) => (d.blobs[0].offset = '512'),
      /blobs\[0\]\.offset: expected a size in bytes, got a string$/,
    ],
    [
      'blobs that overlap',
      (d) => (d.blobs[1].offset = d.blobs[0].offset),
      /expected offset \d+ in mirror_000001\.tar, got \d+/,
    ],
    ['a duplicate blob', (d) => d.blobs.push(d.blobs[0]), /blobs\[\d+\]: duplicate sha256:\w+$/],
    ['a blob in a missing part', (d) => (d.blobs[0].part = 2), /part 2 not found/],
    ['a blob in part 0', (d) => (d.blobs[0].part = 0), /part 0 not found/],
    [
      'a digest that is a path',
      (d) => (d.blobs[0].digest = 'sha256:../../etc/passwd'),
      /blobs\[0\]\.digest: invalid digest "sha256:\.\.\/\.\.\/etc\/passwd"$/,
    ],
    [
      'a size that is too large',
      (d) => (d.blobs[0].size = 1e300),
      /blobs\[0\]\.size: expected a size in bytes, got 1e\+300$/,
    ],
    [
      'an image without its manifest',
      (d) => (d.images[0].digest = digest),
      /ns\/one:v1: sha256:0+: not found/,
    ],
    [
      'an image of another size',
      (d) => d.images[0].size++,
      /ns\/one:v1: sha256:\w+: expected \d+ bytes, got \d+/,
    ],
    [
      'an invalid repository name',
      (d) => (d.images[0].repository = '../x'),
      /images\[0\]\.repository: expected a repository name, got "\.\.\/x"$/,
    ],
    ['an invalid tag', (d) => (d.images[0].tag = 'a b'), /images\[0\]\.tag: expected a tag, got "a b"$/],
    ['a tag of null', (d) => (d.images[0].tag = null), /content does not match ID sha256:/],
    ['base blobs without a base', (d) => d.inBase.push({ digest, size: 1 }), /: base: missing$/],
    [
      'a blob here and in the base',
      (d) => ((d.base = digest), d.inBase.push(d.blobs[0])),
      /inBase\[0\]: duplicate sha256:\w+$/,
    ],
    ['another lock', (d) => (d.lock = 'other'), /content does not match ID sha256:/],
    ['a lock that is an object', (d) => (d.lock = {}), /lock: expected a string, got an object$/],
    ['an invalid ID', (d) => (d.id = 'x'), /id: invalid digest "x"$/],
    ['a list', (d) => [d], /mirror_archive\.json: expected an object, got a list$/],
  ])('refuses an index with %s', async (_what, change, message) => {
    const directory = await directoryWith();
    await someContent().write(directory);
    const document: Document = JSON.parse(await readFile(indexFile(directory), 'utf8'));
    const changed = change(document);
    await writeFile(
      indexFile(directory),
      JSON.stringify(Array.isArray(changed) && changed[0] === document ? changed : document),
    );
    const error = await failureOf(openArchiveSets([directory]));
    expect(error.message).toMatch(message);
    expect(error.file).toBe(indexFile(directory));
  });

  it('refuses more parts and blobs than the maximum', async () => {
    const directory = await directoryWith();
    const { index } = await someContent().write(directory);
    const document = JSON.parse(encodeArchiveIndex(index)) as Document;
    document.parts = new Array(10_001).fill(document.parts[0]);
    await writeFile(indexFile(directory), JSON.stringify(document));
    const error = await failureOf(readArchiveIndex(directory));
    expect([error.code, error.message]).toEqual([
      'LIMIT',
      `${indexFile(directory)}: parts: more than the maximum of 10000 entries`,
    ]);
    expect(computeSetId(index)).toBe(index.id);
  });
});
