import { stat } from 'node:fs/promises';
import path from 'node:path';
import { DirectoryCatalog } from '../catalog/catalog.js';
import { digestOf } from '../core/digest.js';
import { OpmateError, fileError, messageOf } from '../core/errors.js';
import { type Reference, formatReference, parseReference } from '../core/reference.js';
import type { LinkOptions } from '../files/directory-root.js';
import { digestOfImage } from './drivers/image-files.js';
import type { CatalogOrigin, FoundOrigin, OriginOptions, OriginState } from './place.js';
import { inReference } from './render.js';
import { type CatalogSource, openImageSource, openSource, statIfThere } from './source.js';

export type { CatalogOrigin, FoundOrigin, OriginOptions, OriginState, WithinOrigin } from './place.js';

/**
 * Looks which state an origin is in: by one request where it is elsewhere, and none where its reference says so
 * already. `known` is the state that was seen before. Throws OpmateError.
 */
export async function lookAtOrigin(
  origin: CatalogOrigin,
  known: OriginState | undefined,
  options: OriginOptions,
): Promise<FoundOrigin> {
  switch (origin.type) {
    case 'Image':
      return lookAtImage(origin.ref, known, options);
    case 'Directory':
      return lookAtDirectory(origin.path, options);
    case 'Artifact':
      return (await import('./drivers/artifact.js')).lookAtArtifact(origin, options);
    case 'Git':
      return (await import('./drivers/git.js')).lookAtGit(origin, options);
    case 'HTTP':
      return (await import('./drivers/http-archive.js')).lookAtArchive(origin, known, options);
    case 'ConfigMap':
      return (await import('./drivers/config-map.js')).lookAtConfigMap(origin, options);
  }
}

/** Whether the origin always is in the same state, so that there is no point in asking again. */
export function isPinned(origin: CatalogOrigin): boolean {
  switch (origin.type) {
    case 'Image':
    case 'Artifact': {
      const reference = parseReference(origin.ref);
      return reference.transport === 'docker' && reference.digest !== undefined;
    }
    case 'Git':
      return origin.commit !== undefined;
    default:
      return false;
  }
}

/**
 * Returns how the state of a local source is read: a text that differs once its files do. Undefined for images in
 * registries. What it returns throws OpmateError where the source is gone.
 */
export async function localStateReader(
  reference: string,
  options: LinkOptions,
): Promise<(() => Promise<string>) | undefined> {
  if ((await statIfThere(reference)) !== undefined) {
    return async () => {
      await fileVersion(reference);
      // A directory with faults has a state too, or its page would never show how they are mended.
      return directoryVersion(reference, options).catch((error: unknown) => messageOf(error));
    };
  }
  const parsed = parseReference(reference);
  switch (parsed.transport) {
    case 'docker':
      return undefined;
    case 'oci':
      return () => fileVersion(path.join(parsed.path, 'index.json'));
    default:
      return () => fileVersion(parsed.path);
  }
}

const catalogsOnly = { bundles: false, catalogs: true };

async function lookAtImage(
  ref: string,
  known: OriginState | undefined,
  options: OriginOptions,
): Promise<FoundOrigin> {
  const reference = parseReference(ref);
  const { transport } = reference;
  let validator: string | undefined;
  if (transport === 'oci-archive' || transport === 'docker-archive') {
    validator = await fileVersion(reference.path);
    if (known?.validator === validator) return imageState(known.id, known.ref, reference, validator, options);
  }
  const digest = await digestOfImage(reference, options);
  const pinned = { ...reference, digest };
  delete pinned.tag;
  const shown = formatReference(pinned);
  const { os, architecture } = options.platform ?? options.hostPlatform;
  return imageState(`${shown}#${os}/${architecture}`, shown, pinned, validator, options);
}

function imageState(
  id: string,
  ref: string,
  reference: Reference,
  validator: string | undefined,
  options: OriginOptions,
): FoundOrigin {
  const open = async (): Promise<CatalogSource> =>
    onlyCatalog(
      await openImageSource({ ...reference, text: ref }, options, catalogsOnly).catch((error: unknown) => {
        throw inReference(error, ref);
      }),
    );
  return { state: { id, ref, validator }, isImmutable: reference.digest !== undefined, open };
}

async function lookAtDirectory(directory: string, options: OriginOptions): Promise<FoundOrigin> {
  const id = await directoryVersion(directory, options);
  return {
    state: { id, ref: directory },
    isImmutable: false,
    open: async () =>
      onlyCatalog(
        await openSource(directory, options, catalogsOnly).catch((error: unknown) => {
          throw inReference(error, directory);
        }),
      ),
    confirm: async () => (await directoryVersion(directory, options)) === id,
  };
}

function onlyCatalog(source: Awaited<ReturnType<typeof openSource>>): CatalogSource {
  if (source.kind === 'catalog') return source;
  throw new OpmateError('INTERNAL', 'a bundle was opened where only catalogs are taken');
}

/** Names, sizes and dates of the files of a catalog. */
async function directoryVersion(directory: string, options: LinkOptions): Promise<string> {
  const found = await stat(directory).catch((error: unknown) => {
    throw fileError(directory, error);
  });
  if (!found.isDirectory()) return digestOf(await fileVersion(directory));
  const files = await new DirectoryCatalog(directory, directory, options).listFiles();
  const lines: string[] = [];
  for (const file of files) lines.push(`${file.name} ${await fileVersion(file.path)}`);
  return digestOf(lines.join('\n'));
}

async function fileVersion(file: string): Promise<string> {
  try {
    const { size, mtimeMs, ctimeMs, ino } = await stat(file);
    return `${size} ${mtimeMs} ${ctimeMs} ${ino}`;
  } catch (error) {
    throw fileError(file, error);
  }
}
