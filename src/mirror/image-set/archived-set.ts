import { OpmateError } from '../../core/errors.js';
import { combineErrors } from '../../core/diagnostics-error.js';
import { quoteGo } from '../../document/go-json.js';
import { type Reference } from '../../core/reference.js';
import type { OpenedArchive } from '../../oci/archive-set/archive-set-reader.js';
import { holdOpen } from '../../oci/image/open.js';
import type { Repository } from '../../oci/registry/repository.js';
import { findSubjectOfTag } from '../../oci/signatures/attached-signatures.js';
import { openCatalogIn } from '../../source/drivers/image.js';
import type { SourceSession } from '../../source/session.js';
import { type ImageSetLock, type LockedCatalog, type LockedImage, nameOfLocked } from '../lock/lock.js';
import { type ImageSetConfiguration, targetOfCatalog } from './image-set-config.js';
import {
  type ImageSetPlan,
  type NamedImage,
  type PlanOptions,
  isOfRelease,
  planImageSet,
} from './image-set-plan.js';
import type { OpenedCatalog } from './select-catalogs.js';
import type { MirroredSet } from './image-set-resources.js';
import { openArchivedCharts } from '../helm/archived-charts.js';
import { lockedReleases } from '../release/locked-access.js';
import { type OpenedReleases, openReleases } from '../release/open-releases.js';
import type { ReleaseConfig } from '../release/release-config.js';
import { getArchivedImages } from './set-archive.js';

interface ArchivedSetOptions extends Omit<
  PlanOptions,
  'openCatalog' | 'openCharts' | 'openReleases' | 'withCharts' | 'digestOfRebuilt'
> {
  archive: OpenedArchive;
  lock: ImageSetLock;
  session: SourceSession;
  /** Returns the content of an image, of which the base of the archive may hold a part. */
  contentOf: (image: LockedImage) => Repository;
  /** Relative paths of keys count from it. */
  directory: string;
  /** Takes the release that the configuration names without signature. */
  ignoreReleaseSignature: boolean;
}

/**
 * Throws OpmateError INVALID for every image that an archive lists and its lock does not name. What is served, and what
 * is mirrored, would differ.
 */
export function requireListedImages({ index }: OpenedArchive, lock: ImageSetLock): void {
  const locked = lock.images.flatMap(getArchivedImages);
  const names = new Set(locked.map(({ repository, tag, root }) => getName(repository, tag, root.digest)));
  const faults = index.images
    .map(({ repository, tag, descriptor }) => getName(repository, tag, descriptor.digest))
    .filter((name) => !names.has(name))
    .map((name) => new OpmateError('INVALID', 'in the archive, but not in its lock', { subject: name }));
  if (faults.length > 0) throw combineErrors(faults);
}

/**
 * Plans a configuration from the catalogs and charts that an archive holds: what the configuration allows of them. Nothing but the
 * contents of the catalogs is taken from the archive. Throws what `planImageSet` throws, and OpmateError NOT_FOUND and
 * DIGEST for a catalog of the configuration that the archive does not hold.
 */
export async function planArchivedSet(
  config: ImageSetConfiguration,
  options: ArchivedSetOptions,
): Promise<ImageSetPlan> {
  const images = new Map<string, LockedImage>();
  for (const operator of config.operators) {
    const { repository, tag } = targetOfCatalog(operator);
    const catalog = options.lock.catalogs.find(
      (lockedCatalog) =>
        lockedCatalog.catalog === operator.catalog &&
        lockedCatalog.repository === repository &&
        (tag === undefined || lockedCatalog.tag === tag),
    );
    images.set(operator.reference.text, findCatalogImage(operator.reference, catalog, options));
  }
  return planImageSet(config, {
    ...options,
    openCatalog: (reference) => openArchivedCatalog(reference, images.get(reference.text), options),
    openCharts: (helm) => openArchivedCharts(helm, options),
    openReleases: (releases) => openArchivedReleases(releases, options),
    withCharts: true,
    // The archive holds the rebuilt catalog, and names it by its own digest.
    digestOfRebuilt: ({ digest }) => Promise.resolve(digest),
  });
}

function findCatalogImage(
  { text, digest }: Reference,
  catalog: LockedCatalog | undefined,
  { lock }: ArchivedSetOptions,
): LockedImage {
  const image =
    catalog &&
    lock.images.find(
      ({ kind, repository, tag }) =>
        kind === 'catalog' && repository === catalog.repository && tag === catalog.tag,
    );
  if (catalog === undefined || image === undefined) {
    throw new OpmateError('NOT_FOUND', 'not in the archive under its name in the configuration', {
      subject: text,
    });
  }
  const own = catalog.isWhole ? image.contents.root.digest : catalog.sourceDigest;
  if (digest !== undefined && own !== digest) {
    throw new OpmateError('DIGEST', `the archive has it with digest ${own}`, { subject: text });
  }
  return image;
}

function openArchivedReleases(
  config: ReleaseConfig | undefined,
  options: ArchivedSetOptions,
): Promise<OpenedReleases> {
  const { lock, signal, ignoreReleaseSignature: ignoreSignature } = options;
  const locked = lock.releases ?? { releases: [], graphs: [] };
  const access = lockedReleases(locked, options, async ({ digest, text }) => {
    const image = lock.images.find(
      ({ kind, contents }) => kind === 'release' && contents.root.digest === digest,
    );
    if (image === undefined) throw new OpmateError('NOT_FOUND', 'not in the archive', { subject: text });
    return holdOpen({ repository: options.contentOf(image), digest });
  });
  return openReleases(config, { access, avoidRisks: false, ignoreSignature, signal });
}

/**
 * The same lock with those releases only that a plan has, and with nothing that belongs to the others alone.
 */
export function withPlannedReleases(lock: ImageSetLock, plan: ImageSetPlan): ImageSetLock {
  const planned = new Set(
    plan.images.filter(isOfRelease).map(({ name }) => `${name.repository}:${name.tag}`),
  );
  const kept = lock.images.filter((image) => !isOfRelease(image) || planned.has(nameOfLocked(image)));
  if (lock.releases === undefined || kept.length === lock.images.length) return lock;
  const digests = new Set(plan.releases.map(({ image }) => image.digest));
  const releases = lock.releases.releases.filter(({ image }) => digests.has(image.digest));
  return { ...lock, images: withoutStraySignatures(kept), releases: { ...lock.releases, releases } };
}

/** Returns images without the signatures of what is not among them. */
export function withoutStraySignatures(images: readonly LockedImage[]): LockedImage[] {
  const signable = new Set(
    images.flatMap(({ kind, repository, contents: { manifests } }) =>
      kind === 'signature' ? [] : manifests.map(({ descriptor }) => `${repository}@${descriptor.digest}`),
    ),
  );
  return images.filter(
    ({ kind, repository, tag }) =>
      kind !== 'signature' || signable.has(`${repository}@${findSubjectOfTag(tag) ?? ''}`),
  );
}

async function openArchivedCatalog(
  reference: Reference,
  image: LockedImage | undefined,
  { session, contentOf }: ArchivedSetOptions,
): Promise<OpenedCatalog> {
  if (image === undefined)
    throw new OpmateError('NOT_FOUND', 'not in the archive', { subject: reference.text });
  const { digest } = image.contents.root;
  const { catalog, close } = await openCatalogIn(contentOf(image), digest, reference, session);
  return { catalog, digest, close };
}

/**
 * Returns what of the lock of an archive another configuration than that of the archive asks for; catalogs are those
 * of the archive (`narrowCatalogs`). Throws OpmateError NOT_FOUND for all images that are not in the archive.
 */
export function limitLock(lock: ImageSetLock, plan: ImageSetPlan): ImageSetLock {
  const planned = new Set(plan.images.map(({ name }) => `${name.repository}:${name.tag}`));
  const images = lock.images.filter(
    (image) => image.kind === 'signature' || planned.has(nameOfLocked(image)),
  );
  const held = new Set(images.map(nameOfLocked));
  const faults = plan.images
    .filter(({ kind, name }) => kind !== 'chart' && !held.has(`${name.repository}:${name.tag}`))
    .map(({ source }) => new OpmateError('NOT_FOUND', 'not in the archive', { subject: source }));
  const catalogs = lock.catalogs.filter(({ repository, tag }) => planned.has(`${repository}:${tag}`));
  if (faults.length > 0) throw combineErrors(faults);
  return { ...lock, catalogs, images: withoutStraySignatures(images) };
}

/**
 * What of a plan is in a lock, for the objects of a cluster: names are the plan's, never the lock's. Throws OpmateError
 * INVALID, naming each, for images, catalogs and repositories that the plan does not have.
 */
export function requireAllowedImages(lock: ImageSetLock, plan: ImageSetPlan): MirroredSet<NamedImage> {
  const planned = new Map(plan.images.map((image) => [`${image.name.repository}:${image.name.tag}`, image]));
  const signable: LockedImage[] = [];
  const names = new Set<string>();
  const faults: OpmateError[] = [];
  const refuse = (name: string, problem: string): void => {
    faults.push(new OpmateError('INVALID', problem, { subject: name }));
  };
  for (const image of lock.images) {
    if (image.kind === 'signature') continue;
    const name = nameOfLocked(image);
    const allowed = planned.get(name);
    const { digest } = image.contents.root;
    const wanted = allowed?.reference.digest;
    if (allowed === undefined) refuse(name, 'the configuration does not ask for this image');
    else if (allowed.kind !== image.kind) refuse(name, `is a ${image.kind} image, expected ${allowed.kind}`);
    else if (wanted !== undefined && wanted !== digest)
      refuse(name, `has digest ${digest}, expected ${wanted}`);
    else {
      names.add(name);
      signable.push(image);
    }
  }
  const signatures = lock.images.filter(({ kind }) => kind === 'signature');
  const fitting = new Set(withoutStraySignatures([...signable, ...signatures]));
  for (const image of signatures) {
    if (!fitting.has(image))
      refuse(nameOfLocked(image), 'not a signature of an image that the configuration asks for');
  }
  for (const { catalog, repository, tag } of lock.catalogs) {
    const isPlanned = plan.catalogs.some(
      ({ operator, name }) =>
        operator.catalog === catalog && name.repository === repository && name.tag === tag,
    );
    if (!isPlanned)
      refuse(`${repository}:${tag}`, `the configuration does not ask for catalog ${quoteGo(catalog)}`);
  }
  if (faults.length > 0) throw combineErrors(faults);
  const isThere = ({ name }: { name: { repository: string; tag: string } }): boolean =>
    names.has(`${name.repository}:${name.tag}`);
  return {
    images: plan.images.filter(isThere),
    catalogs: plan.catalogs.filter(isThere),
    releases: plan.releases,
  };
}

function getName(repository: string, tag: string | undefined, digest: string): string {
  return tag === undefined ? `${repository}@${digest}` : `${repository}:${tag} (${digest})`;
}
