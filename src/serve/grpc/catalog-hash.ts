import { createHash } from 'node:crypto';
import { stat } from 'node:fs/promises';
import path from 'node:path';
import type { Catalog } from '../../catalog/catalog.js';
import { openFile, readFully } from '../../catalog/file-access.js';
import { type CancelOptions, mapConcurrent } from '../../core/concurrency.js';
import { getFileState, readdirIfPresent } from '../../files/file-status.js';
import { readRegularFile } from '../../files/read-file.js';
import { replaceFile } from '../../files/replace-file.js';

/**
 * Hashes of catalogs, by which their caches are named. Hashing reads every byte, so the state of the files that had a
 * hash is kept beside the cache, in `opmate-HASH.state`: places, sizes and times, as Git's index keeps them.
 */

const pieceBytes = 1024 * 1024;
const hashedAtOnce = 3;
const statedAtOnce = 32;
const statePattern = /^opmate-([0-9a-f]{64})\.state$/;
/** States of one hash: copies of the same catalog. */
const maxStates = 8;
const maxStateBytes = 64 * 1024;
/** Files changed within this time may change again without another time: clocks of file systems have steps. */
const settledMs = 2000;

/**
 * The hash of a catalog's content: of names and bytes of its files, in walk order. Undefined for a catalog that is
 * not made of files. Throws OpmateError IO.
 */
export async function hashCatalog(
  catalog: Catalog,
  { signal }: CancelOptions = {},
): Promise<string | undefined> {
  const files = await catalog.listFiles?.();
  if (files === undefined) return undefined;
  const hash = createHash('sha256');
  // One piece of memory a file under way, however many there are.
  const pieces = Array.from({ length: hashedAtOnce }, () => Buffer.allocUnsafeSlow(pieceBytes));
  const hashes = await mapConcurrent(
    files,
    hashedAtOnce,
    async (file) => {
      const piece = pieces.pop() as Buffer<ArrayBuffer>;
      try {
        return await hashFile(file, piece);
      } finally {
        pieces.push(piece);
      }
    },
    { signal },
  );
  // The lengths tell where a name ends, so that no two trees are hashed as the same text.
  for (const [index, { name }] of files.entries()) {
    hash.update(`${Buffer.byteLength(name)}:${name}:`).update(hashes[index] as string);
  }
  return hash.digest('hex');
}

/** One file is read while another is hashed. */
async function hashFile(
  { path: file, name }: { path: string; name: string },
  piece: Buffer,
): Promise<string> {
  const hash = createHash('sha256');
  const handle = await openFile(file, name);
  try {
    for (let size = 0; ; size += piece.length) {
      const got = await readFully(handle, piece, size, name);
      hash.update(piece.subarray(0, got));
      if (got < piece.length) return `${size + got}:${hash.digest('hex')}`;
    }
  } finally {
    await handle.close();
  }
}

interface CatalogState {
  digest: string;
  /** When the file that was changed last was changed, in milliseconds. */
  changedAt: number;
}

/**
 * Reads the state of a catalog's files: name, device, inode, size, times of content and inode. Undefined for a catalog
 * that is not made of regular files, and where a file cannot be read. Throws OpmateError IO where they cannot be listed.
 */
async function readState(catalog: Catalog, { signal }: CancelOptions): Promise<CatalogState | undefined> {
  const files = await catalog.listFiles?.();
  if (files === undefined) return undefined;
  const hash = createHash('sha256');
  let changedAt = 0;
  const states = await mapConcurrent(
    files,
    statedAtOnce,
    async ({ path: file }) => {
      const stats = await stat(file, { bigint: true }).catch(() => undefined);
      if (stats?.isFile() !== true) return undefined;
      changedAt = Math.max(changedAt, Number(stats.ctimeNs / 1_000_000n));
      return getFileState(stats);
    },
    { signal },
  );
  for (const [index, { name }] of files.entries()) {
    const state = states[index];
    if (state === undefined) return undefined;
    hash.update(`${Buffer.byteLength(name)}:${name}:${state}\n`);
  }
  return { digest: hash.digest('hex'), changedAt };
}

/** Finds the hash that a catalog had when its files were in their present state. Throws OpmateError IO. */
export async function findKnownHash(
  catalog: Catalog,
  directory: string,
  options: CancelOptions,
): Promise<string | undefined> {
  const names = (await readdirIfPresent(directory).catch(() => [])).filter((name) => statePattern.test(name));
  const state = names.length === 0 ? undefined : await readState(catalog, options);
  if (state === undefined) return undefined;
  for (const name of names) {
    const states = await readStates(path.join(directory, name));
    if (states.includes(state.digest)) return getStateOwner(name);
  }
  return undefined;
}

/** A hash of a catalog, with the state that its files had. */
interface HashedCatalog {
  hash: string;
  /** Undefined where the files changed meanwhile or just before: they may have other content in the same state. */
  state: string | undefined;
}

/** Hashes a catalog. Undefined for one that is not made of files. Throws OpmateError IO. */
export async function hashWithState(
  catalog: Catalog,
  { now, signal }: CancelOptions & { now: () => Date },
): Promise<HashedCatalog | undefined> {
  const startedAt = now().getTime();
  const before = await readState(catalog, { signal });
  const hash = await hashCatalog(catalog, { signal });
  if (hash === undefined) return undefined;
  const isSettled = before !== undefined && before.changedAt < startedAt - settledMs;
  const after = isSettled ? await readState(catalog, { signal }) : undefined;
  return { hash, state: after?.digest === before?.digest ? after?.digest : undefined };
}

/** Keeps the state of a hashed catalog beside its cache, for `findKnownHash`; nothing where that cannot be written. */
export async function keepState(directory: string, { hash, state }: HashedCatalog): Promise<void> {
  if (state === undefined) return;
  const file = path.join(directory, `opmate-${hash}.state`);
  const others = (await readStates(file)).filter((digest) => digest !== state);
  const states = [state, ...others].slice(0, maxStates);
  await replaceFile(file, `${states.join('\n')}\n`, { mode: 0o644 }).catch(() => undefined);
}

/** Returns the hash that a file of the cache directory has the states of. */
export function getStateOwner(name: string): string | undefined {
  return statePattern.exec(name)?.[1];
}

async function readStates(file: string): Promise<string[]> {
  const bytes = await readRegularFile(file, maxStateBytes).catch(() => undefined);
  return bytes === undefined ? [] : bytes.toString('latin1').split('\n').filter(Boolean);
}
