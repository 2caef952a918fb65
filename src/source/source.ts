import path from 'node:path';
import { getMessage } from '../core/errors.js';
import { parseReference } from '../core/reference.js';
import type { LinkOptions } from '../files/directory-root.js';
import { fileVersion, pathVersion } from './drivers/local.js';
import { fromDirectory } from '../oci/image/open.js';
import { parseCatalogPlace } from './parse-place.js';
import { openPlace } from './resolve-place.js';
import { type AllowedSources, type Source, allSources } from './source-types.js';
import type { SourceSession } from './session.js';

/**
 * Opens the bundle or catalog of a command-line reference; see `parsePlace` for its syntax. Throws OpmateError.
 */
export async function openSource(
  reference: string,
  session: SourceSession,
  allowed: AllowedSources = allSources,
): Promise<Source> {
  return openPlace(await parseCatalogPlace(reference, session), session, allowed);
}

/**
 * Returns a function that reads the state of a local source, a text that changes with its files; undefined for a remote
 * source. The function throws OpmateError if the source no longer exists.
 */
export async function localStateReader(
  reference: string,
  options: LinkOptions & { workingDirectory?: string | undefined },
): Promise<(() => Promise<string>) | undefined> {
  const place = await parseCatalogPlace(reference, options);
  const file = place.kind === 'configMaps' ? place.file : 'path' in place ? place.path : undefined;
  if (file !== undefined) {
    return async () => {
      await fileVersion(file);
      // An invalid directory needs a state too, so that its page is updated when it is fixed.
      return pathVersion(file, options).catch((error: unknown) => getMessage(error));
    };
  }
  if (place.kind !== 'image') return undefined;
  const parsed = parseReference(place.ref);
  switch (parsed.transport) {
    case 'docker':
      return undefined;
    case 'oci':
      return () => fileVersion(path.join(fromDirectory(options, parsed.path), 'index.json'));
    default:
      return () => fileVersion(fromDirectory(options, parsed.path));
  }
}
