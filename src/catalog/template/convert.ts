import type { CancelOptions } from '../../core/concurrency.js';
import { throwIfCancelled } from '../../core/errors.js';
import { encodeGoJson, sortKeysDeep } from '../../document/go-json.js';
import type { EncodableJson } from '../../document/json.js';
import { encodeYaml } from '../../document/yaml.js';
import { schemas } from '../../model/declarative-config.js';
import { decodeBundle } from '../../model/decode.js';
import { type CatalogFormat, jsonIndent } from '../../model/encode.js';
import type { Meta } from '../meta.js';
import { Spool, type SpoolSlot } from '../spool.js';
import { templateSchemas } from './template.js';

/** Template kinds that a catalog can be converted to. */
export type ConvertedType = 'basic' | 'substitutes';

/** A template converted from a catalog entry by entry. Its text waits in a spool, so memory does not grow with it. */
export class TemplateConversion {
  readonly #type: ConvertedType;
  readonly #format: CatalogFormat;
  readonly #spool: Spool;
  readonly #slots: SpoolSlot[] = [];

  /** `temporaryDirectory` is for text that does not fit in memory. */
  constructor(options: { type: ConvertedType; format: CatalogFormat; temporaryDirectory: string }) {
    this.#type = options.type;
    this.#format = options.format;
    this.#spool = new Spool(options.temporaryDirectory);
  }

  /**
   * Adds a blob of the catalog; a bundle of a basic template keeps schema and image only. Throws OpmateError INVALID
   * for an invalid bundle.
   */
  async add(meta: Meta): Promise<void> {
    const isShort = this.#type === 'basic' && meta.schema === schemas.bundle;
    const entry = isShort ? shortBundle(meta) : sortKeysDeep(meta.value);
    this.#slots.push(await this.#spool.append(this.#encode(entry)));
  }

  /** Encodes an entry for the list of entries. */
  #encode(entry: EncodableJson): string {
    if (this.#format === 'yaml') return encodeYaml([entry]);
    const margin = ' '.repeat(2 * jsonIndent);
    const text = encodeGoJson(entry, { indent: jsonIndent, escapeHtml: true });
    return `\n${margin}${text.replaceAll('\n', `\n${margin}`)}`;
  }

  /** Yields the template with the bytes of `opm alpha convert-template`. */
  async *write(options: CancelOptions = {}): AsyncGenerator<Buffer | string, void, undefined> {
    const schema = templateSchemas[this.#type];
    const isEmpty = this.#slots.length === 0;
    const inYaml = this.#format === 'yaml';
    if (inYaml) yield isEmpty ? '---\nentries: null\n' : '---\nentries:\n';
    else yield `{\n    "schema": "${schema}",\n    "entries": ${isEmpty ? 'null' : '['}`;
    for (const [index, slot] of this.#slots.entries()) {
      throwIfCancelled(options.signal);
      if (!inYaml && index > 0) yield ',';
      yield await this.#spool.read(slot);
    }
    const hasList = this.#type === 'substitutes';
    if (inYaml) yield `schema: ${schema}\n${hasList ? 'substitutions: []\n' : ''}\n`;
    else yield `${isEmpty ? '' : '\n    ]'}${hasList ? ',\n    "substitutions": []' : ''}\n}\n`;
  }

  async close(): Promise<void> {
    await this.#spool.close();
  }
}

function shortBundle(meta: Meta): EncodableJson {
  const { schema, image } = decodeBundle(meta.value);
  return { schema, image };
}
