import { LimitError, OpmateError } from '../core/errors.js';
import { quoteGo } from '../document/go-json.js';
import { type JsonObject, isJsonObject } from '../document/json.js';
import { toMeta } from '../catalog/meta.js';
import {
  type BundleBlob,
  type ChannelBlob,
  type DeprecationsBlob,
  type PackageBlob,
  schemas,
} from '../model/declarative-config.js';
import { decodeBundle, decodeChannel, decodeDeprecations, decodePackage } from '../model/decode.js';
import { describeKind } from '../document/field.js';
import { oneLine } from '../oci/transport/transport-responses.js';
import { readServerJson } from './client-options.js';

/** Content of any blob: its names, empty if missing, and its value. */
interface BlobContent {
  schema: string;
  package: string;
  name: string;
  /** Value with unknown fields. Integers beyond 2^53 are bigints. */
  value: JsonObject;
}

/** A blob of a catalog: typed for schemas of the catalog format, otherwise unchanged. */
export type CatalogBlob =
  | (BlobContent & { kind: 'package'; blob: PackageBlob })
  | (BlobContent & { kind: 'channel'; blob: ChannelBlob })
  | (BlobContent & { kind: 'bundle'; blob: BundleBlob })
  | (BlobContent & { kind: 'deprecations'; blob: DeprecationsBlob })
  | (BlobContent & { kind: 'other' });

/** Query for `metas`; missing and empty values match all blobs. */
export interface BlobQuery {
  schema?: string | undefined;
  package?: string | undefined;
  name?: string | undefined;
}

export interface LineLimits {
  /** Maximum bytes of a line. */
  maxBlobBytes: number;
  /** Maximum bytes in total. */
  maxBytes: number;
}

/**
 * Reads a catalog with one blob per line, and closes its source when the iteration ends early. Messages start with
 * `label`. Throws OpmateError SYNTAX or INVALID with the line number, and LIMIT.
 */
export async function* readBlobs(
  source: AsyncIterable<Buffer>,
  label: string,
  limits: LineLimits,
): AsyncGenerator<CatalogBlob, void, undefined> {
  let number = 0;
  for await (const line of readLines(source, label, limits)) {
    number++;
    if (isBlank(line)) continue;
    yield readBlob(line, `${label}: line ${number}`);
  }
}

/** Throws OpmateError INVALID for a blob that does not match the query. */
export function requireMatch(blob: CatalogBlob, query: BlobQuery, label: string): void {
  const { schema = '', package: packageName = '', name = '' } = query;
  // Servers include the package blob in its package.
  const isOfPackage = blob.package === packageName || (blob.kind === 'package' && blob.name === packageName);
  if ((schema === '' || blob.schema === schema) && (packageName === '' || isOfPackage)) {
    if (name === '' || blob.name === name) return;
  }
  const id = [blob.schema, blob.package, blob.name].map((text) => quoteGo(oneLine(text, 100))).join(' ');
  throw new OpmateError('INVALID', `unexpected blob in the response: ${id}`, { subject: label });
}

function readBlob(line: Buffer, where: string): CatalogBlob {
  return readServerJson(line, where, (value) => {
    if (!isJsonObject(value))
      throw new OpmateError('INVALID', `expected an object, got ${describeKind(value)}`);
    const origin = { file: where, offset: 0, length: line.length, syntax: 'json' } as const;
    const { schema, package: packageName, name } = toMeta(value, 'json', origin);
    const content = { schema, package: packageName, name, value };
    switch (schema) {
      case schemas.package:
        return { kind: 'package', ...content, blob: decodePackage(value) };
      case schemas.channel:
        return { kind: 'channel', ...content, blob: decodeChannel(value) };
      case schemas.bundle:
        return { kind: 'bundle', ...content, blob: decodeBundle(value) };
      case schemas.deprecations:
        return { kind: 'deprecations', ...content, blob: decodeDeprecations(value) };
      default:
        return { kind: 'other', ...content };
    }
  });
}

const lineFeed = 0x0a;

/** Yields lines without line endings. A line may be overwritten when the next is requested. */
async function* readLines(
  source: AsyncIterable<Buffer>,
  label: string,
  { maxBlobBytes, maxBytes }: LineLimits,
): AsyncGenerator<Buffer, void, undefined> {
  let pending = Buffer.allocUnsafe(64 * 1024);
  let pendingBytes = 0;
  let total = 0;
  const check = (size: number): void => {
    if (size <= maxBlobBytes) return;
    throw new LimitError(`a blob is larger than ${maxBlobBytes} bytes`, {
      subject: label,
      hint: 'raise maxBlobBytes if you trust the server',
    });
  };
  for await (const chunk of source) {
    total += chunk.length;
    if (total > maxBytes) {
      throw new LimitError(`response larger than ${maxBytes} bytes`, {
        subject: label,
        hint: 'raise maxBytes if you trust the server',
      });
    }
    let start = 0;
    for (let end; (end = chunk.indexOf(lineFeed, start)) >= 0; start = end + 1) {
      check(pendingBytes + end - start);
      if (pendingBytes === 0) yield chunk.subarray(start, end);
      else {
        append(chunk.subarray(start, end));
        const line = pending.subarray(0, pendingBytes);
        pendingBytes = 0;
        yield line;
      }
    }
    check(pendingBytes + chunk.length - start);
    append(chunk.subarray(start));
  }
  if (pendingBytes > 0) yield pending.subarray(0, pendingBytes);

  // Copies, because a view would keep the whole chunk alive.
  function append(piece: Buffer): void {
    if (pendingBytes + piece.length > pending.length) {
      const grown = Buffer.allocUnsafe(Math.max(pending.length * 2, pendingBytes + piece.length));
      pending.copy(grown, 0, 0, pendingBytes);
      pending = grown;
    }
    piece.copy(pending, pendingBytes);
    pendingBytes += piece.length;
  }
}

function isBlank(line: Buffer): boolean {
  return line.every((byte) => byte === 0x20 || byte === 0x09 || byte === 0x0d);
}
