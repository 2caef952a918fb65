import { keepOpen } from '../core/concurrency.js';
import { OpmateError } from '../core/errors.js';
import type { PlaceState, ResolvedPlace } from './drivers/driver.js';
import { openPath, resolveArchive, resolvePath } from './drivers/local.js';
import { type Place, formatPlace } from './place.js';
import {
  type AllowedSources,
  type CatalogSource,
  type Source,
  allSources,
  catalogsOnly,
} from './source-types.js';
import type { SourceSession } from './session.js';

interface ResolveOptions {
  /** The last known state, which is not downloaded again. */
  known?: PlaceState | undefined;
  /** Name of an archive on disk in messages; default: its path. */
  label?: string | undefined;
}

/**
 * Resolves the current state of a place: with one request if it is remote, with none if it is pinned. Throws
 * OpmateError.
 */
export async function resolvePlace(
  place: Place,
  session: SourceSession,
  { known, label = formatPlace(place) }: ResolveOptions = {},
): Promise<ResolvedPlace> {
  switch (place.kind) {
    case 'directory':
    case 'database':
      return resolvePath(place, session);
    case 'archive':
      return resolveArchive(place, label, session);
    case 'image':
      return (await import('./drivers/image.js')).resolveImagePlace(place, known, session);
    case 'artifact':
      return (await import('./drivers/artifact.js')).resolveArtifact(place, session);
    case 'git':
      return (await import('./drivers/git.js')).resolveGit(place, session);
    case 'http':
      return (await import('./drivers/http-archive.js')).resolveHttp(place, known, session);
    case 'configMap':
      return (await import('./drivers/config-map.js')).resolveConfigMap(place, session);
    case 'configMaps':
      return (await import('./drivers/config-map.js')).resolveConfigMaps(place, session);
    case 'served':
      return (await import('./drivers/served-catalog.js')).resolveServed(place, known, session);
  }
}

/** Opens the catalog of a resolved place. Throws OpmateError. */
export async function openResolved(resolved: ResolvedPlace): Promise<CatalogSource> {
  const source = await resolved.open(catalogsOnly);
  if (source.kind === 'catalog') return source;
  throw new OpmateError('INTERNAL', 'expected a catalog, got a bundle');
}

/** Opens the catalog or bundle at a place in its current state. Throws OpmateError. */
export async function openPlace(
  place: Place,
  session: SourceSession,
  allowed: AllowedSources = allSources,
): Promise<Source> {
  // Reading by tag saves the request that resolves the tag to a digest.
  if (place.kind === 'image') {
    return (await import('./drivers/image.js')).openImageSource(place.ref, session, allowed);
  }
  if (place.kind === 'directory' || place.kind === 'database') return openPath(place, session, allowed);
  if (place.kind === 'served' && !allowed.catalogs) {
    throw new OpmateError('UNSUPPORTED', 'cannot render served catalog: not allowed');
  }
  return keepOpen(resolvePlace(place, session), async (resolved) => {
    const source = await resolved.open(allowed);
    const close = async (): Promise<void> => {
      await source.close();
      await resolved.close();
    };
    return { ...source, close };
  });
}
