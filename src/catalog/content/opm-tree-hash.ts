import {
  encodePaxRecord,
  encodeTarHeader,
  maxTarName,
  paddedSize,
  tarEnd,
} from '../../archive/tar-header.js';
import { withOpen } from '../../core/concurrency.js';
import { throwIfCancelled } from '../../core/errors.js';
import { compareBytes } from '../../core/order.js';
import { type FilePart, FilePartReader } from '../../files/file-parts.js';
import { FnvPair, type HashSide } from './fnv.js';

/** A file of an image. */
export interface HashedFile extends FilePart {
  /** With slashes. */
  path: string;
}

/**
 * Computes the hash by which `opm serve` matches a cache to its catalog: 64-bit FNV-1a over Go's tar archives of both, with
 * directories of mode 0755 and files of mode 0644. (Source: pkg/cache/tar.go of operator-registry; archive/tar of Go.)
 */
export async function hashOpmTrees(trees: readonly HashedTree[], signal?: AbortSignal): Promise<string> {
  const changes = trees.map((tree) => ({ before: tree, after: tree }));
  return (await hashChangedTrees(changes, signal)).after;
}

/** Files of a directory, in any order. */
type HashedTree = readonly HashedFile[];

/** A directory before and after a change. */
interface ChangedTree {
  before: HashedTree;
  after: HashedTree;
}

/** Computes the hashes of `hashOpmTrees` before and after a change; files that are the same part are read once. */
export async function hashChangedTrees(
  trees: readonly ChangedTree[],
  signal?: AbortSignal,
): Promise<{ before: string; after: string }> {
  const hash = new FnvPair();
  await withOpen(new FilePartReader({ reuses: true }), async (reader) => {
    for (const tree of trees) {
      hash.update(getHeader('.', { isDirectory: true, size: 0 }), 'both');
      for (const { path, file, side } of toWalkOrder(tree)) {
        throwIfCancelled(signal);
        hash.update(getHeader(path, { isDirectory: file === undefined, size: file?.size ?? 0 }), side);
        if (file === undefined) continue;
        for await (const piece of reader.read(file, path)) {
          throwIfCancelled(signal);
          hash.update(piece, side);
        }
        hash.update(getPadding(file.size), side);
      }
      hash.update(tarEnd, 'both');
    }
  });
  return hash.digests();
}

/** A file, or a directory without `file`. */
interface WalkedEntry {
  path: string;
  file: HashedFile | undefined;
  side: HashSide;
}

/** Returns the entries of both trees as Go walks: names of a directory in byte order, each followed by its content. */
function toWalkOrder({ before, after }: ChangedTree): WalkedEntry[] {
  const [old, current] = [listEntries(before), before === after ? undefined : listEntries(after)];
  const walked: { key: string; entry: WalkedEntry }[] = [];
  const add = (entry: WalkedEntry): void =>
    // Slashes sort before all other characters.
    void walked.push({ key: entry.path.replaceAll('/', '\0'), entry });
  for (const [path, file] of old) {
    const isKept = current === undefined || (current.has(path) && isSamePart(file, current.get(path)));
    add({ path, file, side: isKept ? 'both' : 'before' });
    if (isKept) current?.delete(path);
  }
  for (const [path, file] of current ?? []) add({ path, file, side: 'after' });
  return walked.sort((a, b) => compareBytes(a.key, b.key)).map(({ entry }) => entry);
}

/** Returns the files of a tree and their directories, which have no value. */
function listEntries(tree: HashedTree): Map<string, HashedFile | undefined> {
  const entries = new Map<string, HashedFile | undefined>();
  for (const file of tree) {
    for (let slash = file.path.indexOf('/'); slash > 0; slash = file.path.indexOf('/', slash + 1))
      entries.set(file.path.slice(0, slash), undefined);
    entries.set(file.path, file);
  }
  return entries;
}

function isSamePart(one: FilePart | undefined, other: FilePart | undefined): boolean {
  return one?.file === other?.file && one?.offset === other?.offset && one?.size === other?.size;
}

const maxPrefix = 155;

function getPadding(size: number): Buffer {
  return Buffer.alloc(paddedSize(size) - size);
}

/** Returns the bytes before the content of an entry. */
function getHeader(path: string, { isDirectory, size }: { isDirectory: boolean; size: number }): Buffer {
  const type = isDirectory ? '5' : '0';
  const mode = isDirectory ? 0o755 : 0o644;
  const isPlain = /^[\u0000-\u007f]*$/.test(path);
  const split = isPlain && path.length > maxTarName ? splitName(path) : { prefix: '', name: path };
  if (isPlain && split !== undefined) return encodeTarHeader({ ...split, mode, size, type });
  const slash = path.lastIndexOf('/') + 1;
  const record = Buffer.from(encodePaxRecord('path', path));
  const extendedName = toAscii(`${path.slice(0, slash)}PaxHeaders.0/${path.slice(slash)}`);
  const extended = encodeTarHeader({
    name: extendedName.slice(0, maxTarName).replace(/\/+$/, ''),
    mode: 0,
    size: record.length,
    type: 'x',
    hasDevices: false,
  });
  const header = encodeTarHeader({ name: toAscii(path), mode, size, type });
  return Buffer.concat([extended, record, getPadding(record.length), header]);
}

function toAscii(text: string): string {
  return text.replaceAll(/[^\u0001-\u007f]/gu, '');
}

/** Splits a long name for the ustar fields; undefined where it does not fit. */
function splitName(path: string): { prefix: string; name: string } | undefined {
  const slash = path.slice(0, maxPrefix + 1).lastIndexOf('/');
  if (slash <= 0 || path.length - slash - 1 > maxTarName || slash > maxPrefix) return undefined;
  return { prefix: path.slice(0, slash), name: path.slice(slash + 1) };
}
