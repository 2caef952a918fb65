import path from 'node:path';
import { getMessage } from '../core/errors.js';
import { parseReference } from '../core/reference.js';
import type { LinkOptions } from '../files/directory-root.js';
import { fileVersion, pathVersion } from './drivers/local.js';
import { parsePlace } from './parse-place.js';
import { openPlace } from './resolve-place.js';
import { type AllowedSources, type Source, allSources } from './source-types.js';
import type { SourceSession } from './session.js';

/**
 * Opens the bundle or catalog that a reference of the command line names, as `parsePlace` reads it.
 * Throws OpmateError.
 */
export async function openSource(
  reference: string,
  session: SourceSession,
  allowed: AllowedSources = allSources,
): Promise<Source> {
  return openPlace(await parsePlace(reference, { purpose: 'catalog' }), session, allowed);
}

/**
 * Returns how the state of a local source is read: a text that differs once its files do. Undefined for what is
 * elsewhere. What it returns throws OpmateError where the source is gone.
 */
export async function localStateReader(
  reference: string,
  options: LinkOptions,
): Promise<(() => Promise<string>) | undefined> {
  const place = await parsePlace(reference, { purpose: 'catalog' });
  if (place.kind === 'directory' || place.kind === 'database') {
    return async () => {
      await fileVersion(reference);
      // A directory with faults has a state too, or its page would never show how they are mended.
      return pathVersion(reference, options).catch((error: unknown) => getMessage(error));
    };
  }
  if (place.kind !== 'image') return undefined;
  const parsed = parseReference(place.ref);
  switch (parsed.transport) {
    case 'docker':
      return undefined;
    case 'oci':
      return () => fileVersion(path.join(parsed.path, 'index.json'));
    default:
      return () => fileVersion(parsed.path);
  }
}
