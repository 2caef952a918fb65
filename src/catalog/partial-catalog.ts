import { throwIfCancelled } from '../core/errors.js';
import { decodeUtf8, parseGoJson } from '../document/go-json.js';
import type { BlobOrigin } from '../model/facts.js';
import type { Catalog, MetasOptions } from './catalog.js';
import { type Meta, toMeta } from './meta.js';

/** Returns a catalog of some blobs of another, which must stay open. */
export function createPartialCatalog(catalog: Catalog, origins: readonly BlobOrigin[]): Catalog {
  return {
    name: catalog.name,
    metas: (options) => readBlobsAt(catalog, origins, options),
    read: (origin) => catalog.read(origin),
    readText: (origin) => catalog.readText(origin),
    lineOf: (origin, path) => catalog.lineOf(origin, path),
    close: () => Promise.resolve(),
  };
}

/** Reads blobs again: files in the order of their first blob, blobs of a file by offset. */
export async function* readBlobsAt(
  catalog: Catalog,
  origins: readonly BlobOrigin[],
  { signal }: MetasOptions = {},
): AsyncGenerator<Meta, void, undefined> {
  const files = new Map<string, number>();
  for (const { file } of origins) if (!files.has(file)) files.set(file, files.size);
  const getRank = ({ file }: BlobOrigin): number => files.get(file) as number;
  for (const origin of [...origins].sort((a, b) => getRank(a) - getRank(b) || a.offset - b.offset)) {
    throwIfCancelled(signal);
    const { syntax } = origin;
    const text = syntax === 'json' ? decodeUtf8(await catalog.readText(origin)) : undefined;
    const value = text === undefined ? await catalog.read(origin) : parseGoJson(text);
    yield { ...toMeta(value, syntax, origin), text };
  }
}
