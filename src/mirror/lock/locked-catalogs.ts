import { leaveOut } from '../../catalog/selection/leave-out.js';
import { OpmateError } from '../../core/errors.js';
import { getOrAdd } from '../../core/groups.js';
import type { CatalogFacts } from '../../model/facts.js';
import { type OpenedReference, holdOpen } from '../../oci/image/open.js';
import type { SourceSession } from '../../source/session.js';
import type { ImageSetPlan, PlannedCatalog } from '../image-set/image-set-plan.js';
import { toBundleKey } from '../plan/planned-image.js';
import { type RebuiltCatalog, rebuildFrom } from '../selection/rebuilt-catalog.js';
import { type ImageSetLock, type LockedCatalog, type LockedImage, isSameName } from './lock.js';

const hint = 'mirror without mirror.locked to create a new lock';

/** Returns the content of a catalog without the bundles that the run of the lock skipped. */
function selectLocked({ selection, operator }: PlannedCatalog, { packages }: LockedCatalog): CatalogFacts {
  const names = new Set(
    packages.flatMap(({ name, bundles }) =>
      bundles.map((bundle) => toBundleKey({ package: name, bundle: bundle.name })),
    ),
  );
  const keys = selection.facts.bundles.map(({ package: of, name }) =>
    toBundleKey({ package: of, bundle: name }),
  );
  const skipped = new Set(keys.filter((key) => !names.has(key)));
  return leaveOut(selection, skipped, operator.catalog).selection.facts;
}

/** Catalogs, charts and the graph image of a lock, built on demand. */
interface LockedCatalogs {
  /** Returns a function that opens an image; undefined if its reference does. */
  findOpener(image: LockedImage): (() => Promise<OpenedReference>) | undefined;
  close(): Promise<void>;
}

/**
 * Rebuilds the filtered catalogs of a lock, which exist at targets only, when they are opened. Opening throws OpmateError
 * INVALID for a result that differs from the lock: the tag of the catalog was moved, or opmate has changed. `makePlan`
 * plans the set of the lock, once and on demand.
 */
export function createOnDemandCatalogs(
  lock: ImageSetLock,
  session: SourceSession,
  makePlan: () => Promise<ImageSetPlan>,
): LockedCatalogs {
  let planning: Promise<ImageSetPlan> | undefined;
  const getPlan = (): Promise<ImageSetPlan> => (planning ??= makePlan());
  const rebuilding = new Map<LockedImage, Promise<RebuiltCatalog>>();
  const rebuild = async (image: LockedImage): Promise<RebuiltCatalog> => {
    const { catalogs, images } = await getPlan();
    const locked = lock.catalogs.find((item) => isSameName(item, image));
    // A catalog that is tagged by its digest has another tag without the bundles that a run skipped.
    const catalog =
      catalogs.find(({ name }) => isSameName(name, image)) ??
      catalogs.find(
        ({ operator, name }) => operator.catalog === locked?.catalog && name.repository === image.repository,
      );
    const fail = (problem: string): never => {
      throw new OpmateError('INVALID', problem, { subject: locked?.catalog ?? image.source, hint });
    };
    if (catalog === undefined || locked === undefined) return fail('its source is not in the lock');
    if (catalog.digest !== locked.sourceDigest)
      return fail(`is now ${catalog.digest}, expected ${locked.sourceDigest} by the lock`);
    const source = { ...catalog, facts: selectLocked(catalog, locked) };
    const { platforms } = images.find(({ destination }) => destination === catalog.destination) ?? {};
    const withoutImages = new Set(locked.withoutImages);
    const rebuilt = await rebuildFrom(source, session, { platforms, withoutImages });
    const expected = image.contents.root.digest;
    if (rebuilt.digest === expected) return rebuilt;
    await rebuilt.close();
    return fail(`rebuilt as ${rebuilt.digest}, expected ${expected} by the lock`);
  };
  const openBuilt = async (image: LockedImage): Promise<OpenedReference> => {
    const { images } = await getPlan();
    const planned = images.find(({ kind, name }) => kind === image.kind && isSameName(name, image));
    const opened = await planned?.open?.();
    if (opened?.reference === image.contents.root.digest) return opened;
    const noun = image.kind === 'chart' ? 'chart' : 'image';
    throw new OpmateError('INVALID', `is another ${noun} now than in the lock`, {
      subject: image.source,
      hint,
    });
  };
  const isFiltered = (image: LockedImage): boolean =>
    image.kind === 'catalog' &&
    lock.catalogs.some((catalog) => !catalog.isWhole && isSameName(catalog, image));
  return {
    findOpener(image) {
      if (image.kind === 'chart' || image.kind === 'graph') return () => openBuilt(image);
      if (!isFiltered(image)) return undefined;
      return async () => holdOpen(await getOrAdd(rebuilding, image, () => rebuild(image)));
    },
    async close() {
      for (const rebuilt of rebuilding.values())
        await rebuilt.then((catalog) => catalog.close()).catch(() => undefined);
      await planning?.then((plan) => plan.close()).catch(() => undefined);
    },
  };
}
