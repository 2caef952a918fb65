import { keepOpen, withOpen } from '../core/concurrency.js';
import { Assembly } from '../catalog/assemble.js';
import { writeCatalogDirectory } from '../catalog/directory-writer.js';
import { collectFacts } from '../catalog/facts.js';
import type { Catalog } from '../catalog/catalog.js';
import { type CatalogFilter, emptyFilter } from '../catalog/selection/catalog-filter.js';
import { findCreationDay } from '../catalog/selection/creation-days.js';
import { applyFilter } from '../catalog/selection/filter-catalog.js';
import { readFilterFile } from '../catalog/selection/filter-file.js';
import { type FilterRequest, addRequest } from '../catalog/selection/filter-request.js';
import { createKeptCatalog } from '../catalog/selection/kept-catalog.js';
import type { CatalogSelection } from '../catalog/selection/selection.js';
import { withoutCredentials } from '../core/reference.js';
import { requireEmptyDirectory } from '../files/fill-directory.js';
import type { BlobOrigin, CatalogFacts } from '../model/facts.js';
import { throwAbout } from '../source/reference-error.js';
import type { Session } from '../source/session.js';
import { type CatalogOutput, resolveOutput } from './catalog-output.js';
import { openCatalog } from './open-catalog.js';

/** Options of `filterCatalog`: criteria to keep content by. */
export interface FilterCatalogOptions extends FilterRequest, CatalogOutput {
  /** CatalogFilter document with further criteria, which the options come after; `file` is its name in messages. */
  document?: { text: string; file: string } | undefined;
  /** Directory that `writeDirectory` is to write to: it must be new or empty before the catalog is read. */
  directory?: string | undefined;
}

/** The part of a catalog that a filter keeps. `close` it at the end. */
export interface FilteredCatalog {
  /** Names, edges and versions of the whole catalog. */
  before: CatalogFacts;
  /** Kept packages, with the reason for each bundle that the filter does not name, changes and warnings. */
  selection: CatalogSelection;
  /** Returns the catalog piece by piece. Nothing is returned before the whole is known to be good. */
  write(): AsyncGenerator<Buffer | string, void, undefined>;
  /** Writes the catalog to a new or empty directory, one file per package. The directory appears whole or not at all. */
  writeDirectory(directory: string): Promise<void>;
  close(): Promise<void>;
}

/**
 * Keeps the part of a catalog that all criteria select, as a valid catalog. Throws OpmateError, with every package, channel
 * and bundle that the catalog lacks, and UsageError for an invalid criterion.
 */
export async function filterCatalog(
  reference: string,
  session: Session,
  options: FilterCatalogOptions = {},
): Promise<FilteredCatalog> {
  const output = resolveOutput(options);
  const filter = readFilter(options, session.now());
  if (options.directory !== undefined) await requireEmptyDirectory(options.directory);
  return keepOpen(openCatalog(reference, session), async (source) => {
    const { catalog } = source;
    const chosen = await select(catalog, filter, reference, session);
    return {
      before: chosen.before,
      selection: chosen.selection,
      write: async function* () {
        const made = await assemble(catalog, chosen, output, session);
        try {
          yield* made.assembly.write({ signal: session.signal });
        } finally {
          await made.close();
        }
      },
      writeDirectory: async (directory) => {
        await withOpen(assemble(catalog, chosen, output, session), async (made) => {
          await writeCatalogDirectory(made.assembly, directory, output.format, session);
        });
      },
      close: () => source.close(),
    };
  });
}

function readFilter({ document, ...request }: FilterCatalogOptions, today: Date): CatalogFilter {
  const filter = document === undefined ? emptyFilter() : readFilterFile(document.text, document.file, today);
  addRequest(filter, request, today);
  return filter;
}

interface Chosen {
  before: CatalogFacts;
  selection: CatalogSelection;
  /** Blobs of schemas that OLM does not define. */
  others: BlobOrigin[];
}

async function select(
  catalog: Catalog,
  filter: CatalogFilter,
  reference: string,
  { signal, logger }: Session,
): Promise<Chosen> {
  const needsDays = filter.criteria.some(({ criteria }) => criteria.createdSince !== undefined);
  const others: BlobOrigin[] = [];
  const days = new Map<string, string>();
  const before = await collectFacts(catalog, {
    signal,
    logger,
    withoutManifests: !needsDays,
    onOther: ({ origin }) => others.push(origin),
    onBundle: needsDays
      ? (bundle) => {
          const day = findCreationDay(bundle);
          if (day !== undefined) days.set(`${bundle.package}/${bundle.name}`, day);
        }
      : undefined,
  }).catch(throwAbout(reference));
  const parseDay = (packageName: string, bundle: string): string | undefined =>
    days.get(`${packageName}/${bundle}`);
  const selection = applyFilter(before, filter, {
    catalog: withoutCredentials(reference),
    dayOf: parseDay,
  });
  return { before, selection, others };
}

async function assemble(
  catalog: Catalog,
  { selection, others }: Chosen,
  { format, migrationLevel }: ReturnType<typeof resolveOutput>,
  { logger, signal, temporaryDirectory }: Session,
): Promise<{ assembly: Assembly; close: () => Promise<void> }> {
  const kept = createKeptCatalog(catalog, selection.facts, new Set(), others);
  const assembly = new Assembly({ format, migrationLevel, temporaryDirectory, keepUnknownFields: true });
  const close = async (): Promise<void> => {
    await assembly.close();
    await kept.close();
  };
  try {
    for await (const meta of kept.metas({ signal, logger })) await assembly.add(kept, meta);
    return { assembly, close };
  } catch (error) {
    await close();
    throw error;
  }
}
