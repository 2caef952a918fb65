import { readdir } from 'node:fs/promises';
import path from 'node:path';
import { pathToFileURL } from 'node:url';
import { OpmateError, throwFileError } from '../../core/errors.js';
import { sortedByBytes } from '../../core/order.js';
import type { Reference, RegistryReference } from '../../core/reference.js';
import { decodeFile, readDocument } from '../../document/document.js';
import { type Field, quoteShort } from '../../document/field.js';
import { readRegularFile } from '../../files/read-file.js';
import { readUrl } from '../../release/update-service.js';
import type { SourceSession } from '../../source/session.js';
import { maxScopes } from '../../trust/policy.js';

const maxConfigurationLength = 1024 * 1024;
const maxSignatureBytes = 256 * 1024;
/** Maximum number of signatures of an image in a store. */
const maxSignatures = 16;

/** URLs of OpenPGP signature stores by scope, `""` for the default (containers-registries.d(5)). */
export type LookasideConfiguration = ReadonlyMap<string, string>;

/**
 * Reads the `*.yaml` files of a registries.d directory, relative to `workingDirectory`. Throws OpmateError for a missing
 * directory, and for fields and values without effect: an unused store would leave images without signatures.
 */
export async function readLookasides(
  directory: string,
  workingDirectory: string,
): Promise<LookasideConfiguration> {
  const names = await readdir(path.resolve(workingDirectory, directory)).catch(throwFileError(directory));
  const stores = new Map<string, Store>();
  for (const name of sortedByBytes(names.filter((text) => text.endsWith('.yaml')))) {
    const shown = path.join(directory, name);
    const file = path.resolve(workingDirectory, shown);
    const bytes = await readRegularFile(file, maxConfigurationLength, { name: shown }).catch(
      throwFileError(shown, { file: shown }),
    );
    addStores(stores, decodeFile(bytes, shown), shown);
  }
  return new Map([...stores].flatMap(([scope, { url }]) => (url === undefined ? [] : [[scope, url]])));
}

interface Store {
  url: string | undefined;
  /** Place in messages: `FILE:LINE`. */
  place: string;
}

const storeFields = [
  'lookaside',
  'lookaside-staging',
  'sigstore',
  'sigstore-staging',
  'use-sigstore-attachments',
] as const;

function addStores(stores: Map<string, Store>, text: string, file: string): void {
  const { root, diagnostics } = readDocument(text, file, {
    maxLength: maxConfigurationLength,
    noun: 'configuration',
  });
  const add = (scope: string, entry: Field): void => {
    const fields = entry.object(storeFields);
    if (fields === undefined) return;
    const [lookaside, sigstore] = [fields.lookaside, fields.sigstore].map((field) =>
      field.optionalParsed((url) => toUrl(url) && url),
    );
    const { place } = stores.get(scope) ?? {};
    // As in containers/image.
    if (place !== undefined) entry.fail(`duplicate, first defined in ${place}`, { hint: 'keep one of them' });
    stores.set(scope, { url: lookaside ?? sigstore, place: `${file}:${entry.place.line}` });
  };
  const fields = root.isPresent ? root.object(['default-docker', 'docker']) : undefined;
  if (fields?.['default-docker'].isPresent) add('', fields['default-docker']);
  if (fields?.docker.isPresent) {
    for (const [scope, entry] of fields.docker.entries(maxScopes) ?? []) add(scope, entry);
  }
  diagnostics.throwIfErrors();
}

/**
 * Reads the OpenPGP signatures of a manifest from the store of its image: `signature-1` and so on until one is missing.
 * Returns none for an image without a store. Throws OpmateError.
 */
export async function readLookasideSignatures(
  lookasides: LookasideConfiguration,
  reference: Reference,
  digest: string,
  session: SourceSession,
): Promise<Buffer[]> {
  if (reference.transport !== 'docker') return [];
  const base = findLookaside(lookasides, reference);
  if (base === undefined) return [];
  const directory = `${base.replace(/\/+$/, '')}/${reference.repository}@${digest.replace(':', '=')}`;
  const signatures: Buffer[] = [];
  for (let number = 1; number <= maxSignatures; number++) {
    const url = toUrl(`${directory}/signature-${number}`);
    try {
      signatures.push(await readUrl(url, maxSignatureBytes, url.href, session));
    } catch (error) {
      if (error instanceof OpmateError && error.code === 'NOT_FOUND') break;
      throw error;
    }
  }
  return signatures;
}

function findLookaside(lookasides: LookasideConfiguration, reference: RegistryReference): string | undefined {
  const { registry, repository, tag, digest } = reference;
  const full = `${registry}/${repository}`;
  const scopes = [digest === undefined ? `${full}:${tag ?? 'latest'}` : `${full}@${digest}`];
  for (let name = full; name !== ''; name = name.slice(0, Math.max(0, name.lastIndexOf('/')))) {
    scopes.push(name);
  }
  return [...scopes, ''].map((scope) => lookasides.get(scope)).find((url) => url !== undefined);
}

function toUrl(text: string): URL {
  if (text.startsWith('/')) return pathToFileURL(text);
  const url = URL.canParse(text) ? new URL(text) : undefined;
  if (url !== undefined && /^(?:https?|file):$/.test(url.protocol)) return url;
  throw new OpmateError('INVALID', `expected an http, https or file URL, got ${quoteShort(text)}`);
}
