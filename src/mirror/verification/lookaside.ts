import { readdir } from 'node:fs/promises';
import path from 'node:path';
import { pathToFileURL } from 'node:url';
import { OpmateError, fileError, throwFileError, systemCode } from '../../core/errors.js';
import { sortedByBytes } from '../../core/order.js';
import type { Reference, RegistryReference } from '../../core/reference.js';
import { decodeFile, readDocument } from '../../document/document.js';
import { readRegularFile } from '../../files/read-file.js';
import { readUrl } from '../../release/update-service.js';
import type { SourceSession } from '../../source/session.js';

const maxConfigurationLength = 1024 * 1024;
const maxSignatureBytes = 256 * 1024;
/** Maximum number of signatures of an image in a store. */
const maxSignatures = 16;

/** URLs of OpenPGP signature stores by scope, `""` for the default (containers-registries.d(5)). */
export type LookasideConfiguration = ReadonlyMap<string, string>;

/** Reads the `*.yaml` files of a registries.d directory; a missing directory is empty. Throws OpmateError. */
export async function readLookasides(directory: string): Promise<LookasideConfiguration> {
  let names: string[];
  try {
    names = await readdir(directory);
  } catch (error) {
    if (systemCode(error) === 'ENOENT') return new Map();
    throw fileError(directory, error);
  }
  const lookasides = new Map<string, string>();
  for (const name of sortedByBytes(names.filter((text) => text.endsWith('.yaml')))) {
    await readConfiguration(path.join(directory, name), lookasides);
  }
  return lookasides;
}

async function readConfiguration(file: string, lookasides: Map<string, string>): Promise<void> {
  const bytes = await readRegularFile(file, maxConfigurationLength).catch(
    throwFileError(`open ${file}`, { file }),
  );
  const { root, diagnostics } = readDocument(decodeFile(bytes, file), file, {
    maxLength: maxConfigurationLength,
  });
  const add = (scope: string, entry: typeof root): void => {
    const url = entry.field('lookaside').optionalText() ?? entry.field('sigstore').optionalText();
    if (url !== undefined) lookasides.set(scope, url);
  };
  if (root.field('default-docker').isPresent) add('', root.field('default-docker'));
  const docker = root.field('docker');
  for (const [scope, entry] of docker.isPresent ? (docker.entries(10_000) ?? []) : []) add(scope, entry);
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
  if (URL.canParse(text)) return new URL(text);
  throw new OpmateError('INVALID', `lookaside "${text.slice(0, 200)}": not a URL`);
}
