import type { Catalog } from '../catalog/catalog.js';
import { collectFacts } from '../catalog/facts.js';
import type { CatalogFormat } from '../catalog/write.js';
import { OpmateError } from '../core/errors.js';
import type { CatalogFacts, ValidationReport } from '../model/facts.js';
import { resolveMigrationLevel } from '../model/migrations.js';
import { validateCatalog } from '../model/validate.js';
import { renderReferences } from './render.js';
import type { Session } from './session.js';
import { openSource } from './source.js';

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
  const rendered = await renderReferences(references, {
    ...session,
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
    throw new OpmateError('UNSUPPORTED', `${reference}: is a bundle, not a catalog`, {
      hint: 'render it into a catalog',
    });
  }
  const { catalog } = source;
  return {
    name: catalog.name,
    metas: (options) => catalog.metas({ signal: session.signal, ...options }),
    read: (origin) => catalog.read(origin),
    readText: (origin) => catalog.readText(origin),
    lineOf: (origin, path) => catalog.lineOf(origin, path),
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
    return validateCatalog(await catalog.facts());
  } finally {
    await catalog.close();
  }
}
