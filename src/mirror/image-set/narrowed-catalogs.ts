import type { RegistryReference } from '../../core/reference.js';
import { readContents } from '../../oci/image/contents.js';
import { type OpenedReference, holdOpen } from '../../oci/image/open.js';
import type { Repository } from '../../oci/registry/repository.js';
import type { SourceSession } from '../../source/session.js';
import { type ImageSetLock, type LockedCatalog, type LockedImage, isSameName } from '../lock/lock.js';
import { type RebuiltCatalog, rebuildCatalog } from '../selection/rebuilt-catalog.js';
import { withoutStraySignatures } from './archived-set.js';
import { getCatalogTarget } from './image-set-config.js';
import type { TargetName } from '../naming/image-name.js';
import { type MirrorTarget, targetReference, pathBelow, toDigestTag } from '../naming/mirror-target.js';
import type { ImageSetPlan, PlannedCatalog } from './image-set-plan.js';
import type { MirroredContent } from '../plan/mirror-plan.js';

/** The part of an archive that a configuration selects: its lock, and its names for the manifests of a cluster. */
interface SelectedPart {
  locked: ImageSetLock;
  set: MirroredContent;
}

/** The selected part of an archive with catalogs filtered by another configuration. */
export interface NarrowedCatalogs extends SelectedPart {
  /** Returns a function that opens a rebuilt catalog; undefined for an image of the archive. */
  getOpener: (image: LockedImage) => (() => Promise<OpenedReference>) | undefined;
  close: () => Promise<void>;
}

/**
 * Rebuilds the catalogs of an archive that contain more bundles than a configuration requests, on the image in the
 * archive, whose content `findContent` returns; equal archives and configurations have equal digests. A catalog whose tag
 * is its digest gets the new one. Signatures of replaced images are omitted. Throws errors of rebuilding.
 */
export async function narrowCatalogs(
  { locked: lock, set }: SelectedPart,
  plan: ImageSetPlan,
  findContent: (image: LockedImage) => Repository,
  { target, session }: { target: MirrorTarget; session: SourceSession },
): Promise<NarrowedCatalogs> {
  const narrowed = lock.catalogs.flatMap((locked) => {
    const planned = plan.catalogs.find(({ name }) => isSameName(name, locked));
    return planned !== undefined && hasFewerBundles(planned, locked) ? [{ locked, planned }] : [];
  });
  /** Names of catalogs with another tag, by their destination in the plan. */
  const renamed = new Map<string, { name: TargetName; target: RegistryReference; destination: string }>();
  const rename = <T extends { destination: string }>(item: T): T => ({
    ...item,
    ...renamed.get(item.destination),
  });
  const rebuilt = new Map<LockedImage, RebuiltCatalog>();
  const close = async (): Promise<void> => {
    for (const catalog of rebuilt.values()) await catalog.close();
  };
  const { temporaryDirectory, logger, signal } = session;
  try {
    let { images, catalogs } = lock;
    for (const { locked: lockedCatalog, planned } of narrowed) {
      const { operator, catalog, selection, name, destination } = planned;
      const image = images.find((locked) => locked.kind === 'catalog' && isSameName(name, locked));
      if (image === undefined) continue;
      const base = { repository: findContent(image), digest: image.contents.root.digest };
      const { platforms } = plan.images.find((other) => other.destination === destination) ?? {};
      const { facts, packages } = selection;
      const result = await rebuildCatalog(catalog, facts, base, {
        ...{ temporaryDirectory, platforms, logger, signal },
      });
      const contents = await readContents(result.repository, result.digest, { signal });
      const { repository, tag = toDigestTag(result.digest) } = getCatalogTarget(operator);
      const renamedTarget = targetReference(target, pathBelow(target, repository), tag);
      renamed.set(destination, {
        name: { repository, tag },
        target: renamedTarget,
        destination: renamedTarget.text,
      });
      const replacement = { ...image, tag, contents };
      rebuilt.set(replacement, result);
      images = images.map((locked) => (locked === image ? replacement : locked));
      catalogs = catalogs.map((locked) => (locked === lockedCatalog ? { ...locked, tag } : locked));
      const names = packages.map((item) => item.name).join(', ');
      const bundles = `${names}: ${facts.bundles.length} of the archive's bundles`;
      logger?.log('info', `${operator.catalog}: rebuilt as ${result.digest} for ${bundles}`);
    }
    return {
      locked: narrowed.length === 0 ? lock : { ...lock, catalogs, images: withoutStraySignatures(images) },
      set: { ...set, images: set.images.map(rename), catalogs: set.catalogs.map(rename) },
      getOpener: (image) => {
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
