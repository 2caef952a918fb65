import { leaveOut } from '../../catalog/selection/leave-out.js';
import { combineErrors } from '../../core/diagnostics-error.js';
import { OpmateError, throwIfCancelled } from '../../core/errors.js';
import { firstBy } from '../../core/groups.js';
import { count } from '../../core/printable.js';
import type { OpenedReference } from '../../oci/image/open.js';
import { SharedBlobs } from '../../oci/image/shared-blobs.js';
import type { Verdict } from '../../oci/signatures/verify-image.js';
import type { SourceSession } from '../../source/session.js';
import { type BytePlan, planSurveyed } from '../lock/byte-plan.js';
import type { ImageSetLock, LockedCatalog, LockedImage } from '../lock/lock.js';
import { getTargetName } from '../lock/lock-plan.js';
import { lockCatalog, lockCharts, lockImage, lockSignature } from '../lock/lock-set.js';
import { lockReleases } from '../lock/locked-releases.js';
import type { RebuiltCatalog } from '../selection/rebuilt-catalog.js';
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
import { OmittedContent } from './omitted-content.js';
import { RebuiltCatalogs } from './rebuilt-catalogs.js';
import { type MirroredImages, findMirrored } from './mirrored-images.js';
import { createTargetCopies } from './target-copies.js';
import { toTransfer } from '../plan/mirror-plan.js';
import type { OnError, SetImage } from '../plan/planned-image.js';

interface ImageSetMirrorOptions {
  target: MirrorTarget;
  session: SourceSession;
  transfer: TransferOptions;
  onError: OnError;
  /** Plans only, which is worded so in errors; default false. */
  isPlan?: boolean | undefined;
  /** Lock of the last run to the target; its content is kept if this run skips it. */
  previous?: ImageSetLock | undefined;
  /** Copies signatures and other referrers too. */
  signatures: boolean;
  /** Images and signatures that the target is known to have, such as of an earlier run; neither is read nor copied again. */
  mirrored?: readonly LockedImage[] | undefined;
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

type PinStep = StepFaults & { pinned: PinnedTransfer[] };

/** The failure of a run, or plan, that skipped everything. */
export class NothingMirroredError extends OpmateError {
  override readonly name: string = 'NothingMirroredError';
  readonly report: ImageSetReport;
  constructor(
    problem: string,
    { code, ...details }: Pick<OpmateError, 'code'> & { subject: string; hint: string; cause: OpmateError },
    report: ImageSetReport,
  ) {
    super(code, problem, details);
    this.report = report;
  }
}

/**
 * Mirrors a planned image set: `prepare` reads the manifests of all images, `survey` finds missing content at the target,
 * `copy` copies images, then the catalogs that name them. `lock` pins the result. `close` removes rebuilt catalogs; the
 * plan stays open.
 */
export class ImageSetMirror {
  private readonly plan: ImageSetPlan;
  private readonly options: ImageSetMirrorOptions;
  private readonly byDestination: Map<string, SetImage>;
  /** By destination. */
  private readonly prepared = new Map<string, Prepared>();
  private readonly rebuilt: RebuiltCatalogs;
  private readonly omitted: OmittedContent;
  private readonly copies: ReturnType<typeof createTargetCopies> | undefined;
  private readonly mirrored: MirroredImages;
  private surveyed: SurveyedTransfer[] = [];
  /** By name in the lock. */
  private verdicts: ReadonlyMap<string, Verdict> = new Map();

  constructor(plan: ImageSetPlan, options: ImageSetMirrorOptions) {
    this.plan = plan;
    this.options = options;
    const isArchive = options.target.registry === '';
    this.byDestination = new Map(plan.images.map((image) => [image.destination, image]));
    this.rebuilt = new RebuiltCatalogs(options.session);
    this.omitted = new OmittedContent(plan, options.onError);
    this.mirrored = findMirrored(plan, options.mirrored ?? [], options.target);
    this.copies = isArchive ? undefined : createTargetCopies(options.previous, options.transfer);
  }

  /**
   * Rebuilds filtered catalogs, and reads the manifests of all images: one request per manifest. Throws the failures
   * unless images may be skipped.
   */
  async prepare(): Promise<void> {
    const images = this.plan.images.filter((image) => !this.mirrored.contents.has(image));
    const isRebuilt = (image: SetImage): boolean => this.findCatalog(image)?.selection.isWhole === false;
    const [pinning, rebuilding] = await Promise.allSettled([
      this.pin(images.filter((image) => !isRebuilt(image))),
      this.rebuildFiltered(),
    ]);
    if (rebuilding.status === 'rejected') throw rebuilding.reason;
    if (pinning.status === 'rejected') throw pinning.reason;
    this.addPinned([pinning.value, await this.pin(images.filter(isRebuilt))]);
    if (!this.omitted.isEmpty) await this.repair();
    this.copies?.report();
    this.requireSome(this.transfers());
  }

  private async rebuildFiltered(): Promise<void> {
    for (const catalog of this.plan.catalogs) if (!catalog.selection.isWhole) await this.rebuild(catalog);
  }

  /** Adds the results of steps in the order of the plan. Throws the failures unless images may be skipped. */
  private addPinned(steps: readonly PinStep[]): void {
    const positions = new Map(this.plan.images.map(({ destination }, position) => [destination, position]));
    const byPosition = (a: NamedTransfer, b: NamedTransfer): number =>
      (positions.get(a.targetName) as number) - (positions.get(b.targetName) as number);
    const missing = steps.flatMap((step) => step.missing).sort(byPosition);
    const failed = steps.flatMap((step) => step.failed).sort((a, b) => byPosition(a.transfer, b.transfer));
    if (this.options.onError === 'stop' && failed.length > 0)
      throw combineErrors(failed.map(({ error }) => error));
    this.note({ missing, failed });
    const known = this.plan.images.flatMap((image) => {
      const contents = this.mirrored.contents.get(image);
      return contents === undefined ? [] : [{ ...this.transferOf(image), contents }];
    });
    const pinned = [...known, ...steps.flatMap((step) => step.pinned)];
    for (const transfer of pinned.sort(byPosition)) this.add(transfer);
  }

  /** Throws OpmateError if a run skipped everything: its result would replace that of an earlier one. */
  private requireSome(results: readonly unknown[]): void {
    const errors = this.omitted.faults.failed.map(({ error }) => error);
    const [first] = errors;
    if (results.length > 0 || first === undefined) return;
    const { code, hint = 'correct these failures, and repeat the run' } = first;
    const failed = count(errors.length, 'image');
    const [subject, unchanged] =
      this.options.isPlan === true
        ? ['nothing planned', 'the lock stays unchanged']
        : ['nothing mirrored', 'lock and cluster resources stay unchanged'];
    throw new NothingMirroredError(
      `${failed} failed, ${unchanged}`,
      { code, subject, hint, cause: combineErrors(errors) },
      this.report(),
    );
  }

  /** Reads the manifests of images; a run that stops reads all of them, to name every missing image. */
  private pin(images: readonly SetImage[]): Promise<PinStep> {
    const { transfer: options, onError } = this.options;
    return pinTransfers(
      images.map((image) => this.transferOf(image)),
      {
        ...options,
        ...(onError === 'stop' && { continueOnError: true, isQuiet: true }),
        findElsewhere: async (transfer, error, limits) => {
          const image = this.byDestination.get(transfer.targetName);
          return image && this.copies?.find(image, transfer, error, limits);
        },
      },
    );
  }

  /** Finds the signatures of all images, for an archive. */
  async addSignatures(): Promise<void> {
    if (this.options.signatures) await this.addSignaturesOf(this.transfers());
  }

  /** Sets the verdicts on images, by their names in the lock, which records them. */
  keepVerdicts(verdicts: ReadonlyMap<string, Verdict>): void {
    this.verdicts = verdicts;
  }

  /**
   * Surveys the target, and returns the size of the copy. Finds signatures, also of present images, which may have been
   * signed since.
   */
  async survey(): Promise<BytePlan> {
    const pinned = this.transfers().filter(
      ({ targetName }) => !this.mirrored.contents.has(this.byDestination.get(targetName)),
    );
    if (this.options.signatures) {
      const [matches] = await Promise.all([this.addSignaturesOf(pinned), this.addSurveyed(pinned)]);
      await this.surveyAgain(pinned, matches);
    } else await this.addSurveyed(pinned);
    return planSurveyed(this.lockedImages(), this.surveyed, this.lockedCatalogs());
  }

  /** Surveys signatures, and images whose referrers were found while they were surveyed without. */
  private async surveyAgain(
    pinned: readonly PinnedTransfer[],
    matches: readonly PinnedTransfer[],
  ): Promise<void> {
    const before = new Map(pinned.map(({ targetName, contents }) => [targetName, contents]));
    const surveyed = new Set(this.surveyed.map(({ targetName }) => targetName));
    const changed = matches.filter(({ targetName, contents }) => {
      const known = before.get(targetName);
      if (known === undefined) return true;
      return known.manifests.length !== contents.manifests.length && surveyed.has(targetName);
    });
    const names = new Set(changed.map(({ targetName }) => targetName));
    this.surveyed = this.surveyed.filter(({ targetName }) => !names.has(targetName));
    await this.addSurveyed(changed);
  }

  /** Copies missing content: operands first, then catalogs, which name only copied images. */
  async copy(): Promise<ImageSetReport> {
    const { transfer: options } = this.options;
    const [operands] = splitCopyOrder(this.surveyed);
    const shared = new SharedBlobs();
    const first = await copyTransfers(operands, options, shared);
    this.note(first);
    if (!this.omitted.isEmpty) {
      await this.repair();
      this.surveyed = operands;
      await this.addSurveyed(splitCopyOrder(this.transfers())[1]);
    }
    const last = await copyTransfers(splitCopyOrder(this.surveyed)[1], options, shared);
    this.note(last);
    const { done, blobs, bytes } = joinReports(first, last);
    this.requireSome([...done, ...this.mirrored.contents]);
    return { ...this.report(), done, blobs, bytes };
  }

  /** Returns the images and signatures with their contents, in the order of a lock. */
  lockedImages(): LockedImage[] {
    const byRepository = firstBy(this.plan.images, ({ target }) => target.repository);
    const images = [...this.prepared.values()].flatMap(({ image, transfer }) => {
      if (image === undefined) return [lockSignature(transfer, byRepository)];
      return this.omitted.includes(image) ? [] : [lockImage(image, transfer)];
    });
    const known = [...this.mirrored.signatures].filter(([name]) => !this.prepared.has(name));
    return [...images, ...known.map(([, signature]) => signature)];
  }

  /** Returns the catalogs with their content, in the order of the configuration. */
  lockedCatalogs(templates: ReadonlyMap<string, CatalogSourceTemplate> = new Map()): LockedCatalog[] {
    return this.plan.catalogs
      .filter((catalog) => !this.omitted.includes(this.imageOf(catalog)))
      .map((catalog) => lockCatalog(catalog, templates, this.omitted.textsOf(catalog)));
  }

  /** Returns the transfers of prepared images. */
  transfers(): PinnedTransfer[] {
    return [...this.prepared.values()].flatMap(({ image, transfer }) =>
      image !== undefined && this.omitted.includes(image) ? [] : [transfer],
    );
  }

  /** Returns the lock of the run; it keeps content of the last one that this run skipped. */
  lock(
    configuration: string,
    options: Readonly<Record<string, string>>,
    templates?: ReadonlyMap<string, CatalogSourceTemplate>,
  ): ImageSetLock {
    const { previous } = this.options;
    const lock: ImageSetLock = {
      configuration,
      options,
      catalogs: this.lockedCatalogs(templates),
      charts: lockCharts(this.plan),
      releases: lockReleases(this.plan),
      images: this.lockedImages(),
    };
    return withVerdicts(previous === undefined ? lock : this.addHeld(lock, previous), this.verdicts);
  }

  private addHeld(lock: ImageSetLock, before: ImageSetLock): ImageSetLock {
    const { catalogs, skipped } = this.plan;
    const omitted = catalogs.filter((catalog) => this.omitted.includes(this.imageOf(catalog)));
    const held = findHeld(before, lock, {
      images: this.omitted.names(),
      bundles: this.omitted.bundles,
      catalogs: [...skipped.catalogs, ...omitted.map(({ operator }) => operator.catalog)],
    });
    const images = this.options.signatures
      ? held.images
      : held.images.filter(({ kind }) => kind !== 'signature');
    return { ...lock, catalogs: [...lock.catalogs, ...held.catalogs], images: [...lock.images, ...images] };
  }

  /** Returns the function that opens an image that its source no longer has; undefined for others. */
  getOpener(locked: LockedImage): (() => Promise<OpenedReference>) | undefined {
    const prepared = this.prepared.get(getTargetName(locked, this.options.target));
    if (prepared?.image === undefined || prepared.image.open !== undefined) return undefined;
    const { source } = prepared.transfer;
    return typeof source === 'function' ? source : undefined;
  }

  /** Skips an image and repairs the catalogs. Throws `error` unless images may be skipped. */
  async skip(targetName: string, error: OpmateError): Promise<void> {
    const prepared = this.prepared.get(targetName);
    if (this.options.onError === 'stop' || prepared === undefined) throw error;
    this.noteFailed(prepared.transfer, error);
    await this.repair();
  }

  /** Returns the report of a run that copied nothing. */
  report(): ImageSetReport {
    const { faults, changes } = this.omitted;
    return { ...joinReports(), ...faults, changes, removedBundles: this.omitted.bundleNames() };
  }

  close(): Promise<void> {
    return this.rebuilt.close();
  }

  private transferOf(image: SetImage): Transfer {
    return this.rebuilt.replaceSource(toTransfer(image), this.findCatalog(image));
  }

  private findCatalog(image: SetImage): PlannedCatalog | undefined {
    if (image.kind !== 'catalog') return undefined;
    return this.plan.catalogs.find(({ destination }) => destination === image.destination);
  }

  private imageOf({ destination }: PlannedCatalog): SetImage {
    return this.byDestination.get(destination) as SetImage;
  }

  private add(transfer: PinnedTransfer): void {
    const image = this.byDestination.get(transfer.targetName);
    this.prepared.set(transfer.targetName, { image, transfer });
  }

  private note(faults: StepFaults): void {
    this.omitted.note(faults, (targetName) => this.byDestination.get(targetName));
  }

  private noteFailed(transfer: Transfer, error: OpmateError): void {
    this.options.session.logger?.log('error', error.message);
    this.note({ missing: [], failed: [{ transfer, error }] });
  }

  private async addSurveyed(pinned: readonly PinnedTransfer[]): Promise<void> {
    const { surveyed, ...faults } = await surveyTransfers(pinned, this.options.transfer);
    this.note(faults);
    this.surveyed.push(...surveyed);
  }

  /** Adds signatures, and referrers to their images; returns both. */
  private async addSignaturesOf(transfers: readonly PinnedTransfer[]): Promise<PinnedTransfer[]> {
    const { pinned, signatures } = await findSignatures(transfers, this.options.transfer);
    const all = [...pinned, ...signatures];
    for (const transfer of all) this.add(transfer);
    return all;
  }

  private rebuild(catalog: PlannedCatalog): Promise<RebuiltCatalog> {
    const { platforms } = this.imageOf(catalog);
    return this.rebuilt.rebuild(catalog, platforms, this.omitted.textsOf(catalog));
  }

  /** Removes bundles, or only references, of failed images from the catalogs. */
  private async repair(): Promise<void> {
    const hasNewTexts = this.omitted.removeFailed();
    for (const catalog of this.plan.catalogs) {
      throwIfCancelled(this.options.session.signal);
      const image = this.imageOf(catalog);
      if (this.omitted.hasFailed(image)) continue;
      const removed = this.omitted.bundlesOf(catalog);
      if (removed.length === 0 && !hasNewTexts) continue;
      try {
        await this.shrink(catalog, new Set(removed));
      } catch (error) {
        if (!(error instanceof OpmateError) || error.code !== 'INVALID') throw error;
        this.noteFailed(this.transferOf(image), error);
      }
    }
  }

  private async shrink(catalog: PlannedCatalog, removed: ReadonlySet<string>): Promise<void> {
    const { operator } = catalog;
    const { selection, changes } = leaveOut(catalog.selection, removed, operator.catalog);
    catalog.selection = { ...selection, isWhole: false };
    catalog.isDatabase = false;
    this.omitted.changes.push(...changes.map((change) => `${operator.catalog}: ${change}`));
    const rebuilt = await this.rebuild(catalog);
    const image = this.imageOf(catalog);
    if (getCatalogTarget(operator).tag === undefined)
      this.rename(catalog, image, toDigestTag(rebuilt.digest));
    const { pinned } = await pinTransfers([this.transferOf(image)], this.options.transfer);
    for (const transfer of pinned) this.add(transfer);
  }

  /** Gives a catalog that was rebuilt another tag at the target, where its digest is its tag. */
  private rename(catalog: PlannedCatalog, image: SetImage, tag: string): void {
    this.prepared.delete(image.destination);
    this.byDestination.delete(image.destination);
    const name = { ...image.name, tag };
    const target = targetReference(this.options.target, image.target.repository, tag);
    const destination = target.text;
    Object.assign(catalog, { name, destination });
    Object.assign(image, { name, target, destination });
    this.byDestination.set(destination, image);
  }
}
