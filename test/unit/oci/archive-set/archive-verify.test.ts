import { appendFile, open, readFile, rm, symlink, truncate, writeFile } from 'node:fs/promises';
import path from 'node:path';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { OpmateError } from '../../../../src/core/errors.js';
import { type ArchiveDiagnostic, verifyArchiveSet } from '../../../../src/oci/archive-set/archive-verify.js';
import type { ArchiveIndex } from '../../../../src/oci/archive-set/archive-index.js';
import { mediaTypes } from '../../../../src/oci/image/types.js';
import { ArchiveContent, layerBytes, someContent } from '../../../support/archive-content.js';
import { bytesOf, descriptorOf } from '../../../support/images.js';
import { directoryWith } from '../../../support/temporary.js';

const at = (directory: string, number: number): string =>
  path.join(directory, `mirror_${String(number).padStart(6, '0')}.tar`);

async function flip(file: string, offset: number): Promise<void> {
  const handle = await open(file, 'r+');
  const byte = Buffer.alloc(1);
  await handle.read(byte, 0, 1, offset);
  await handle.write(Buffer.from([(byte[0] as number) ^ 1]), 0, 1, offset);
  await handle.close();
}

/** An archive in two parts or more. */
async function someArchive(): Promise<{ directory: string; index: ArchiveIndex }> {
  const directory = await directoryWith();
  const { index } = await someContent().write(directory, { partBytes: 200_000 });
  expect(index.parts.length).toBeGreaterThan(1);
  return { directory, index };
}

describe('oci/archive-verify', () => {
  it('finds no problems in a new archive', async () => {
    const { directory } = await someArchive();
    expect(await verifyArchiveSet(directory)).toEqual([]);
  });

  it('names a changed blob', async () => {
    const { directory, index } = await someArchive();
    const expected: ArchiveDiagnostic[] = [];
    for (const [digest, { part, offset, size }] of index.blobs) {
      if (size === 0) continue;
      await flip(at(directory, part), offset + size - 1);
      const { file } = index.parts[part - 1] as { file: string };
      const problem = 'content does not match its digest';
      expected.push({ severity: 'error', code: 'damaged', subject: digest, problem, file });
    }
    expect(await verifyArchiveSet(directory)).toEqual(expected);
  });

  it('detects any changed byte of any file', async () => {
    const directory = await directoryWith();
    const content = new ArchiveContent();
    content.image('ns/one', 'v1', 'layer', '');
    content.image('ns/two', undefined, layerBytes(700, 'x'));
    const { index } = await content.write(directory, { partBytes: 4096 });
    const files = [...index.parts.map(({ file }) => file), 'mirror_archive.json'];
    const originals = new Map<string, Buffer>();
    for (const file of files) originals.set(file, await readFile(path.join(directory, file)));
    const space = new Set([0x20, 0x0a]);
    await fc.assert(
      fc.asyncProperty(
        fc.constantFrom(...files),
        fc.nat(),
        fc.integer({ min: 1, max: 255 }),
        async (name, n, x) => {
          const bytes = Buffer.from(originals.get(name) as Buffer);
          const position = n % bytes.length;
          const before = bytes[position] as number;
          bytes[position] = before ^ x;
          // White space between the tokens of JSON may be any.
          fc.pre(!name.endsWith('.json') || !space.has(before));
          await writeFile(path.join(directory, name), bytes);
          const faults = await verifyArchiveSet(directory).catch((error: unknown) => {
            if (error instanceof OpmateError) return [error];
            throw error;
          });
          await writeFile(path.join(directory, name), originals.get(name) as Buffer);
          expect(faults.length).toBeGreaterThan(0);
        },
      ),
      { numRuns: 150 },
    );
    expect(await verifyArchiveSet(directory)).toEqual([]);
  });

  it.each<[string, (directory: string, index: ArchiveIndex) => Promise<unknown>, RegExp]>([
    ['a missing part', (directory) => rm(at(directory, 2)), /^part of the archive not found$/],
    [
      'a part that is too short',
      (directory) => truncate(at(directory, 2), 1000),
      /^expected \d+ bytes, got 1000$/,
    ],
    [
      'a part that is too long',
      (directory) => appendFile(at(directory, 2), 'x'),
      /^expected \d+ bytes, got \d+$/,
    ],
    [
      'a part that is a symbolic link',
      async (directory) => {
        await rm(at(directory, 2));
        await symlink('mirror_000001.tar', at(directory, 2));
      },
      /^not a regular file$/,
    ],
    [
      'a changed tar header',
      async (directory, index) => {
        const [, { offset }] = [...index.blobs].find(([, { part }]) => part === 2) as [
          string,
          { offset: number },
        ];
        await flip(at(directory, 2), offset - 512 + 124);
      },
      /^tar header of sha256:\w+ does not match the index$/,
    ],
    [
      'changed padding',
      async (directory, index) => {
        const [, { offset, size }] = [...index.blobs].find(([, b]) => b.part === 2 && b.size % 512 > 0) as [
          string,
          { offset: number; size: number },
        ];
        await flip(at(directory, 2), offset + size);
      },
      /^padding of sha256:\w+ does not match the index$/,
    ],
    [
      'a changed list of images',
      async (directory, index) => flip(at(directory, 2), (index.parts[1]?.size as number) - 1600),
      /^end of the archive does not match the index$/,
    ],
    [
      'a wrong sum',
      async (directory, index) => {
        const file = path.join(directory, 'mirror_archive.json');
        const text = await readFile(file, 'utf8');
        await writeFile(file, text.replace(index.parts[1]?.sha256 as string, '0'.repeat(64)));
      },
      /^expected SHA-256 sum 0{64}, got [0-9a-f]{64}$/,
    ],
  ])('reports only %s', async (_what, change, message) => {
    const { directory, index } = await someArchive();
    await change(directory, index);
    const faults = await verifyArchiveSet(directory);
    expect(faults).toEqual([
      {
        severity: 'error',
        code: expect.stringMatching(/^damaged$|^unreadable$/) as string,
        file: 'mirror_000002.tar',
        problem: expect.stringMatching(message) as string,
      },
    ]);
  });

  it('reports parts that do not belong to the archive', async () => {
    const { directory } = await someArchive();
    await writeFile(at(directory, 7), '');
    await writeFile(path.join(directory, 'mirror_000008.tar.old'), '');
    expect(await verifyArchiveSet(directory)).toEqual([
      {
        severity: 'error',
        code: 'unexpected-file',
        file: 'mirror_000007.tar',
        problem: 'not part of this archive',
      },
    ]);
  });

  it('reports blobs that are missing from the archive and its base', async () => {
    const directory = await directoryWith();
    const content = new ArchiveContent();
    const absent = descriptorOf('absent');
    const foreign = descriptorOf('foreign', 'application/vnd.docker.image.rootfs.foreign.diff.tar.gzip');
    const config = content.add('{}', mediaTypes.ociConfig);
    const child = bytesOf({
      schemaVersion: 2,
      mediaType: mediaTypes.ociManifest,
      config,
      layers: [absent, foreign],
    });
    const manifests = [
      content.add(child, mediaTypes.ociManifest),
      descriptorOf('arm64', mediaTypes.ociManifest),
    ];
    content.manifest('ns/one', 'v1', { mediaType: mediaTypes.ociIndex, manifests });
    await content.write(directory);
    expect(await verifyArchiveSet(directory)).toEqual([
      {
        file: 'mirror_archive.json',
        severity: 'error',
        code: 'missing-blob',
        subject: absent.digest,
        problem: 'required by ns/one:v1, missing from the archive and its base',
      },
    ]);
  });

  it('accepts blobs of the base', async () => {
    const [one, two] = [await directoryWith(), await directoryWith()];
    const { index: base } = await someContent().write(one);
    const content = someContent();
    content.image('ns/three', 'v1', layerBytes(70_000, 'shared'), 'new');
    await content.write(two, { base });
    expect(await verifyArchiveSet(two)).toEqual([]);
  });

  it('reports an invalid manifest', async () => {
    const directory = await directoryWith();
    const content = new ArchiveContent();
    const root = content.add('not JSON', mediaTypes.ociManifest);
    content.images.push({ repository: 'ns/one', tag: 'v1', root });
    await content.write(directory);
    const [fault] = await verifyArchiveSet(directory);
    expect(fault).toMatchObject({ file: 'mirror_000001.tar', subject: root.digest });
    expect(fault?.problem).toMatch(/^ns\/one:v1: .*: invalid JSON$/);
  });

  it('reports progress and stops when cancelled', async () => {
    const { directory, index } = await someArchive();
    const stop = new AbortController();
    let last = 0;
    const logger = {
      log: () => undefined,
      progress: ({ current = last }) => {
        last = current;
        if (current > 1_000_000) stop.abort();
      },
    };
    await expect(verifyArchiveSet(directory, { logger, signal: stop.signal })).rejects.toThrow('cancelled');
    expect(last).toBeGreaterThan(1_000_000);
    await verifyArchiveSet(directory, { logger });
    expect(last).toBe(index.parts.reduce((sum, { size }) => sum + size, 0));
  });
});
