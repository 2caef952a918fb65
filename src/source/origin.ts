import path from 'node:path';
import { stat } from 'node:fs/promises';
import { DirectoryCatalog } from '../catalog/catalog.js';
import { digestOf } from '../core/digest.js';
import { OpmateError, fileError } from '../core/errors.js';
import type { JsonObject } from '../core/json.js';
import { type Reference, formatReference, parseReference } from '../core/reference.js';
import { openReference } from '../oci/open.js';
import { inReference } from './render.js';
import { type CatalogSource, type SourceOptions, openImageSource, openSource } from './source.js';

/**
 * Where a catalog comes from, again and again: it can be asked cheaply which state it is in, and that state be
 * opened.
 */
export type CatalogOrigin =
  /** An image of a catalog or index, in a registry, layout or archive; paths are absolute. */
  | { type: 'Image'; ref: string }
  /** An OCI artifact whose layers are archives or files of a catalog. */
  | ({ type: 'Artifact'; ref: string } & WithinOrigin)
  /** A catalog directory or a sqlite index; the path is absolute. */
  | { type: 'Directory'; path: string }
  /** A git repository; the default branch where nothing is named. */
  | ({ type: 'Git'; repository: string; branch?: string; tag?: string; commit?: string } & WithinOrigin)
  /** A tar archive, compressed or not. */
  | ({ type: 'HTTP'; url: string } & WithinOrigin)
  /** The data of a ConfigMap: catalog files, or manifests as OLM's `configmap` sources hold them. */
  | { type: 'ConfigMap'; name: string; data: JsonObject; binaryData?: JsonObject };

export interface WithinOrigin {
  /** Directory of the catalog in there; all of it where it is left out. */
  directory?: string;
}

/** A state that an origin was seen in; kept from one look to the next, and over restarts. */
export interface OriginState {
  /** Two states of one origin with the same id have the same content. */
  id: string;
  /** The origin, pinned to this state, as it is shown. */
  ref: string;
  /** What the next look compares with. */
  validator?: string | undefined;
}

/** What a look at an origin has found. */
export interface FoundOrigin {
  state: OriginState;
  /** Whether the id alone says what the content is, for everyone and for ever. */
  isImmutable: boolean;
  /** Opens the catalog in this state. Throws OpmateError. */
  open(): Promise<CatalogSource>;
  /** Whether what was read is of this state, where it could have changed under the reader. */
  confirm?(): Promise<boolean>;
  /** Removes what the look has downloaded. */
  close?(): Promise<void>;
}

export interface OriginOptions extends SourceOptions {
  /** For programs that are started: paths, proxies and agents are taken from it, nothing else. */
  environment: Readonly<Record<string, string | undefined>>;
}

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
      return (await import('./artifact.js')).lookAtArtifact(origin, options);
    case 'Git':
      return (await import('./git.js')).lookAtGit(origin, options);
    case 'HTTP':
      return (await import('./archive-url.js')).lookAtArchive(origin, known, options);
    case 'ConfigMap':
      return (await import('./configmap.js')).lookAtConfigMap(origin, options);
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

/** The digest that a reference means at this moment. Throws OpmateError NOT_FOUND where there is none. */
export async function digestOfImage(reference: Reference, options: OriginOptions): Promise<string> {
  if (reference.transport === 'docker' && reference.digest !== undefined) return reference.digest;
  const opened = await openReference(reference, { ...options, connection: await options.connect() });
  try {
    const found = await opened.repository.headManifest(opened.reference, options);
    if (found !== undefined) return found.digest;
    throw new OpmateError('NOT_FOUND', `${formatReference(reference)}: manifest unknown`, {
      hint: 'check repository and tag',
    });
  } finally {
    await opened.close();
  }
}

async function lookAtDirectory(directory: string, options: OriginOptions): Promise<FoundOrigin> {
  const id = await directoryVersion(directory);
  return {
    state: { id, ref: directory },
    isImmutable: false,
    open: async () =>
      onlyCatalog(
        await openSource(directory, options, catalogsOnly).catch((error: unknown) => {
          throw inReference(error, directory);
        }),
      ),
    confirm: async () => (await directoryVersion(directory)) === id,
  };
}

function onlyCatalog(source: Awaited<ReturnType<typeof openSource>>): CatalogSource {
  if (source.kind === 'catalog') return source;
  throw new OpmateError('INTERNAL', 'a bundle was opened where only catalogs are taken');
}

/** Names, sizes and dates of the files of a catalog. */
async function directoryVersion(directory: string): Promise<string> {
  const found = await stat(directory).catch((error: unknown) => {
    throw fileError(directory, error);
  });
  if (!found.isDirectory()) return digestOf(await fileVersion(directory));
  const files = await new DirectoryCatalog(directory).listFiles();
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

/** A catalog directory below an unpacked one. Throws OpmateError where there is none. */
export async function directoryWithin(
  root: string,
  directory: string | undefined,
  name: string,
): Promise<DirectoryCatalog> {
  const target = path.join(root, directory ?? '.');
  const found = await stat(target).catch(() => undefined);
  if (!found?.isDirectory()) {
    throw new OpmateError('NOT_FOUND', `${name}: there is no directory ${directory ?? '.'} in it`, {
      hint: 'directory must name the directory of the catalog',
    });
  }
  return new DirectoryCatalog(target, directory === undefined ? name : `${name}/${directory}`);
}
