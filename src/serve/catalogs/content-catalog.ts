import type { Catalog, MetasOptions } from '../../catalog/catalog.js';
import { type Meta, toMeta } from '../../catalog/meta.js';
import { OpmateError, throwIfCancelled } from '../../core/errors.js';
import { parseGoJson } from '../../document/go-json.js';
import { type JsonObject, isJsonObject } from '../../document/json.js';
import type { BlobOrigin } from '../../model/facts.js';
import { type ContentReader, type StoredContent, readSection } from './stored-content.js';

/** Stored content as a catalog, readable until it is closed itself. */
export class ContentCatalog implements Catalog {
  readonly name: string;
  readonly #content: StoredContent;
  readonly #reader: ContentReader;

  /** `name` is for messages. Throws OpmateError for closed content. */
  constructor(name: string, content: StoredContent) {
    this.name = name;
    this.#content = content;
    this.#reader = content.openReader();
  }

  async *metas({ signal }: MetasOptions = {}): AsyncGenerator<Meta, void, undefined> {
    for (const { section } of this.#content.blobs()) {
      throwIfCancelled(signal);
      const origin: BlobOrigin = { file: this.name, ...section, syntax: 'json' };
      yield toMeta(await this.read(origin), 'json', origin);
    }
  }

  async read(origin: BlobOrigin): Promise<JsonObject> {
    const value = parseGoJson(String(await this.readText(origin)));
    if (isJsonObject(value)) return value;
    throw new OpmateError('INTERNAL', `${this.name}: expected a stored blob to be an object`);
  }

  readText(origin: BlobOrigin): Promise<Buffer> {
    return readSection(this.#reader, origin);
  }

  /** Undefined: lines of stored content mean nothing to users. */
  lineOf(): Promise<undefined> {
    return Promise.resolve(undefined);
  }

  close(): Promise<void> {
    this.#reader.close();
    return Promise.resolve();
  }
}
