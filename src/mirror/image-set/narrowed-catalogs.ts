import type { RegistryReference } from '../../core/reference.js';
import { readContents } from '../../oci/image/contents.js';
import { type OpenedReference, holdOpen } from '../../oci/image/open.js';
import type { Platform } from '../../oci/image/types.js';
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
  const renamed = new Map<string, NewName>();
  const rename = <T extends { destination: string }>(item: T): T => ({
    ...item,
    ...renamed.get(item.destination),
  });
  const rebuilt = new Map<LockedImage, RebuiltCatalog>();
  const close = async (): Promise<void> => {
    for (const catalog of rebuilt.values()) await catalog.close();
  };
  try {
    let { images, catalogs } = lock;
    for (const { locked: lockedCatalog, planned } of narrowed) {
      const image = images.find((locked) => locked.kind === 'catalog' && isSameName(planned.name, locked));
      if (image === undefined) continue;
      const { platforms } = plan.images.find((other) => other.destination === planned.destination) ?? {};
      const result = await rebuildOn(image, planned, findContent(image), platforms, session);
      const contents = await readContents(result.repository, result.digest, session);
      const name = renameCatalog(planned, result.digest, target);
      renamed.set(planned.destination, name);
      const { tag } = name.name;
      const replacement = { ...image, tag, contents };
      rebuilt.set(replacement, result);
      images = images.map((locked) => (locked === image ? replacement : locked));
      catalogs = catalogs.map((locked) => (locked === lockedCatalog ? { ...locked, tag } : locked));
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

/** Names of a catalog that has another tag than in the plan. */
interface NewName {
  name: TargetName;
  target: RegistryReference;
  destination: string;
}

function renameCatalog({ operator }: PlannedCatalog, digest: string, target: MirrorTarget): NewName {
  const { repository, tag = toDigestTag(digest) } = getCatalogTarget(operator);
  const renamed = targetReference(target, pathBelow(target, repository), tag);
  return { name: { repository, tag }, target: renamed, destination: renamed.text };
}

async function rebuildOn(
  { contents }: LockedImage,
  { operator, catalog, selection: { facts, packages } }: PlannedCatalog,
  repository: Repository,
  platforms: readonly Platform[] | undefined,
  { temporaryDirectory, logger, signal }: SourceSession,
): Promise<RebuiltCatalog> {
  const base = { repository, digest: contents.root.digest };
  const options = { temporaryDirectory, platforms, logger, signal };
  const rebuilt = await rebuildCatalog(catalog, facts, base, options);
  const names = packages.map((item) => item.name).join(', ');
  const bundles = `${names}: ${facts.bundles.length} of the archive's bundles`;
  logger?.log('info', `${operator.catalog}: rebuilt as ${rebuilt.digest} for ${bundles}`);
  return rebuilt;
}

function hasFewerBundles({ selection }: PlannedCatalog, { packages }: LockedCatalog): boolean {
  const selected = new Set(selection.facts.bundles.map((bundle) => `${bundle.package} ${bundle.name}`));
  return packages.some(({ name, bundles }) =>
    bundles.some((bundle) => !selected.has(`${name} ${bundle.name}`)),
  );
}
