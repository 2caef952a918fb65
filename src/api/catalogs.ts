import path from 'node:path';
import type { FileTree } from '../archive/file-tree.js';
import { openInTemporaryDirectory } from '../files/temporary-directory.js';
import type { Catalog } from '../catalog/catalog.js';
import { collectFacts } from '../catalog/facts.js';
import type { CatalogFormat } from '../model/encode.js';
import { OpmateError } from '../core/errors.js';
import { parseReference } from '../core/reference.js';
import type { CatalogFacts } from '../model/facts.js';
import { resolveMigrationLevel } from '../model/migrations.js';
import { validateInTurns, type ValidationReport } from '../graph/validate.js';
import { type Image, openImage, readImage } from '../oci/image/image.js';
import { openReference } from '../oci/image/open.js';
import type { OpenedIndex } from '../sqlite/read/images.js';
import { renderReferences } from '../source/render.js';
import type { Session } from '../source/session.js';
import { statIfPresent } from '../files/file-status.js';
import { withImage } from '../source/drivers/image.js';
import { openSource } from '../source/source.js';

export interface RenderCatalogOptions {
  /** `json` unless told. */
  format?: CatalogFormat | undefined;
  /** Migration level by name; none unless told. */
  migrateLevel?: string | undefined;
  /** Text of the template that makes the image references of bundles that come from directories. */
  imageTemplate?: string | undefined;
}

/**
 * Renders bundles and catalogs from any source as one catalog, in the bytes of `opm render`, a blob a
 * piece. All sources are read and checked before the first piece comes. Throws OpmateError.
 */
export async function* render(
  references: readonly string[],
  session: Session,
  options: RenderCatalogOptions = {},
): AsyncGenerator<Buffer | string, void, undefined> {
  const rendered = await renderReferences(references, session, {
    format: options.format ?? 'json',
    migrationLevel: resolveMigrationLevel(options.migrateLevel ?? ''),
    imageTemplate: options.imageTemplate,
  });
  try {
    yield* rendered.assembly.write({ signal: session.signal });
  } finally {
    await rendered.close();
  }
}

/** The content of an image, or the part of it that was asked for. */
export interface PulledImage {
  image: Image;
  /** Files by path, as a container would see them; links are followed, inside the image only. */
  files: FileTree;
}

/**
 * Pulls an image from a registry, layout or archive and applies its layers in memory, keeping what is below
 * `roots` (everything unless told), at most 256 MiB of it. Throws OpmateError.
 */
export async function pullImage(
  reference: string,
  session: Session,
  options: { roots?: readonly string[] } = {},
): Promise<PulledImage> {
  const { limits, logger, signal } = session;
  const opened = await openReference(parseReference(reference), session);
  try {
    const image = await openImage(opened.repository, opened.reference, session);
    const files = await readImage(image, { roots: options.roots ?? [''], limits, logger, signal });
    return { image, files };
  } finally {
    await opened.close();
  }
}

/** A catalog that was opened by reference. */
export interface LoadedCatalog extends Catalog {
  /** Reads the catalog once and returns names, edges and versions: what `validateCatalog` and lists need. */
  facts(): Promise<CatalogFacts>;
}

/**
 * Opens the catalog that a reference names: a directory, or an image, which is unpacked below the session's
 * temporary directory until `close`. Throws OpmateError; UNSUPPORTED for a bundle.
 */
export async function loadCatalog(reference: string, session: Session): Promise<LoadedCatalog> {
  const source = await openSource(reference, session);
  if (source.kind === 'bundle') {
    await source.close();
    throw new OpmateError('UNSUPPORTED', 'is a bundle, not a catalog', {
      subject: reference,
      hint: 'add it to a catalog with opmate render',
    });
  }
  const { catalog } = source;
  return {
    name: catalog.name,
    metas: (options) => catalog.metas({ signal: session.signal, ...options }),
    read: (origin) => catalog.read(origin),
    readText: (origin) => catalog.readText(origin),
    lineOf: (origin, path) => catalog.lineOf(origin, path),
    ...(catalog.storedImages && { storedImages: () => catalog.storedImages?.() ?? [] }),
    facts: () => collectFacts(catalog, session),
    close: () => source.close(),
  };
}

/**
 * Checks a catalog and reports every problem. Throws OpmateError, with file and line, only when the catalog
 * cannot be read at all.
 */
export async function validate(reference: string, session: Session): Promise<ValidationReport> {
  const catalog = await loadCatalog(reference, session);
  try {
    const { logger, signal } = session;
    return validateInTurns(await collectFacts(catalog, { logger, signal, withoutManifests: false }), session);
  } finally {
    await catalog.close();
  }
}

/**
 * Opens a sqlite index, as a file or in an image, for questions about the images that its bundles need. The
 * file is never changed; an image is unpacked below the session's temporary directory until `close`. Throws
 * OpmateError.
 */
export async function openIndex(reference: string, session: Session): Promise<OpenedIndex> {
  const { openIndexFile } = await import('../sqlite/read/images.js');
  if ((await statIfPresent(reference)) !== undefined) return openIndexFile(reference, session);
  return withImage(reference, session, (image) =>
    openInTemporaryDirectory(session, async (directory) => {
      const { extractDatabase } = await import('../sqlite/read/index-image.js');
      const file = await extractDatabase(image, path.join(directory, 'image'), session);
      return openIndexFile(file, session, { name: reference });
    }),
  );
}
