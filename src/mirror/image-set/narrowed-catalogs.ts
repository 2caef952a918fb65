import { ErrorList } from '../../core/diagnostics-error.js';
import { OpmateError } from '../../core/errors.js';
import { readContents } from '../../oci/image/contents.js';
import { holdOpen } from '../../oci/image/open.js';
import type { Repository } from '../../oci/registry/repository.js';
import type { SourceSession } from '../../source/session.js';
import { type ImageSetLock, type LockedCatalog, type LockedImage, isSameName } from '../lock/lock.js';
import { type RebuiltCatalog, rebuildCatalog } from '../selection/rebuilt-catalog.js';
import { withoutStraySignatures } from './archived-set.js';
import { getCatalogTarget } from './image-set-config.js';
import type { ImageSetPlan, PlannedCatalog } from './image-set-plan.js';

/** The lock of an archive with catalogs filtered by another configuration. */
export type NarrowedCatalogs = Awaited<ReturnType<typeof narrowCatalogs>>;

/**
 * Rebuilds the catalogs of an archive that contain more bundles than a configuration requests, on the image in the
 * archive, whose content `findContent` returns; equal archives and configurations have equal digests. Signatures of
 * replaced images are omitted. Throws OpmateError INVALID for catalogs whose tag is their digest, and errors of
 * rebuilding.
 */
export async function narrowCatalogs(
  lock: ImageSetLock,
  plan: ImageSetPlan,
  findContent: (image: LockedImage) => Repository,
  session: SourceSession,
) {
  const narrowed = lock.catalogs.flatMap((locked) => {
    const planned = plan.catalogs.find(({ name }) => isSameName(name, locked));
    return planned !== undefined && hasFewerBundles(planned, locked) ? [planned] : [];
  });
  requireTags(narrowed);
  const rebuilt = new Map<LockedImage, RebuiltCatalog>();
  const close = async (): Promise<void> => {
    for (const catalog of rebuilt.values()) await catalog.close();
  };
  const { temporaryDirectory, logger, signal } = session;
  try {
    let images = lock.images;
    for (const { operator, catalog, selection, name, destination } of narrowed) {
      const image = images.find((locked) => locked.kind === 'catalog' && isSameName(name, locked));
      if (image === undefined) continue;
      const base = { repository: findContent(image), digest: image.contents.root.digest };
      const { platforms } = plan.images.find((planned) => planned.destination === destination) ?? {};
      const { facts, packages } = selection;
      const result = await rebuildCatalog(catalog, facts, base, {
        ...{ temporaryDirectory, platforms, logger, signal },
      });
      const contents = await readContents(result.repository, result.digest, { signal });
      const replacement = { ...image, contents };
      rebuilt.set(replacement, result);
      images = images.map((locked) => (locked === image ? replacement : locked));
      const names = packages.map((item) => item.name).join(', ');
      const bundles = `${names}: ${facts.bundles.length} of the archive's bundles`;
      logger?.log('info', `${operator.catalog}: rebuilt as ${result.digest} for ${bundles}`);
    }
    return {
      lock: narrowed.length === 0 ? lock : { ...lock, images: withoutStraySignatures(images) },
      /** Returns a function that opens a rebuilt catalog; undefined for an image of the archive. */
      getOpener(image: LockedImage) {
        const catalog = rebuilt.get(image);
        return catalog && (() => Promise.resolve(holdOpen(catalog)));
      },
      close,
    };
  } catch (error) {
    await close();
    throw error;
  }
}

function hasFewerBundles({ selection }: PlannedCatalog, { packages }: LockedCatalog): boolean {
  const selected = new Set(selection.facts.bundles.map((bundle) => `${bundle.package} ${bundle.name}`));
  return packages.some(({ name, bundles }) =>
    bundles.some((bundle) => !selected.has(`${name} ${bundle.name}`)),
  );
}

function requireTags(catalogs: readonly PlannedCatalog[]): void {
  const errors = new ErrorList();
  for (const { operator } of catalogs) {
    if (getCatalogTarget(operator).tag !== undefined) continue;
    errors.add(
      new OpmateError('INVALID', 'a part of it has another digest than its tag at the target', {
        subject: operator.catalog,
        hint: 'set targetTag here and for the archive, or select everything that the archive contains of it',
      }),
    );
  }
  errors.throwIfAny();
}
