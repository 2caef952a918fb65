import { createWarning } from '../core/diagnostic.js';
import { logDiagnostic } from '../core/log.js';
import { parseImageTemplate } from '../bundle/image-template.js';
import { parseBundle } from '../bundle/parse.js';
import { type AppliedEdits, applyEdits, requireValidInput } from '../catalog/edit/apply-edits.js';
import type { BlobEdit } from '../catalog/edit/blob-edits.js';
import { type EditableCatalog, readEditableCatalog } from '../catalog/edit/editable-catalog.js';
import type { EditPlan } from '../catalog/edit/find-named.js';
import { type NewBundle, newBundle } from '../catalog/edit/new-bundle.js';
import type { Orphans } from '../catalog/edit/orphans.js';
import { type PlanAddOptions, planAdd } from '../catalog/edit/plan-add.js';
import { type Deprecation, planDeprecate } from '../catalog/edit/plan-deprecate.js';
import { planLifecycles } from '../catalog/edit/plan-lifecycles.js';
import { type Removal, planRemove } from '../catalog/edit/plan-remove.js';
import { mapConcurrent, withOpen } from '../core/concurrency.js';
import { combineErrors } from '../core/diagnostics-error.js';
import { CancelledError, OpmateError } from '../core/errors.js';
import { quoteGo } from '../core/go-json-quote.js';
import { aboutReference } from '../source/reference-error.js';
import { renderBundleSource } from '../source/render.js';
import type { Session } from '../source/session.js';
import { openSource } from '../source/source.js';
import { type CatalogOutput, resolveOutput } from './catalog-output.js';
import { readLifecycleData } from './lifecycle/read-lifecycle-data.js';

/** A change of a catalog directory, written or, with `dryRun`, planned. */
export interface CatalogEdit extends AppliedEdits {
  /** One sentence per change. */
  changes: string[];
}

/** Options of all edits. */
export interface EditCatalogOptions {
  /** Return the changes as a unified diff without writing them. */
  dryRun?: boolean | undefined;
}

/** Bundles to add to a catalog, in addition to `PlanAddOptions`. */
export interface AddBundlesOptions
  extends EditCatalogOptions, PlanAddOptions, Pick<CatalogOutput, 'migrateLevel'> {
  /** Name of the catalog in messages; default: its directory. */
  name?: string | undefined;
  /** Template of image references for bundles that are not from a registry. */
  imageTemplate?: string | undefined;
}

/** Bundles, channels or a package to remove. */
export interface RemoveFromCatalogOptions extends EditCatalogOptions, Removal {
  /** Remove even if installed bundles lose their way to a channel head. */
  force?: boolean | undefined;
}

/** Options of `injectLifecycles`. */
export interface InjectLifecyclesOptions extends EditCatalogOptions {
  /** Replace blobs of the catalog that differ. */
  overwrite?: boolean | undefined;
}

/** Result of a removal. */
export interface CatalogRemoval {
  /** Undefined if nothing was removed, because `orphans` is not empty and `force` was not set. */
  edit: CatalogEdit | undefined;
  /** Bundles that lose their way to a channel head. */
  orphans: Orphans[];
}

/**
 * Adds bundles to channels of a catalog directory; other blobs are left unchanged. A new package needs only an
 * `olm.package` blob, as written by `opmate init`. The result is validated before any file is written, and all files
 * change or none. Throws OpmateError, with all bundles that cannot be read.
 */
export async function addToCatalog(
  directory: string,
  references: readonly string[],
  session: Session,
  options: AddBundlesOptions,
): Promise<CatalogEdit> {
  const { dryRun, migrateLevel, imageTemplate, name, ...add } = options;
  const { migrationLevel } = resolveOutput({ migrateLevel });
  if (imageTemplate !== undefined) parseImageTemplate(imageTemplate);
  const work = async (catalog: EditableCatalog): Promise<CatalogEdit> => {
    const bundles = await readBundles(references, session, { imageTemplate, migrationLevel });
    const edit = await apply(catalog, planAdd(catalog, bundles, add), dryRun, session);
    for (const { reference, blob } of bundles) {
      if (blob.image !== '') continue;
      const hint = 'add the bundle by the reference of its image, or set options.imageTemplate';
      const problem = `bundle ${quoteGo(blob.name)} has no image`;
      logDiagnostic(
        session.logger,
        createWarning('bundle-image-missing', problem, { subject: reference, hint }),
      );
    }
    return edit;
  };
  return editing(directory, session, work, { mayBegin: true, name });
}

/**
 * Removes bundles, channels or a package from a catalog directory and repairs the upgrade graph. Nothing is written if
 * installed bundles would be stranded, unless `force` is set. Throws OpmateError, NOT_FOUND with the nearest name.
 */
export async function removeFromCatalog(
  directory: string,
  session: Session,
  options: RemoveFromCatalogOptions,
): Promise<CatalogRemoval> {
  const { dryRun, force = false, ...removal } = options;
  return editing(directory, session, async (catalog) => {
    const plan = planRemove(catalog, removal);
    const { orphans } = plan;
    const isAllowed = orphans.length === 0 || force;
    return { edit: isAllowed ? await apply(catalog, plan, dryRun, session) : undefined, orphans };
  });
}

/**
 * Deprecates a package, channel or bundle of a catalog directory; a message of undefined removes the deprecation. Throws
 * OpmateError, NOT_FOUND with the nearest name.
 */
export async function deprecateInCatalog(
  directory: string,
  session: Session,
  options: EditCatalogOptions & Deprecation,
): Promise<CatalogEdit> {
  const { dryRun, ...deprecation } = options;
  return editing(directory, session, (catalog) =>
    apply(catalog, planDeprecate(catalog, deprecation), dryRun, session),
  );
}

/**
 * Adds lifecycle blobs of OpenShift to a catalog directory, as `lifecycle.json` beside their packages. `data` are files,
 * directories or catalogs with these blobs. Throws OpmateError, with all blobs that are invalid, that have no package in
 * the catalog, or that differ from those of the catalog unless `overwrite` is set.
 */
export async function injectLifecycles(
  directory: string,
  data: readonly string[],
  session: Session,
  { overwrite, dryRun }: InjectLifecyclesOptions = {},
): Promise<CatalogEdit> {
  const blobs = await readLifecycleData(data, session);
  return editing(directory, session, async (catalog) =>
    apply(catalog, await planLifecycles(catalog, blobs, { overwrite }), dryRun, session),
  );
}

async function editing<T>(
  directory: string,
  session: Session,
  work: (catalog: EditableCatalog) => Promise<T>,
  { name, ...input }: { mayBegin?: boolean; name?: string | undefined } = {},
): Promise<T> {
  const catalog = await readEditableCatalog(directory, session, name);
  return withOpen(catalog.catalog, () => {
    requireValidInput(catalog, input);
    return work(catalog);
  });
}

async function apply(
  catalog: EditableCatalog,
  { edits, changes }: EditPlan<BlobEdit>,
  dryRun: boolean | undefined,
  { temporaryDirectory, signal }: Session,
): Promise<CatalogEdit> {
  return { changes, ...(await applyEdits(catalog, edits, { dryRun, temporaryDirectory, signal })) };
}

interface ReadOptions {
  imageTemplate: string | undefined;
  migrationLevel: string;
}

/** Reads all bundles, many at once. Throws OpmateError with every one that cannot be read. */
async function readBundles(
  references: readonly string[],
  session: Session,
  options: ReadOptions,
): Promise<NewBundle[]> {
  const read = await mapConcurrent(
    references,
    8,
    async (reference): Promise<NewBundle | OpmateError> => {
      try {
        return await readBundle(reference, session, options);
      } catch (error) {
        const failure = aboutReference(error, reference);
        if (failure instanceof OpmateError && !(failure instanceof CancelledError)) return failure;
        throw failure;
      }
    },
    session,
  );
  const failures = read.filter((item) => item instanceof OpmateError);
  if (failures.length > 0) throw combineErrors(failures);
  return read.filter((item): item is NewBundle => !(item instanceof OpmateError));
}

async function readBundle(reference: string, session: Session, options: ReadOptions): Promise<NewBundle> {
  return withOpen(openSource(reference, session, { bundles: true, catalogs: false }), (source) => {
    if (source.kind !== 'bundle')
      throw new OpmateError('UNSUPPORTED', `${reference}: is a catalog, not a bundle`);
    const blob = renderBundleSource(source, reference, options);
    return newBundle(parseBundle(source.files, { subject: reference }), blob, reference);
  });
}
