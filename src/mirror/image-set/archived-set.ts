import { ErrorList } from '../../core/diagnostics-error.js';
import { OpmateError } from '../../core/errors.js';
import type { Reference } from '../../core/reference.js';
import { quoteGo } from '../../document/go-json.js';
import { type OpenedArchive, notInArchive } from '../../oci/archive-set/archive-set-reader.js';
import { holdOpen } from '../../oci/image/open.js';
import type { Repository } from '../../oci/registry/repository.js';
import { findSubjectOfTag } from '../../oci/signatures/attached-signatures.js';
import { openCatalogIn } from '../../source/drivers/image.js';
import type { Session } from '../../source/session.js';
import { openArchivedCharts } from '../helm/archived-charts.js';
import { type ImageSetLock, type LockedImage, getLockedName, isSameName } from '../lock/lock.js';
import { createLockedAccess } from '../release/locked-access.js';
import { type ImageSetConfiguration, type OperatorConfig, getCatalogTarget } from './image-set-config.js';
import { type ImageSetPlan, type PlanOptions, planImageSet } from './image-set-plan.js';
import type { TargetName } from '../naming/image-name.js';
import type { MirroredContent } from '../plan/mirror-plan.js';
import { isOfRelease } from '../plan/planned-image.js';
import { getArchivedImages } from './set-archive.js';

interface ArchivedSetOptions extends Omit<
  PlanOptions,
  'openCatalog' | 'openCharts' | 'releaseAccess' | 'withCharts' | 'digestOfRebuilt'
> {
  lock: ImageSetLock;
  session: Session;
  /** Returns the content of an image, including content of the base. */
  findContent: (image: LockedImage) => Repository;
}

/** Throws OpmateError INVALID for images of an archive that its lock does not list. */
export function requireListedImages({ index }: OpenedArchive, lock: ImageSetLock): void {
  const locked = lock.images.flatMap(getArchivedImages);
  const names = new Set(locked.map(({ repository, tag, root }) => getName(repository, tag, root.digest)));
  const errors = new ErrorList();
  for (const { repository, tag, descriptor } of index.images) {
    const subject = getName(repository, tag, descriptor.digest);
    if (!names.has(subject))
      errors.add(new OpmateError('INVALID', 'in the archive, but not in its lock', { subject }));
  }
  errors.throwIfAny();
}

function getName(repository: string, tag: string | undefined, digest: string): string {
  return tag === undefined ? `${repository}@${digest}` : `${repository}:${tag} (${digest})`;
}

/**
 * Plans a configuration with the catalogs, charts and releases of an archive; nothing else of the archive is trusted.
 * Throws errors of `planImageSet`, and OpmateError NOT_FOUND and DIGEST for a catalog that the archive lacks.
 */
export async function planArchivedSet(
  config: ImageSetConfiguration,
  options: ArchivedSetOptions,
): Promise<ImageSetPlan> {
  const { lock, session, findContent } = options;
  const images = new Map(
    config.operators.map((operator) => [operator.reference.text, findCatalogImage(operator, lock)]),
  );
  return planImageSet(config, {
    ...options,
    async openCatalog(reference) {
      const image = images.get(reference.text);
      if (image === undefined) throw notInArchive(reference.text);
      const { digest } = image.contents.root;
      const { catalog, close } = await openCatalogIn(findContent(image), digest, reference, session);
      return { catalog, digest, close };
    },
    openCharts: (helm) => openArchivedCharts(helm, options),
    releaseAccess: createLockedAccess(
      lock.releases ?? { releases: [], graphs: [] },
      options,
      async ({ digest, text }) => openReleaseImage(digest, text, options),
    ),
    avoidRisks: false,
    withCharts: true,
    // The archive holds the rebuilt catalog under its own digest.
    digestOfRebuilt: ({ digest }) => Promise.resolve(digest),
  });
}

function findCatalogImage(operator: OperatorConfig, lock: ImageSetLock): LockedImage {
  const { text, digest }: Reference = operator.reference;
  const { repository, tag } = getCatalogTarget(operator);
  const catalog = lock.catalogs.find(
    (locked) =>
      locked.catalog === operator.catalog &&
      locked.repository === repository &&
      (tag === undefined || locked.tag === tag),
  );
  const image =
    catalog && lock.images.find((locked) => locked.kind === 'catalog' && isSameName(locked, catalog));
  if (catalog === undefined || image === undefined) {
    throw new OpmateError('NOT_FOUND', 'not in the archive under its name in the configuration', {
      subject: text,
    });
  }
  const archived = catalog.isWhole ? image.contents.root.digest : catalog.sourceDigest;
  if (digest !== undefined && archived !== digest) {
    throw new OpmateError('DIGEST', `the archive has it with digest ${archived}`, { subject: text });
  }
  return image;
}

function openReleaseImage(digest: string, text: string, { lock, findContent }: ArchivedSetOptions) {
  const image = lock.images.find(
    ({ kind, contents }) => kind === 'release' && contents.root.digest === digest,
  );
  if (image === undefined) throw notInArchive(text);
  return holdOpen({ repository: findContent(image), digest });
}

/** Returns a lock without releases that a plan lacks, their images and signatures. */
export function withPlannedReleases(lock: ImageSetLock, plan: ImageSetPlan): ImageSetLock {
  const planned = getPlannedNames(plan.images.filter(isOfRelease));
  const kept = lock.images.filter((image) => !isOfRelease(image) || planned.has(getLockedName(image)));
  if (lock.releases === undefined || kept.length === lock.images.length) return lock;
  const digests = new Set(plan.releases.map(({ image }) => image.digest));
  const releases = lock.releases.releases.filter(({ image }) => digests.has(image.digest));
  return { ...lock, images: withoutStraySignatures(kept), releases: { ...lock.releases, releases } };
}

function getPlannedNames(images: ImageSetPlan['images']): Set<string> {
  return new Set(images.map(({ name }) => `${name.repository}:${name.tag}`));
}

/** Returns images without signatures of images that are not included. */
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

/**
 * Returns the part of an archive's lock that a plan requests; catalogs keep their content (`narrowCatalogs`). Throws
 * OpmateError NOT_FOUND for all images that the archive lacks.
 */
export function limitLock(lock: ImageSetLock, plan: ImageSetPlan): ImageSetLock {
  const planned = getPlannedNames(plan.images);
  const images = lock.images.filter(
    (image) => image.kind === 'signature' || planned.has(getLockedName(image)),
  );
  const held = new Set(images.map(getLockedName));
  const errors = new ErrorList();
  for (const { kind, name, source } of plan.images)
    if (kind !== 'chart' && !held.has(`${name.repository}:${name.tag}`)) errors.add(notInArchive(source));
  errors.throwIfAny();
  const catalogs = lock.catalogs.filter(({ repository, tag }) => planned.has(`${repository}:${tag}`));
  return { ...lock, catalogs, images: withoutStraySignatures(images) };
}

/**
 * Returns the planned images and catalogs that a lock has, for the manifests of a cluster; names are those of the plan.
 * Throws OpmateError INVALID with all images, catalogs and signatures of the lock that the plan lacks.
 */
export function requireAllowedImages(lock: ImageSetLock, plan: ImageSetPlan): MirroredContent {
  const planned = new Map(plan.images.map((image) => [`${image.name.repository}:${image.name.tag}`, image]));
  const errors = new ErrorList();
  const refuse = (subject: string, problem: string): void =>
    errors.add(new OpmateError('INVALID', problem, { subject }));
  const allowed = new Map<string, LockedImage>();
  const signatures = lock.images.filter(({ kind }) => kind === 'signature');
  for (const image of lock.images) {
    if (image.kind === 'signature') continue;
    const name = getLockedName(image);
    const problem = findProblem(image, planned.get(name));
    if (problem === undefined) allowed.set(name, image);
    else refuse(name, problem);
  }
  const fitting = new Set(withoutStraySignatures([...allowed.values(), ...signatures]));
  for (const image of signatures) {
    if (!fitting.has(image))
      refuse(getLockedName(image), 'not a signature of an image that the configuration requests');
  }
  for (const locked of lock.catalogs) {
    const isPlanned = plan.catalogs.some(
      ({ operator, name }) => operator.catalog === locked.catalog && isSameName(name, locked),
    );
    if (!isPlanned)
      refuse(
        `${locked.repository}:${locked.tag}`,
        `the configuration does not request catalog ${quoteGo(locked.catalog)}`,
      );
  }
  errors.throwIfAny();
  const isAllowed = ({ name }: { name: TargetName }): boolean =>
    allowed.has(`${name.repository}:${name.tag}`);
  return {
    images: plan.images.filter(isAllowed),
    catalogs: plan.catalogs.filter(isAllowed),
    releases: plan.releases,
  };
}

function findProblem(
  image: LockedImage,
  planned: ImageSetPlan['images'][number] | undefined,
): string | undefined {
  if (planned === undefined) return 'the configuration does not request this image';
  if (planned.kind !== image.kind) return `is a ${image.kind} image, expected ${planned.kind}`;
  const expected = planned.reference.digest;
  const { digest } = image.contents.root;
  if (expected === undefined || expected === digest) return undefined;
  return `has digest ${digest}, expected ${expected}`;
}
