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

/** A file of an image. */
export interface HashedFile extends FilePart {
  /** With slashes. */
  path: string;
}

/**
 * Computes the hash by which `opm serve` matches a cache to its catalog: 64-bit FNV-1a over Go's tar archives of both, with
 * directories of mode 0755 and files of mode 0644. (Source: pkg/cache/tar.go of operator-registry; archive/tar of Go.)
 */
export async function hashOpmTrees(
  trees: readonly (readonly HashedFile[])[],
  signal?: AbortSignal,
): Promise<string> {
  const hash = new Fnv64();
  await withOpen(new FilePartReader({ reuses: true }), async (reader) => {
    for (const tree of trees) {
      hash.update(getHeader('.', { isDirectory: true, size: 0 }));
      for (const { path, file } of toWalkOrder(tree)) {
        throwIfCancelled(signal);
        hash.update(getHeader(path, { isDirectory: file === undefined, size: file?.size ?? 0 }));
        if (file === undefined) continue;
        for await (const piece of reader.read(file, path)) {
          throwIfCancelled(signal);
          hash.update(piece);
        }
        hash.update(getPadding(file.size));
      }
      hash.update(tarEnd);
    }
  });
  return hash.digest();
}

/** Sorts as Go walks: names of a directory in byte order, each followed by its content. */
function toWalkOrder(files: readonly HashedFile[]): { path: string; file?: HashedFile }[] {
  const entries = new Map<string, HashedFile | undefined>();
  for (const file of files) {
    for (let slash = file.path.indexOf('/'); slash > 0; slash = file.path.indexOf('/', slash + 1))
      entries.set(file.path.slice(0, slash), undefined);
    entries.set(file.path, file);
  }
  // Slashes sort before all other characters.
  const keyed = [...entries].map(([path, file]) => ({ key: path.replaceAll('/', '\0'), path, file }));
  keyed.sort((a, b) => compareBytes(a.key, b.key));
  return keyed.map(({ path, file }) => (file === undefined ? { path } : { path, file }));
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

/** 64-bit FNV-1a in two halves: a BigInt per byte would take a minute for a large catalog. */
class Fnv64 {
  #high = 0xcbf29ce4 | 0;
  #low = 0x84222325 | 0;

  update(bytes: Uint8Array): void {
    let high = this.#high;
    let low = this.#low;
    for (let index = 0; index < bytes.length; index++) {
      low ^= bytes[index] as number;
      // Times 2^40 + 0x1b3, in 32-bit integers; the next byte waits only for the low half.
      const carry = ((low >>> 16) * 0x1b3 + (((low & 0xffff) * 0x1b3) >>> 16)) >>> 16;
      high = (Math.imul(high, 0x1b3) + carry + (low << 8)) | 0;
      low = Math.imul(low, 0x1b3);
    }
    this.#high = high;
    this.#low = low;
  }

  digest(): string {
    return [this.#high, this.#low].map((half) => (half >>> 0).toString(16).padStart(8, '0')).join('');
  }
}

/** Returns the 64-bit FNV-1a as Go's `%x` prints it, without leading zeros. */
export function computeFnv(bytes: Uint8Array): string {
  const hash = new Fnv64();
  hash.update(bytes);
  return hash.digest().replace(/^0+(?=.)/, '');
}
