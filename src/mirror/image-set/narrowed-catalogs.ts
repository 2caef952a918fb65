import { combineErrors } from '../../core/diagnostics-error.js';
import { OpmateError } from '../../core/errors.js';
import { readContents } from '../../oci/image/contents.js';
import { type OpenedReference, holdOpen } from '../../oci/image/open.js';
import type { Repository } from '../../oci/registry/repository.js';
import type { ImageSetLock, LockedCatalog, LockedImage } from '../lock/lock.js';
import type { SourceSession } from '../../source/session.js';
import { type RebuiltCatalog, rebuildCatalog } from '../selection/rebuilt-catalog.js';
import { withoutStraySignatures } from './archived-set.js';
import { targetOfCatalog } from './image-set-config.js';
import type { ImageSetPlan, PlannedCatalog } from './image-set-plan.js';

/** The lock of an archive with the catalogs of which a configuration takes a part, rebuilt from the archive. */
export interface NarrowedCatalogs {
  lock: ImageSetLock;
  /** Opens a rebuilt catalog; undefined for an image that the archive holds. */
  getOpener(image: LockedImage): (() => Promise<OpenedReference>) | undefined;
  close(): Promise<void>;
}

/**
 * Rebuilds the catalogs of an archive that name more bundles than a configuration asks for: on the image that the
 * archive holds, whose content `contentOf` returns, so that equal archives and configurations give equal digests.
 * Signatures of what is replaced are left out. Throws OpmateError INVALID for catalogs whose tag is the digest of the whole, and what rebuilding throws.
 */
export async function narrowCatalogs(
  lock: ImageSetLock,
  plan: ImageSetPlan,
  contentOf: (image: LockedImage) => Repository,
  session: SourceSession,
): Promise<NarrowedCatalogs> {
  const narrowed = lock.catalogs.flatMap((locked) => {
    const planned = plan.catalogs.find(({ name }) => isNamed(name, locked));
    return planned !== undefined && namesMore(locked, planned) ? [planned] : [];
  });
  const faults = narrowed
    .filter(({ operator }) => targetOfCatalog(operator).tag === undefined)
    .map(
      ({ operator: { catalog } }) =>
        new OpmateError('INVALID', 'a part of it has another digest than its tag at the target', {
          subject: catalog,
          hint: 'set targetTag here and for the archive, or select everything that the archive contains of it',
        }),
    );
  if (faults.length > 0) throw combineErrors(faults);
  const rebuilt = new Map<LockedImage, RebuiltCatalog>();
  const close = async (): Promise<void> => {
    for (const catalog of rebuilt.values()) await catalog.close();
  };
  const { temporaryDirectory, logger, signal } = session;
  try {
    let images = lock.images;
    for (const catalog of narrowed) {
      const image = images.find(({ kind, ...name }) => kind === 'catalog' && isNamed(catalog.name, name));
      if (image === undefined) continue;
      const base = { repository: contentOf(image), digest: image.contents.root.digest };
      const { platforms } = plan.images.find(({ destination }) => destination === catalog.destination) ?? {};
      const { facts } = catalog.selection;
      const how = { temporaryDirectory, platforms, logger, signal };
      const made = await rebuildCatalog(catalog.catalog, facts, base, how);
      const contents = await readContents(made.repository, made.digest, { signal });
      const replacement = { ...image, contents };
      rebuilt.set(replacement, made);
      images = images.map((lockedImage) => (lockedImage === image ? replacement : lockedImage));
      const { packages } = catalog.selection;
      const bundles = catalog.selection.facts.bundles.length;
      const what = `${packages.map(({ name }) => name).join(', ')}: ${bundles} of the archive's bundles`;
      logger?.log('info', `${catalog.operator.catalog}: rebuilt as ${made.digest} for ${what}`);
    }
    return {
      lock: narrowed.length === 0 ? lock : { ...lock, images: withoutStraySignatures(images) },
      getOpener(image) {
        const made = rebuilt.get(image);
        return made && (() => Promise.resolve(holdOpen(made)));
      },
      close,
    };
  } catch (error) {
    await close();
    throw error;
  }
}

function isNamed(
  name: { repository: string; tag?: string | undefined },
  other: { repository: string; tag?: string | undefined },
): boolean {
  return name.repository === other.repository && name.tag === other.tag;
}

/** Whether the image of a locked catalog names bundles that are not selected. */
function namesMore({ packages }: LockedCatalog, { selection }: PlannedCatalog): boolean {
  const selected = new Set(selection.facts.bundles.map((bundle) => `${bundle.package} ${bundle.name}`));
  return packages.some(({ name, bundles }) =>
    bundles.some((bundle) => !selected.has(`${name} ${bundle.name}`)),
  );
}
