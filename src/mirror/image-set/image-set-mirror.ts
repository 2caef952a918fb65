import { leaveOut } from '../../catalog/selection/leave-out.js';
import { combineErrors } from '../../core/diagnostics-error.js';
import { OpmateError, throwIfCancelled } from '../../core/errors.js';
import { groupBy } from '../../core/groups.js';
import { sortedByBytes } from '../../core/order.js';
import { count } from '../../core/printable.js';
import { type RegistryReference, formatReference } from '../../core/reference.js';
import { type OpenedReference, holdOpen } from '../../oci/image/open.js';
import { SharedBlobs } from '../../oci/image/shared-blobs.js';
import type { Verdict } from '../../oci/signatures/verify-image.js';
import type { SourceSession } from '../../source/session.js';
import { type BytePlan, planSurveyed } from '../lock/byte-plan.js';
import type { ImageSetLock, LockedCatalog, LockedImage } from '../lock/lock.js';
import { lockReleases } from '../lock/locked-releases.js';
import { type RebuiltCatalog, rebuildFrom } from '../selection/rebuilt-catalog.js';
import { copyTransfers } from '../transfer/copy-transfers.js';
import { findSignatures } from '../transfer/find-signatures.js';
import { joinReports, splitCopyOrder } from '../transfer/transfer-step.js';
import type {
  NamedTransfer,
  PinnedTransfer,
  StepFaults,
  SurveyedTransfer,
  Transfer,
  TransferOptions,
  TransferReport,
} from '../transfer/transfer-types.js';
import { pinTransfers, surveyTransfers } from '../transfer/transfer.js';
import { withVerdicts } from '../verification/verify-lock.js';
import type { CatalogSourceTemplate } from './catalog-source-template.js';
import { getCatalogTarget } from './image-set-config.js';
import { findHeld } from './held-images.js';
import { type MirrorTarget, targetReference, toDigestTag } from '../naming/mirror-target.js';
import type { ImageSetPlan, PlannedCatalog } from './image-set-plan.js';
import { createTargetCopies } from './target-copies.js';
import { toTransfer } from '../plan/mirror-plan.js';
import { type OnError, type SetImage, isOfRelease, toBundleKey } from '../plan/planned-image.js';

interface ImageSetMirrorOptions {
  target: MirrorTarget;
  session: SourceSession;
  transfer: TransferOptions;
  onError: OnError;
  /** Lock of the last run to the target; its content is kept if this run skips it. */
  previous?: ImageSetLock | undefined;
  /** Copies signatures and other referrers too. */
  signatures: boolean;
}

/** An image whose manifests were read; signatures have no planned image. */
interface Prepared {
  image: SetImage | undefined;
  transfer: PinnedTransfer;
}

interface ImageSetReport extends TransferReport {
  /** Messages about bundles and images removed from catalogs. */
  changes: string[];
  /** Names of the bundles removed from catalogs. */
  removedBundles: string[];
}

/**
 * Mirrors a planned image set: `prepare` reads the manifests of all images, `survey` finds missing content at the target,
 * `copy` copies images, then the catalogs that name them. `lock` pins the result. `close` removes rebuilt catalogs; the
 * plan stays open.
 */
export type ImageSetMirror = ReturnType<typeof createImageSetMirror>;

/** The failure of a run that skipped everything. */
export class NothingMirroredError extends OpmateError {
  override readonly name: string = 'NothingMirroredError';
  readonly report: ImageSetReport;
  constructor(
    problem: string,
    { code, hint, cause }: Pick<OpmateError, 'code'> & { hint: string; cause: OpmateError },
    report: ImageSetReport,
  ) {
    super(code, problem, { subject: 'nothing mirrored', hint, cause });
    this.report = report;
  }
}

/** Returns the mirror of a plan. */
export function createImageSetMirror(plan: ImageSetPlan, options: ImageSetMirrorOptions) {
  const { session, transfer: transferOptions, onError, previous } = options;
  const isArchive = options.target.registry === '';
  const copies = isArchive ? undefined : createTargetCopies(previous, transferOptions);
  const imagesByDestination = new Map(plan.images.map((image) => [image.destination, image]));
  const rebuiltCatalogs = new Map<PlannedCatalog, RebuiltCatalog>();
  /** By destination. */
  const preparedImages = new Map<string, Prepared>();
  let surveyedTransfers: SurveyedTransfer[] = [];
  const failedImages = new Map<SetImage, OpmateError>();
  const { skipped } = plan;
  const allFaults: StepFaults = {
    missing: [],
    failed: plan.faults.map(({ name, error }) => ({
      transfer: { sourceName: name, targetName: '' },
      error,
    })),
  };
  const allChanges = [...skipped.changes];
  /** References removed from `relatedImages` of bundles. */
  const removedTexts = new Set<string>();
  /** Bundles removed from catalogs, as `package/bundle`. */
  const removedBundles = new Set(skipped.bundles);
  /** Images that only removed bundles need. */
  const unneeded = new Set<SetImage>();
  /** By name in the lock. */
  let knownVerdicts: ReadonlyMap<string, Verdict> = new Map();
  return {
    ...{ prepare, addSignatures, keepVerdicts, survey, copy, skip, report },
    ...{ lockedImages, lockedCatalogs, transfers, lock, getOpener, close },
  };

  /**
   * Rebuilds filtered catalogs, and reads the manifests of all images: one request per manifest. Throws the failures
   * unless images may be skipped.
   */
  async function prepare(): Promise<void> {
    const { images, catalogs } = plan;
    const isRebuilt = (image: SetImage): boolean => findCatalog(image)?.selection.isWhole === false;
    const rebuildAll = async (): Promise<void> => {
      for (const catalog of catalogs) if (!catalog.selection.isWhole) await rebuild(catalog);
    };
    const [pinning, rebuilding] = await Promise.allSettled([
      pin(images.filter((image) => !isRebuilt(image))),
      rebuildAll(),
    ]);
    if (rebuilding.status === 'rejected') throw rebuilding.reason;
    if (pinning.status === 'rejected') throw pinning.reason;
    const steps = [pinning.value, await pin(images.filter(isRebuilt))];
    const positions = new Map(images.map(({ destination }, position) => [destination, position]));
    const byPosition = (a: NamedTransfer, b: NamedTransfer): number =>
      (positions.get(a.targetName) as number) - (positions.get(b.targetName) as number);
    const missing = steps.flatMap((step) => step.missing).sort(byPosition);
    const failed = steps.flatMap((step) => step.failed).sort((a, b) => byPosition(a.transfer, b.transfer));
    if (onError === 'stop' && failed.length > 0) throw combineErrors(failed.map(({ error }) => error));
    note({ missing, failed });
    for (const transfer of steps.flatMap((step) => step.pinned).sort(byPosition)) add(transfer);
    if (failedImages.size > 0) await repair();
    copies?.report();
    requireSome(transfers());
  }

  /** Throws OpmateError if a run skipped everything: its result would replace that of an earlier one. */
  function requireSome(results: readonly unknown[]): void {
    const [first, ...others] = allFaults.failed;
    if (results.length > 0 || first === undefined) return;
    const { code, hint = 'correct these failures, and repeat the run' } = first.error;
    const failed = count(others.length + 1, 'image');
    const cause = combineErrors(allFaults.failed.map(({ error }) => error));
    throw new NothingMirroredError(
      `${failed} failed, lock and cluster resources stay unchanged`,
      { code, hint, cause },
      report(),
    );
  }

  /** Reads the manifests of images; a run that stops reads all of them, to name every missing image. */
  function pin(images: readonly SetImage[]): Promise<StepFaults & { pinned: PinnedTransfer[] }> {
    return pinTransfers(
      images.map((image) => transferOf(image)),
      {
        ...transferOptions,
        ...(onError === 'stop' && { continueOnError: true, isQuiet: true }),
        findElsewhere: async (transfer, error, limits) => {
          const image = imagesByDestination.get(transfer.targetName);
          return image && copies?.find(image, transfer, error, limits);
        },
      },
    );
  }

  /** Finds the signatures of all images, for an archive. */
  async function addSignatures(): Promise<void> {
    if (options.signatures) await addSignaturesOf(transfers());
  }

  /** Sets the verdicts on images, by their names in the lock, which records them. */
  function keepVerdicts(verdicts: ReadonlyMap<string, Verdict>): void {
    knownVerdicts = verdicts;
  }

  /**
   * Surveys the target, and returns the size of the copy. Finds signatures, also of present images, which may have been
   * signed since.
   */
  async function survey(): Promise<BytePlan> {
    const pinned = transfers();
    if (!options.signatures) {
      await addSurveyed(pinned);
      return planSurveyed(lockedImages(), surveyedTransfers, lockedCatalogs());
    }
    const [matches] = await Promise.all([addSignaturesOf(pinned), addSurveyed(pinned)]);
    const before = new Map(pinned.map(({ targetName, contents }) => [targetName, contents]));
    const surveyed = new Set(surveyedTransfers.map(({ targetName }) => targetName));
    const changed = matches.filter(({ targetName, contents }) => {
      const known = before.get(targetName);
      return (
        known === undefined ||
        (known.manifests.length !== contents.manifests.length && surveyed.has(targetName))
      );
    });
    const names = new Set(changed.map(({ targetName }) => targetName));
    surveyedTransfers = surveyedTransfers.filter(({ targetName }) => !names.has(targetName));
    await addSurveyed(changed);
    return planSurveyed(lockedImages(), surveyedTransfers, lockedCatalogs());
  }

  /** Copies missing content: operands first, then catalogs, which name only copied images. */
  async function copy(): Promise<ImageSetReport> {
    const [operands] = splitCopyOrder(surveyedTransfers);
    const shared = new SharedBlobs();
    const first = await copyTransfers(operands, transferOptions, shared);
    note(first);
    if (failedImages.size > 0) {
      await repair();
      surveyedTransfers = operands;
      await addSurveyed(splitCopyOrder(transfers())[1]);
    }
    const last = await copyTransfers(splitCopyOrder(surveyedTransfers)[1], transferOptions, shared);
    note(last);
    const report = joinReports(first, last);
    requireSome(report.done);
    return { ...report, ...allFaults, ...listChanges() };
  }

  /** Returns the images and signatures with their contents, in the order of a lock. */
  function lockedImages(): LockedImage[] {
    return [...preparedImages.values()].flatMap(({ image, transfer }) => {
      if (image === undefined) return [toLockedSignature(transfer, plan)];
      if (isLeftOut(image)) return [];
      const { kind, source, name, bundles, reference, aliases } = image;
      return [
        {
          ...{ kind, reference: reference.text, source },
          ...(aliases !== undefined && { aliases: aliases.map(({ text }) => text) }),
          ...{ ...name, bundles, contents: transfer.contents },
        },
      ];
    });
  }

  /** Returns the catalogs with their content, in the order of the configuration. */
  function lockedCatalogs(
    templates: ReadonlyMap<string, CatalogSourceTemplate> = new Map(),
  ): LockedCatalog[] {
    return plan.catalogs
      .filter((catalog) => !isLeftOut(getImage(catalog)))
      .map((catalog) => toLockedCatalog(catalog, templates, getRemovedTexts(catalog)));
  }

  /** Returns the transfers of prepared images. */
  function transfers(): PinnedTransfer[] {
    return [...preparedImages.values()].flatMap(({ image, transfer }) =>
      image !== undefined && isLeftOut(image) ? [] : [transfer],
    );
  }

  function lock(
    configuration: string,
    options: Readonly<Record<string, string>>,
    templates?: ReadonlyMap<string, CatalogSourceTemplate>,
  ): ImageSetLock {
    const lock: ImageSetLock = {
      configuration,
      options,
      catalogs: lockedCatalogs(templates),
      charts: plan.charts.map(({ chart: { source, packed }, name }) => ({
        ...{ source, name: packed.name, version: packed.version, ...name },
      })),
      releases: lockReleases(plan),
      images: lockedImages(),
    };
    return withVerdicts(previous === undefined ? lock : addHeld(lock, previous), knownVerdicts);
  }

  function addHeld(lock: ImageSetLock, before: ImageSetLock): ImageSetLock {
    const toName = ({ name }: SetImage): string => `${name.repository}:${name.tag}`;
    const held = findHeld(before, lock, {
      images: new Set(plan.images.filter(isLeftOut).map(toName)),
      bundles: removedBundles,
      catalogs: [
        ...skipped.catalogs,
        ...plan.catalogs
          .filter((catalog) => isLeftOut(getImage(catalog)))
          .map(({ operator }) => operator.catalog),
      ],
    });
    const signatures = options.signatures
      ? held.images
      : held.images.filter(({ kind }) => kind !== 'signature');
    return {
      ...lock,
      catalogs: [...lock.catalogs, ...held.catalogs],
      images: [...lock.images, ...signatures],
    };
  }

  /** Returns the function that opens an image that its source no longer has; undefined for others. */
  function getOpener({ repository, tag }: LockedImage): (() => Promise<OpenedReference>) | undefined {
    for (const { image, transfer } of preparedImages.values()) {
      const isSame = image?.name.repository === repository && image.name.tag === tag;
      if (isSame && image.open === undefined && typeof transfer.source === 'function') return transfer.source;
    }
    return undefined;
  }

  /** Skips an image and repairs the catalogs. Throws `error` unless images may be skipped. */
  async function skip(targetName: string, error: OpmateError): Promise<void> {
    const prepared = preparedImages.get(targetName);
    if (onError === 'stop' || prepared === undefined) throw error;
    session.logger?.log('error', error.message);
    note({ missing: [], failed: [{ transfer: prepared.transfer, error }] });
    await repair();
  }

  function report(): ImageSetReport {
    return { ...joinReports(), ...allFaults, ...listChanges() };
  }

  function listChanges(): Pick<ImageSetReport, 'changes' | 'removedBundles'> {
    const names = [...removedBundles].map((key) => key.slice(key.indexOf('/') + 1));
    return { changes: allChanges, removedBundles: sortedByBytes(names) };
  }

  async function close(): Promise<void> {
    for (const rebuilt of rebuiltCatalogs.values()) await rebuilt.close();
    rebuiltCatalogs.clear();
  }

  function transferOf(image: SetImage): Transfer {
    const catalog = findCatalog(image);
    const rebuilt = catalog && rebuiltCatalogs.get(catalog);
    const transfer = toTransfer(image);
    // A rebuilt catalog has no other platforms.
    return rebuilt === undefined
      ? transfer
      : { ...transfer, source: () => Promise.resolve(holdOpen(rebuilt)), platforms: undefined };
  }

  function findCatalog(image: SetImage): PlannedCatalog | undefined {
    if (image.kind !== 'catalog') return undefined;
    return plan.catalogs.find(({ destination }) => destination === image.destination);
  }

  function isLeftOut(image: SetImage): boolean {
    return failedImages.has(image) || unneeded.has(image);
  }

  function add(transfer: PinnedTransfer): void {
    preparedImages.set(transfer.targetName, {
      image: imagesByDestination.get(transfer.targetName),
      transfer,
    });
  }

  function note({ missing, failed }: StepFaults): void {
    allFaults.missing.push(...missing);
    allFaults.failed.push(...failed);
    for (const { transfer, error } of failed) {
      const image = imagesByDestination.get(transfer.targetName);
      // A release without one of its images cannot be installed.
      if (image !== undefined && isOfRelease(image)) throw error;
      if (image !== undefined) failedImages.set(image, error);
    }
  }

  async function addSurveyed(pinned: readonly PinnedTransfer[]): Promise<void> {
    const { surveyed, ...faults } = await surveyTransfers(pinned, transferOptions);
    note(faults);
    surveyedTransfers.push(...surveyed);
  }

  /** Adds signatures, and referrers to their images; returns both. */
  async function addSignaturesOf(transfers: readonly PinnedTransfer[]): Promise<PinnedTransfer[]> {
    const { pinned, signatures } = await findSignatures(transfers, transferOptions);
    const all = [...pinned, ...signatures];
    for (const transfer of all) add(transfer);
    return all;
  }

  async function rebuild(catalog: PlannedCatalog): Promise<RebuiltCatalog> {
    await rebuiltCatalogs.get(catalog)?.close();
    rebuiltCatalogs.delete(catalog);
    requireOtherPlace(catalog);
    const { platforms } = getImage(catalog);
    const source = { ...catalog, facts: catalog.selection.facts };
    const withoutImages = new Set(getRemovedTexts(catalog));
    const rebuilt = await rebuildFrom(source, session, { platforms, withoutImages });
    rebuiltCatalogs.set(catalog, rebuilt);
    return rebuilt;
  }

  function getRemovedTexts({ withoutImages }: PlannedCatalog): string[] {
    return sortedByBytes(new Set([...withoutImages, ...removedTexts]));
  }

  function getImage({ destination }: PlannedCatalog): SetImage {
    return imagesByDestination.get(destination) as SetImage;
  }

  /** Removes bundles, or only references, of failed images from the catalogs. */
  async function repair(): Promise<void> {
    const before = removedTexts.size;
    for (const image of failedImages.keys()) {
      if (image.kind !== 'bundle' && image.kind !== 'related') continue;
      if (onError === 'skip-image' && image.kind === 'related')
        for (const text of image.texts) removedTexts.add(text);
      else for (const bundle of image.bundles) removedBundles.add(toBundleKey(bundle));
    }
    leaveOutUnneeded();
    for (const catalog of plan.catalogs) {
      throwIfCancelled(session.signal);
      const image = getImage(catalog);
      if (failedImages.has(image)) continue;
      const removed = catalog.selection.facts.bundles
        .map(({ package: packageName, name: bundle }) => toBundleKey({ package: packageName, bundle }))
        .filter((key) => removedBundles.has(key));
      if (removed.length === 0 && removedTexts.size === before) continue;
      try {
        await shrink(catalog, new Set(removed));
      } catch (error) {
        if (!(error instanceof OpmateError) || error.code !== 'INVALID') throw error;
        session.logger?.log('error', error.message);
        note({ missing: [], failed: [{ transfer: transferOf(image), error }] });
      }
    }
  }

  function leaveOutUnneeded(): void {
    for (const image of plan.images) {
      const isOfBundles = image.kind === 'bundle' || image.kind === 'related';
      if (!isOfBundles || image.isRequested === true || image.bundles.length === 0) continue;
      const isGone = image.bundles.every((bundle) => removedBundles.has(toBundleKey(bundle)));
      if (isGone) unneeded.add(image);
    }
  }

  async function shrink(catalog: PlannedCatalog, removed: ReadonlySet<string>): Promise<void> {
    const { operator } = catalog;
    const { selection, changes } = leaveOut(catalog.selection, removed, operator.catalog);
    catalog.selection = { ...selection, isWhole: false };
    catalog.isDatabase = false;
    allChanges.push(...changes.map((change) => `${operator.catalog}: ${change}`));
    const rebuilt = await rebuild(catalog);
    const image = getImage(catalog);
    if (getCatalogTarget(operator).tag === undefined) rename(catalog, image, toDigestTag(rebuilt.digest));
    const { pinned } = await pinTransfers([transferOf(image)], transferOptions);
    for (const transfer of pinned) add(transfer);
  }

  /** Gives a catalog that was rebuilt another tag at the target, where its digest is its tag. */
  function rename(catalog: PlannedCatalog, image: SetImage, tag: string): void {
    preparedImages.delete(image.destination);
    imagesByDestination.delete(image.destination);
    const name = { ...image.name, tag };
    const target = targetReference(options.target, image.target.repository, tag);
    const destination = target.text;
    Object.assign(catalog, { name, destination });
    Object.assign(image, { name, target, destination });
    imagesByDestination.set(destination, image);
  }
}

/** Throws OpmateError for a filtered catalog that would replace its source. */
function requireOtherPlace({ operator: { catalog, reference }, destination }: PlannedCatalog): void {
  if (reference.transport !== 'docker' || reference.digest !== undefined) return;
  const { registry, repository, tag = 'latest' } = reference;
  if (destination !== `${registry}/${repository}:${tag}`) return;
  throw new OpmateError('INVALID', 'the filtered catalog would replace the original', {
    subject: catalog,
    hint: 'mirror to another registry or path, or set another targetCatalog or targetTag',
  });
}

/** Returns a signature for a lock, in the repository of its image. */
function toLockedSignature(
  { source, sourceName, target, contents }: PinnedTransfer,
  { images }: ImageSetPlan,
): LockedImage {
  const path = (target as RegistryReference).repository;
  const signed = images.find(({ target: { repository } }) => repository === path);
  // One that its source lost is read from the target.
  const text = typeof source === 'function' ? sourceName : formatReference(source);
  return {
    ...{ kind: 'signature', reference: text, source: `docker://${text}` },
    ...{ repository: signed?.name.repository ?? path, tag: target.tag, bundles: [], contents },
  };
}

function toLockedCatalog(
  { operator, digest, name, selection, isDatabase }: PlannedCatalog,
  templates: ReadonlyMap<string, CatalogSourceTemplate>,
  withoutImages: readonly string[],
): LockedCatalog {
  const file = operator.targetCatalogSourceTemplate;
  const { facts, isWhole, packages } = selection;
  const bundles = groupBy(facts.bundles, (bundle) => bundle.package);
  return {
    catalog: operator.catalog,
    sourceDigest: digest,
    ...name,
    isWhole,
    ...(isDatabase && isWhole && { isDatabase }),
    ...(file !== undefined && {
      targetCatalogSourceTemplate: { file, text: templates.get(file)?.text },
    }),
    ...(!isWhole && withoutImages.length > 0 && { withoutImages }),
    packages: packages.map(({ name: packageName, defaultChannel, channels }) => ({
      name: packageName,
      defaultChannel,
      channels: channels.map((channel) => ({ name: channel.name, head: channel.head })),
      bundles: (bundles.get(packageName) ?? []).map((bundle) => ({
        name: bundle.name,
        version: bundle.packageProperties[0]?.version ?? '',
      })),
    })),
  };
}
