import { createHash } from 'node:crypto';
import { stat } from 'node:fs/promises';
import path from 'node:path';
import type { Catalog } from '../../catalog/catalog.js';
import { openFile, readFully } from '../../catalog/file-access.js';
import { type CancelOptions, mapConcurrent, withOpen } from '../../core/concurrency.js';
import { getFileState, readdirIfPresent } from '../../files/file-status.js';
import { readRegularFile } from '../../files/read-file.js';
import { replaceFile } from '../../files/replace-file.js';

/**
 * Hashes of catalogs, which name their caches. Hashing reads every byte, so `opmate-HASH.state` beside the cache keeps
 * the state of the hashed files: places, sizes and times, as Git's index does.
 */

const pieceBytes = 1024 * 1024;
const hashedAtOnce = 3;
const statedAtOnce = 32;
const statePattern = /^opmate-([0-9a-f]{64})\.state$/;
/** Maximum states per hash: copies of the same catalog. */
const maxStates = 8;
const maxStateBytes = 64 * 1024;
/** Files changed within this time may change again with the same timestamp. */
const settledMs = 2000;

/** Hashes names and bytes of a catalog's files, in walk order; undefined for a catalog without files. Throws OpmateError IO. */
export async function hashCatalog(
  catalog: Catalog,
  { signal }: CancelOptions = {},
): Promise<string | undefined> {
  // One buffer per file being hashed.
  const pieces = Array.from({ length: hashedAtOnce }, () => Buffer.allocUnsafeSlow(pieceBytes));
  const hash = async (file: CatalogFile): Promise<string> => {
    const piece = pieces.pop() as Buffer<ArrayBuffer>;
    try {
      return await hashFile(file, piece);
    } finally {
      pieces.push(piece);
    }
  };
  return digestFiles(await catalog.listFiles?.(), hashedAtOnce, hash, { signal });
}

interface CatalogFile {
  path: string;
  name: string;
}

/** Hashes names and descriptions of files; undefined without files or if one has no description. */
async function digestFiles(
  files: readonly CatalogFile[] | undefined,
  concurrency: number,
  describe: (file: CatalogFile) => Promise<string | undefined>,
  options: CancelOptions,
): Promise<string | undefined> {
  if (files === undefined) return undefined;
  const descriptions = await mapConcurrent(files, concurrency, describe, options);
  const hash = createHash('sha256');
  for (const [index, { name }] of files.entries()) {
    const description = descriptions[index];
    if (description === undefined) return undefined;
    // Lengths delimit the names: no two trees hash the same text.
    hash.update(`${Buffer.byteLength(name)}:${name}:${description}`);
  }
  return hash.digest('hex');
}

async function hashFile({ path: file, name }: CatalogFile, piece: Buffer): Promise<string> {
  const hash = createHash('sha256');
  return withOpen(openFile(file, name), async (handle) => {
    for (let size = 0; ; size += piece.length) {
      const got = await readFully(handle, piece, size, name);
      hash.update(piece.subarray(0, got));
      if (got < piece.length) return `${size + got}:${hash.digest('hex')}`;
    }
  });
}

interface CatalogState {
  digest: string;
  /** Time of the latest change of a file, in milliseconds. */
  changedAt: number;
}

/**
 * Reads the state of a catalog's files: name, device, inode, size, times of content and inode. Undefined for a catalog
 * without files or with irregular or unreadable ones. Throws OpmateError IO where they cannot be listed.
 */
async function readState(catalog: Catalog, { signal }: CancelOptions): Promise<CatalogState | undefined> {
  let changedAt = 0;
  const describe = async ({ path: file }: CatalogFile): Promise<string | undefined> => {
    const stats = await stat(file, { bigint: true }).catch(() => undefined);
    if (stats?.isFile() !== true) return undefined;
    changedAt = Math.max(changedAt, Number(stats.ctimeNs / 1_000_000n));
    return `${getFileState(stats)}\n`;
  };
  const digest = await digestFiles(await catalog.listFiles?.(), statedAtOnce, describe, { signal });
  return digest === undefined ? undefined : { digest, changedAt };
}

/** Finds the hash that was recorded for the present state of a catalog's files. Throws OpmateError IO. */
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

interface HashedCatalog {
  hash: string;
  /** State of the files; undefined if they changed meanwhile or just before: the same state may have other content. */
  state: string | undefined;
}

/** Hashes a catalog with its state; undefined for one without files. Throws OpmateError IO. */
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

/** Records the state of a hashed catalog beside its cache, for `findKnownHash`. Ignores failures. */
export async function keepState(directory: string, { hash, state }: HashedCatalog): Promise<void> {
  if (state === undefined) return;
  const file = path.join(directory, `opmate-${hash}.state`);
  const others = (await readStates(file)).filter((digest) => digest !== state);
  const states = [state, ...others].slice(0, maxStates);
  await replaceFile(file, `${states.join('\n')}\n`, { mode: 0o644 }).catch(() => undefined);
}

/** Returns the hash in the name of a state file; undefined for other names. */
export function getStateOwner(name: string): string | undefined {
  return statePattern.exec(name)?.[1];
}

async function readStates(file: string): Promise<string[]> {
  const bytes = await readRegularFile(file, maxStateBytes).catch(() => undefined);
  return bytes === undefined ? [] : bytes.toString('latin1').split('\n').filter(Boolean);
}
