import type { Catalog } from '../../catalog/catalog.js';
import { toMeta } from '../../catalog/meta.js';
import { OpmateError, throwIfCancelled } from '../../core/errors.js';
import { parseGoJson } from '../../document/go-json.js';
import { type JsonObject, isJsonObject } from '../../document/json.js';
import type { BlobOrigin } from '../../model/facts.js';
import { type StoredContent, readSection } from './stored-content.js';

/**
 * Opens stored content as a catalog, readable until it is closed itself. `name` is for messages. Throws OpmateError for
 * closed content.
 */
export function openContentCatalog(name: string, content: StoredContent): Catalog {
  const reader = content.openReader();
  const read = async (origin: BlobOrigin): Promise<JsonObject> => {
    const value = parseGoJson(String(await readSection(reader, origin)));
    if (isJsonObject(value)) return value;
    throw new OpmateError('INTERNAL', `${name}: expected a stored blob to be an object`);
  };
  return {
    name,
    async *metas({ signal } = {}) {
      for (const { section } of content.blobs()) {
        throwIfCancelled(signal);
        const origin: BlobOrigin = { file: name, ...section, syntax: 'json' };
        yield toMeta(await read(origin), 'json', origin);
      }
    },
    read,
    readText: (origin) => readSection(reader, origin),
    // Lines of stored content mean nothing to users.
    lineOf: () => Promise.resolve(undefined),
    close: async () => reader.close(),
  };
}
