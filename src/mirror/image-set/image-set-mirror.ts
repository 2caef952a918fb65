import { leaveOut } from '../../catalog/selection/leave-out.js';
import { combineErrors } from '../../core/diagnostics-error.js';
import { OpmateError, throwIfCancelled } from '../../core/errors.js';
import { groupBy } from '../../core/groups.js';
import { type Reference, type RegistryReference, formatReference } from '../../core/reference.js';
import { quoteGo } from '../../document/go-json.js';
import { holdOpen } from '../../oci/image/open.js';
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
import { type MirrorTarget, targetReference } from './image-set-names.js';
import type { ImageSetPlan, PlannedCatalog } from './image-set-plan.js';
import type { MirroredSet } from './image-set-resources.js';
import { type PlannedImage, isCopiedLast, isOfRelease } from './planned-image.js';

/** Handling of images that cannot be copied. */
export type OnError = 'stop' | 'skip-image' | 'skip-bundle';

interface ImageSetMirrorOptions {
  target: MirrorTarget;
  session: SourceSession;
  transfer: TransferOptions;
  onError: OnError;
  /** Copies signatures and other referrers too. */
  signatures: boolean;
}

/** An image whose manifests were read; signatures have no planned image. */
interface Prepared {
  image: PlannedImage | undefined;
  transfer: PinnedTransfer;
}

interface ImageSetReport extends TransferReport {
  /** Messages about bundles and images removed from catalogs. */
  changes: string[];
}

/**
 * Mirrors a planned image set: `prepare` reads the manifests of all images, `survey` finds missing content at the target,
 * `copy` copies images, then the catalogs that name them. `lock` pins the result. `close` removes rebuilt catalogs; the
 * plan stays open.
 */
export class ImageSetMirror {
  readonly #plan: ImageSetPlan;
  readonly #options: ImageSetMirrorOptions;
  /** By destination. */
  readonly #images: ReadonlyMap<string, PlannedImage>;
  readonly #rebuilt = new Map<PlannedCatalog, RebuiltCatalog>();
  /** By destination. */
  readonly #prepared = new Map<string, Prepared>();
  #surveyed: SurveyedTransfer[] = [];
  readonly #failed = new Map<PlannedImage, OpmateError>();
  readonly #faults: StepFaults = { missing: [], failed: [] };
  readonly #changes: string[] = [];
  /** References removed from `relatedImages` of bundles. */
  readonly #removedTexts = new Set<string>();
  /** Bundles removed from catalogs, as `package/bundle`. */
  readonly #removedBundles = new Set<string>();
  /** Images that only removed bundles need. */
  readonly #unneeded = new Set<PlannedImage>();
  /** By name in the lock. */
  #verdicts: ReadonlyMap<string, Verdict> = new Map();

  constructor(plan: ImageSetPlan, options: ImageSetMirrorOptions) {
    this.#plan = plan;
    this.#options = options;
    this.#images = new Map(plan.images.map((image) => [image.destination, image]));
  }

  /**
   * Rebuilds filtered catalogs, and reads the manifests of all images: one request per manifest. Throws the failures
   * unless images may be skipped.
   */
  async prepare(): Promise<void> {
    const { images, catalogs } = this.#plan;
    const isRebuilt = (image: PlannedImage): boolean => this.#findCatalog(image)?.selection.isWhole === false;
    const rebuildAll = async (): Promise<void> => {
      for (const catalog of catalogs) await this.#rebuild(catalog);
    };
    const [pinning, rebuilding] = await Promise.allSettled([
      this.#pin(images.filter((image) => !isRebuilt(image))),
      rebuildAll(),
    ]);
    if (rebuilding.status === 'rejected') throw rebuilding.reason;
    if (pinning.status === 'rejected') throw pinning.reason;
    const steps = [pinning.value, await this.#pin(images.filter(isRebuilt))];
    const positions = new Map(images.map(({ destination }, position) => [destination, position]));
    const byPosition = (a: Transfer, b: Transfer): number =>
      (positions.get(a.targetName) as number) - (positions.get(b.targetName) as number);
    const missing = steps.flatMap((step) => step.missing).sort(byPosition);
    const failed = steps.flatMap((step) => step.failed).sort((a, b) => byPosition(a.transfer, b.transfer));
    if (this.#options.onError === 'stop' && failed.length > 0)
      throw combineErrors(failed.map(({ error }) => error));
    this.#note({ missing, failed });
    for (const transfer of steps.flatMap((step) => step.pinned).sort(byPosition)) this.#add(transfer);
    if (this.#failed.size > 0) await this.#repair();
  }

  /** Reads the manifests of images; a run that stops reads all of them, to name every missing image. */
  #pin(images: readonly PlannedImage[]): Promise<StepFaults & { pinned: PinnedTransfer[] }> {
    const { onError, transfer } = this.#options;
    return pinTransfers(
      images.map((image) => this.#toTransfer(image)),
      { ...transfer, ...(onError === 'stop' && { continueOnError: true, isQuiet: true }) },
    );
  }

  /** Finds the signatures of all images, for an archive. */
  async addSignatures(): Promise<void> {
    if (this.#options.signatures) await this.#findSignatures(this.transfers());
  }

  /** Sets the verdicts on images, by their names in the lock, which records them. */
  keepVerdicts(verdicts: ReadonlyMap<string, Verdict>): void {
    this.#verdicts = verdicts;
  }

  /** Surveys the target, and returns the size of the copy. */
  async survey(): Promise<BytePlan> {
    await this.#survey(this.transfers());
    return planSurveyed(this.lockedImages(), this.#surveyed);
  }

  /** Surveys the target and finds signatures, also of present images, which may have been signed since. */
  async surveyWithSignatures(): Promise<BytePlan> {
    if (!this.#options.signatures) return this.survey();
    const pinned = this.transfers();
    const [matches] = await Promise.all([this.#findSignatures(pinned), this.#survey(pinned)]);
    const before = new Map(pinned.map(({ targetName, contents }) => [targetName, contents]));
    const surveyed = new Set(this.#surveyed.map(({ targetName }) => targetName));
    const changed = matches.filter(({ targetName, contents }) => {
      const known = before.get(targetName);
      return (
        known === undefined ||
        (known.manifests.length !== contents.manifests.length && surveyed.has(targetName))
      );
    });
    const names = new Set(changed.map(({ targetName }) => targetName));
    this.#surveyed = this.#surveyed.filter(({ targetName }) => !names.has(targetName));
    await this.#survey(changed);
    return planSurveyed(this.lockedImages(), this.#surveyed);
  }

  /** Copies missing content: operands first, then catalogs, which name only copied images. */
  async copy(): Promise<ImageSetReport> {
    const { transfer } = this.#options;
    const [operands] = splitCopyOrder(this.#surveyed);
    const shared = new SharedBlobs();
    const first = await copyTransfers(operands, transfer, shared);
    this.#note(first);
    if (this.#failed.size > 0) {
      await this.#repair();
      this.#surveyed = operands;
      await this.#survey(splitCopyOrder(this.transfers())[1]);
    }
    const last = await copyTransfers(splitCopyOrder(this.#surveyed)[1], transfer, shared);
    this.#note(last);
    return { ...joinReports(first, last), ...this.#faults, changes: this.#changes };
  }

  /** Returns the images, catalogs and releases at the target, now or after the copy. */
  mirrored(): MirroredSet {
    const images = this.#plan.images.filter((image) => !this.#isLeftOut(image));
    const names = new Set(images.map(({ destination }) => destination));
    const catalogs = this.#plan.catalogs.filter(({ destination }) => names.has(destination));
    return { images, catalogs, releases: this.#plan.releases };
  }

  /** Returns the images and signatures with their contents, in the order of a lock. */
  lockedImages(): LockedImage[] {
    return [...this.#prepared.values()].flatMap(({ image, transfer }) => {
      if (image === undefined) return [toLockedSignature(transfer, this.#plan)];
      if (this.#isLeftOut(image)) return [];
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

  /** Returns the transfers of prepared images. */
  transfers(): PinnedTransfer[] {
    return [...this.#prepared.values()].flatMap(({ image, transfer }) =>
      image !== undefined && this.#isLeftOut(image) ? [] : [transfer],
    );
  }

  lock(
    configuration: string,
    options: Readonly<Record<string, string>>,
    templates: ReadonlyMap<string, CatalogSourceTemplate> = new Map(),
  ): ImageSetLock {
    const names = new Set(this.mirrored().catalogs.map(({ destination }) => destination));
    const lock = {
      configuration,
      options,
      catalogs: this.#plan.catalogs
        .filter(({ destination }) => names.has(destination))
        .map((catalog) => toLockedCatalog(catalog, templates)),
      charts: this.#plan.charts.map(({ chart: { source, packed }, name }) => ({
        ...{ source, name: packed.name, version: packed.version, ...name },
      })),
      releases: lockReleases(this.#plan),
      images: this.lockedImages(),
    };
    return withVerdicts(lock, this.#verdicts);
  }

  /** Skips an image and repairs the catalogs. Throws `error` unless images may be skipped. */
  async skip(targetName: string, error: OpmateError): Promise<void> {
    const prepared = this.#prepared.get(targetName);
    if (this.#options.onError === 'stop' || prepared === undefined) throw error;
    this.#options.session.logger?.log('error', error.message);
    this.#note({ missing: [], failed: [{ transfer: prepared.transfer, error }] });
    await this.#repair();
  }

  /** Returns the failures so far. */
  report(): ImageSetReport {
    return { ...joinReports(), ...this.#faults, changes: this.#changes };
  }

  async close(): Promise<void> {
    for (const rebuilt of this.#rebuilt.values()) await rebuilt.close();
    this.#rebuilt.clear();
  }

  #toTransfer(image: PlannedImage): Transfer {
    const catalog = this.#findCatalog(image);
    const rebuilt = catalog && this.#rebuilt.get(catalog);
    return {
      source: rebuilt ? () => Promise.resolve(holdOpen(rebuilt)) : (image.open ?? image.reference),
      target: targetReference(this.#options.target, image.repository, image.name.tag),
      sourceName: catalog === undefined ? formatReference(image.reference) : catalog.operator.catalog,
      targetName: image.destination,
      ...(isCopiedLast(image) && { isLast: true }),
      ...(image.contents !== undefined && { contents: image.contents }),
      place: image.place,
      // A rebuilt catalog has no other platforms.
      ...(rebuilt === undefined && { platforms: image.platforms }),
    };
  }

  #findCatalog(image: PlannedImage): PlannedCatalog | undefined {
    if (image.kind !== 'catalog') return undefined;
    return this.#plan.catalogs.find(({ destination }) => destination === image.destination);
  }

  #isLeftOut(image: PlannedImage): boolean {
    return this.#failed.has(image) || this.#unneeded.has(image);
  }

  #add(transfer: PinnedTransfer): void {
    this.#prepared.set(transfer.targetName, { image: this.#images.get(transfer.targetName), transfer });
  }

  #note({ missing, failed }: StepFaults): void {
    this.#faults.missing.push(...missing);
    this.#faults.failed.push(...failed);
    for (const { transfer, error } of failed) {
      const image = this.#images.get(transfer.targetName);
      // A release without one of its images cannot be installed.
      if (image !== undefined && isOfRelease(image)) throw error;
      if (image !== undefined) this.#failed.set(image, error);
    }
  }

  async #survey(pinned: readonly PinnedTransfer[]): Promise<void> {
    const { surveyed, ...faults } = await surveyTransfers(pinned, this.#options.transfer);
    this.#note(faults);
    this.#surveyed.push(...surveyed);
  }

  /** Adds signatures, and referrers to their images; returns both. */
  async #findSignatures(transfers: readonly PinnedTransfer[]): Promise<PinnedTransfer[]> {
    const { pinned, signatures } = await findSignatures(transfers, this.#options.transfer);
    const all = [...pinned, ...signatures];
    for (const transfer of all) this.#add(transfer);
    return all;
  }

  async #rebuild(catalog: PlannedCatalog): Promise<void> {
    await this.#rebuilt.get(catalog)?.close();
    this.#rebuilt.delete(catalog);
    if (catalog.selection.isWhole) return;
    requireOtherPlace(catalog);
    const { platforms } = this.#getImage(catalog);
    const source = { ...catalog, facts: catalog.selection.facts };
    const withoutImages = this.#removedTexts;
    const rebuilt = await rebuildFrom(source, this.#options.session, { platforms, withoutImages });
    this.#rebuilt.set(catalog, rebuilt);
  }

  #getImage({ destination }: PlannedCatalog): PlannedImage {
    return this.#images.get(destination) as PlannedImage;
  }

  /** Removes bundles, or only references, of failed images from the catalogs. */
  async #repair(): Promise<void> {
    const { onError, session } = this.#options;
    const before = this.#removedTexts.size;
    for (const image of this.#failed.keys()) {
      if (image.kind !== 'bundle' && image.kind !== 'related') continue;
      if (onError === 'skip-image' && image.kind === 'related')
        for (const text of image.texts) this.#removedTexts.add(text);
      else for (const bundle of image.bundles) this.#removedBundles.add(toBundleKey(bundle));
    }
    this.#leaveOutUnneeded();
    for (const catalog of this.#plan.catalogs) {
      throwIfCancelled(session.signal);
      const image = this.#getImage(catalog);
      if (this.#failed.has(image)) continue;
      const removed = catalog.selection.facts.bundles
        .map(({ package: packageName, name: bundle }) => toBundleKey({ package: packageName, bundle }))
        .filter((key) => this.#removedBundles.has(key));
      if (removed.length === 0 && this.#removedTexts.size === before) continue;
      try {
        await this.#shrink(catalog, new Set(removed));
      } catch (error) {
        if (!(error instanceof OpmateError) || error.code !== 'INVALID') throw error;
        session.logger?.log('error', error.message);
        this.#note({ missing: [], failed: [{ transfer: this.#toTransfer(image), error }] });
      }
    }
  }

  #leaveOutUnneeded(): void {
    for (const image of this.#plan.images) {
      const isOfBundles = image.kind === 'bundle' || image.kind === 'related';
      if (!isOfBundles || image.isRequested === true || image.bundles.length === 0) continue;
      const isGone = image.bundles.every((bundle) => this.#removedBundles.has(toBundleKey(bundle)));
      if (isGone) this.#unneeded.add(image);
    }
  }

  async #shrink(catalog: PlannedCatalog, removed: ReadonlySet<string>): Promise<void> {
    const { operator } = catalog;
    const { selection, changes } = leaveOut(catalog.selection, removed, operator.catalog);
    catalog.selection = { ...selection, isWhole: false };
    catalog.isDatabase = false;
    this.#changes.push(...changes.map((change) => `${operator.catalog}: ${change}`));
    await this.#rebuild(catalog);
    const image = this.#getImage(catalog);
    if (getCatalogTarget(operator).tag === undefined) {
      const problem = `the filtered catalog has another digest than ${quoteGo(image.name.tag)}`;
      throw new OpmateError('INVALID', problem, {
        subject: operator.catalog,
        hint: 'set its tag with targetTag',
      });
    }
    const { pinned } = await pinTransfers([this.#toTransfer(image)], this.#options.transfer);
    for (const transfer of pinned) this.#add(transfer);
  }
}

function toBundleKey({ package: packageName, bundle }: { package: string; bundle: string }): string {
  return `${packageName}/${bundle}`;
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
  { source, target, contents }: PinnedTransfer,
  { images }: ImageSetPlan,
): LockedImage {
  const path = (target as RegistryReference).repository;
  const signed = images.find(({ repository }) => repository === path);
  const text = formatReference(source as Reference);
  return {
    ...{ kind: 'signature', reference: text, source: `docker://${text}` },
    ...{ repository: signed?.name.repository ?? path, tag: target.tag, bundles: [], contents },
  };
}

function toLockedCatalog(
  { operator, digest, name, selection, isDatabase }: PlannedCatalog,
  templates: ReadonlyMap<string, CatalogSourceTemplate>,
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
