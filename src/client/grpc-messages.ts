import { isUtf8 } from 'node:buffer';
import { OpmateError } from '../core/errors.js';
import { type JsonObject, type JsonValue, setJsonKey } from '../document/json.js';
import type { CatalogEntry, CatalogPackage } from './catalog-client.js';

/**
 * The messages of `schemas/registry.proto` that a server sends. Unknown fields are passed over; what is no message is
 * OpmateError SYNTAX. (Source: protobuf.dev, Encoding.)
 */

/** Names of an API. */
export interface ProvidedApi {
  group: string;
  version: string;
  kind: string;
  plural: string;
}

/** `api.Bundle`: a bundle in a channel. Empty texts and lists mean that there is none. */
export interface RegistryBundle {
  csvName: string;
  packageName: string;
  channelName: string;
  /** The ClusterServiceVersion as JSON; empty where servers leave it out for its size. */
  csvJson: string;
  /** All manifests as JSON; as `csvJson`. */
  object: string[];
  /** Pull specification of the bundle's image. */
  bundlePath: string;
  providedApis: ProvidedApi[];
  requiredApis: ProvidedApi[];
  version: string;
  skipRange: string;
  /** `value` is JSON. */
  dependencies: { type: string; value: string }[];
  /** `value` is JSON. */
  properties: { type: string; value: string }[];
  replaces: string;
  skips: string[];
  /** Why the bundle is deprecated, where it is. */
  deprecation?: string;
}

/** `api.ChannelEntry` */
export type RegistryEntry = Pick<CatalogEntry, 'package' | 'channel' | 'name' | 'replaces'>;

/** Deepest nesting of a blob. */
const maxDepth = 1000;

export function decodePackageName(bytes: Buffer): string {
  return Fields.of(bytes).text(1);
}

export function decodePackage(bytes: Buffer): CatalogPackage {
  const fields = Fields.of(bytes);
  return {
    name: fields.text(1),
    defaultChannel: fields.text(3),
    channels: fields.messages(2).map((channel) => ({
      name: channel.text(1),
      head: channel.text(2),
      ...deprecationOf(channel, 3),
    })),
    ...deprecationOf(fields, 4),
  };
}

export function decodeBundle(bytes: Buffer): RegistryBundle {
  const fields = Fields.of(bytes);
  const typed = (field: number) =>
    fields.messages(field).map((item) => ({ type: item.text(1), value: item.text(2) }));
  const apis = (field: number) =>
    fields.messages(field).map((api) => ({
      group: api.text(1),
      version: api.text(2),
      kind: api.text(3),
      plural: api.text(4),
    }));
  return {
    csvName: fields.text(1),
    packageName: fields.text(2),
    channelName: fields.text(3),
    csvJson: fields.text(4),
    object: fields.texts(5),
    bundlePath: fields.text(6),
    providedApis: apis(7),
    requiredApis: apis(8),
    version: fields.text(9),
    skipRange: fields.text(10),
    dependencies: typed(11),
    properties: typed(12),
    replaces: fields.text(13),
    skips: fields.texts(14),
    ...deprecationOf(fields, 15),
  };
}

export function decodeEntry(bytes: Buffer): RegistryEntry {
  const fields = Fields.of(bytes);
  return { package: fields.text(1), channel: fields.text(2), name: fields.text(3), replaces: fields.text(4) };
}

/** A `google.protobuf.Struct`. Throws OpmateError LIMIT where it is nested too deep. */
export function decodeStruct(bytes: Buffer): JsonObject {
  return structOf(Fields.of(bytes), 0);
}

function structOf(fields: Fields, depth: number): JsonObject {
  if (depth > maxDepth) throw new OpmateError('LIMIT', 'a blob is nested too deep');
  const object: JsonObject = {};
  for (const entry of fields.messages(1)) {
    const [value] = entry.messages(2).slice(-1);
    setJsonKey(object, entry.text(1), value === undefined ? null : valueOf(value, depth + 1));
  }
  return object;
}

function valueOf(fields: Fields, depth: number): JsonValue {
  if (depth > maxDepth) throw new OpmateError('LIMIT', 'a blob is nested too deep');
  if (fields.has(2)) return fields.double(2);
  if (fields.has(3)) return fields.text(3);
  if (fields.has(4)) return fields.number(4) !== 0;
  const [struct] = fields.messages(5).slice(-1);
  if (struct !== undefined) return structOf(struct, depth);
  const [list] = fields.messages(6).slice(-1);
  return list === undefined ? null : list.messages(1).map((item) => valueOf(item, depth + 1));
}

function deprecationOf(fields: Fields, field: number): { deprecation?: string } {
  const [deprecation] = fields.messages(field).slice(-1);
  return deprecation === undefined ? {} : { deprecation: deprecation.text(1) };
}

const malformed = (): OpmateError => new OpmateError('SYNTAX', 'an answer is not a protocol buffers message');

/** The fields of a message by number; a field of another type than asked for is malformed. */
class Fields {
  readonly #values = new Map<number, (number | Buffer)[]>();

  static of(bytes: Buffer): Fields {
    const fields = new Fields();
    let at = 0;
    const varint = (): number => {
      let value = 0;
      for (let shift = 1, count = 0; count < 10; shift *= 0x80, count++) {
        const byte = bytes[at++];
        if (byte === undefined) break;
        value += (byte & 0x7f) * shift;
        if (byte < 0x80) return value;
      }
      throw malformed();
    };
    const take = (size: number): Buffer => {
      if (at + size > bytes.length) throw malformed();
      return bytes.subarray(at, (at += size));
    };
    while (at < bytes.length) {
      const tag = varint();
      const field = Math.floor(tag / 8);
      if (field === 0) throw malformed();
      switch (tag % 8) {
        case 0:
          fields.#add(field, varint());
          break;
        case 1:
          fields.#add(field, take(8));
          break;
        case 2:
          fields.#add(field, take(varint()));
          break;
        case 5:
          fields.#add(field, take(4));
          break;
        default:
          throw malformed();
      }
    }
    return fields;
  }

  #add(field: number, value: number | Buffer): void {
    const values = this.#values.get(field);
    if (values === undefined) this.#values.set(field, [value]);
    else values.push(value);
  }

  #bytes(field: number): Buffer[] {
    const values = this.#values.get(field) ?? [];
    if (!values.every((value) => typeof value !== 'number')) throw malformed();
    return values;
  }

  has(field: number): boolean {
    return this.#values.has(field);
  }

  texts(field: number): string[] {
    return this.#bytes(field).map((bytes) => {
      if (!isUtf8(bytes)) throw new OpmateError('SYNTAX', 'a text of an answer is not UTF-8');
      return bytes.toString();
    });
  }

  /** The last of this field, as proto3 has it. */
  text(field: number): string {
    return this.texts(field).at(-1) ?? '';
  }

  messages(field: number): Fields[] {
    return this.#bytes(field).map((bytes) => Fields.of(bytes));
  }

  number(field: number): number {
    const value = this.#values.get(field)?.at(-1) ?? 0;
    if (typeof value !== 'number') throw malformed();
    return value;
  }

  double(field: number): number {
    const bytes = this.#bytes(field).at(-1);
    if (bytes?.length !== 8) throw malformed();
    return bytes.readDoubleLE();
  }
}
