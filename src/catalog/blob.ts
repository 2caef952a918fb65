import { findBase64Error } from '../core/text/base64.js';
import { OpmateError } from '../core/errors.js';
import { decodeUtf8, getGoKind, quoteGo } from '../document/go-json.js';
import { findField } from '../document/go-json-fold.js';
import { type EncodableJson, isJsonObject } from '../document/json.js';
import { YamlError, parseYaml } from '../document/yaml.js';
import { type BundleBlob, propertyTypes, schemas } from '../model/declarative-config.js';
import { decodeBundle, decodeChannel, decodeDeprecations, decodePackage } from '../model/decode.js';
import {
  describeBundle,
  describeChannel,
  describeDeprecations,
  describePackage,
  detach,
} from '../model/describe.js';
import type { EncodableBlob } from '../model/encode.js';
import type { BlobOrigin, BundleFacts, CatalogFacts } from '../model/facts.js';
import { checkYamlEncoding } from './documents.js';
import type { Meta } from './meta.js';

/** A decoded blob: typed for schemas of the catalog format, otherwise with its names and origin only. */
export type DecodedBlob = Exclude<EncodableBlob, { kind: 'other' }> | { kind: 'other'; meta: Meta };

/**
 * Decodes a blob by its schema and validates it like loading a catalog does, encoded objects of bundles included.
 * Throws OpmateError INVALID in the words of `opm`.
 */
export function decodeMeta(meta: Meta): DecodedBlob {
  if (shared?.meta !== meta) return decodeBySchema(meta);
  return (shared.decoded ??= decodeBySchema(meta));
}

/** Blob that several readers of a pass are at, and their results. A map, even a weak one, would hold blobs for longer. */
let shared: { meta: Meta; decoded?: DecodedBlob; bundle?: BundleFacts } | undefined;

/** Lets all readers of the next blob share its decoded form and facts, which they must not change, until the call after. */
export function shareBlob(meta: Meta | undefined): void {
  shared = meta && { meta };
}

function decodeBySchema(meta: Meta): DecodedBlob {
  switch (meta.schema) {
    case schemas.package:
      return { kind: 'package', blob: decodePackage(meta.value) };
    case schemas.channel:
      return { kind: 'channel', blob: decodeChannel(meta.value) };
    case schemas.bundle: {
      const blob = decodeBundle(meta.value);
      checkBundleObjects(blob);
      return { kind: 'bundle', blob };
    }
    case schemas.deprecations:
      return { kind: 'deprecations', blob: decodeDeprecations(meta.value) };
    default:
      return { kind: 'other', meta };
  }
}

/** Adds a blob to the facts of its catalog. Returns the facts of a bundle. */
export function addToFacts(
  facts: CatalogFacts,
  decoded: DecodedBlob,
  origin?: BlobOrigin,
): BundleFacts | undefined {
  switch (decoded.kind) {
    case 'package':
      facts.packages.push(describePackage(decoded.blob, origin));
      return undefined;
    case 'channel':
      facts.channels.push(describeChannel(decoded.blob, origin));
      return undefined;
    case 'bundle': {
      const bundle =
        shared?.decoded === decoded
          ? (shared.bundle ??= describeBundle(decoded.blob, origin))
          : describeBundle(decoded.blob, origin);
      facts.bundles.push(bundle);
      return bundle;
    }
    case 'deprecations':
      facts.deprecations.push(describeDeprecations(decoded.blob, origin));
      return undefined;
    case 'other':
      addOther(facts, decoded.meta, origin);
      return undefined;
  }
}

function addOther(facts: CatalogFacts, meta: Meta, origin: BlobOrigin | undefined): void {
  facts.otherSchemas ??= new Map();
  if (facts.otherSchemas.has(meta.schema)) return;
  facts.otherSchemas.set(detach(meta.schema), { package: detach(meta.package), origin });
}

function checkBundleObjects(blob: BundleBlob): void {
  for (const [index, property] of blob.properties.entries()) {
    if (property.type !== propertyTypes.bundleObject) continue;
    const fail = (problem: string, hint?: string): OpmateError =>
      new OpmateError(
        'INVALID',
        `read bundle objects: package ${quoteGo(blob.package)}, bundle ${quoteGo(blob.name)}: ${problem}`,
        { hint },
      );
    const parse = `parse property at index ${index} as bundle object`;
    if (property.valueMissing) throw fail(`${parse}: unexpected end of JSON input`);
    const data = objectData(property.value);
    if (data instanceof OpmateError) throw fail(`${parse}: ${data.message}`);
    const fault = findBase64Error(data);
    if (fault !== undefined) {
      throw fail(
        `${parse}: illegal base64 data at input byte ${fault}`,
        'use standard base64 for the object',
      );
    }
    const problem = jsonFault(data);
    if (problem !== undefined)
      throw fail(`convert bundle object property at index ${index} to JSON: ${problem}`);
  }
}

/** Returns the base64 text of a bundle object's value, or the error of the reference decoder. */
function objectData(value: EncodableJson): string | OpmateError {
  if (value === null) return '';
  if (!isJsonObject(value)) {
    const kind = getGoKind(value as never);
    return new OpmateError(
      'INVALID',
      `json: cannot unmarshal ${kind} into Go value of type property.BundleObject`,
    );
  }
  const exact = value['data'];
  if (typeof exact === 'string') return exact;
  const data = findField(value, 'data') ?? null;
  if (data === null) return '';
  if (typeof data === 'string') return data;
  return new OpmateError(
    'INVALID',
    `json: cannot unmarshal ${getGoKind(data)} into Go struct field BundleObject.data of type []uint8`,
  );
}

/** Objects that start with a brace are accepted as JSON unread; others must be YAML. */
function jsonFault(data: string): string | undefined {
  const head = Buffer.from(data.slice(0, 64), 'base64').toString('latin1').trimStart();
  if (head.startsWith('{')) return undefined;
  const bytes = Buffer.from(data, 'base64');
  const whole = decodeUtf8(bytes);
  if (whole.trimStart().startsWith('{')) return undefined;
  try {
    checkYamlEncoding(bytes);
    parseYaml(whole);
    return undefined;
  } catch (error) {
    if (error instanceof YamlError) return error.message;
    throw error;
  }
}
