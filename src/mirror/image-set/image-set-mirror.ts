import { throwIfCancelled, OpmateError } from '../../core/errors.js';
import { combineErrors } from '../../core/diagnostics-error.js';
import { groupBy } from '../../core/groups.js';
import { quoteGo } from '../../document/go-json.js';
import { type Logger, silentLogger } from '../../core/log.js';
import { type Reference, type RegistryReference, formatReference } from '../../core/reference.js';
import { holdOpen } from '../../oci/image/open.js';
import { SharedBlobs } from '../../oci/image/shared-blobs.js';
import type { BytePlan } from '../lock/byte-plan.js';
import { targetOfCatalog } from './image-set-config.js';
import { type MirrorTarget, targetReference } from './image-set-names.js';
import {
  type ImageSetPlan,
  type PlannedCatalog,
  type PlannedImage,
  isCopiedLast,
  isOfRelease,
} from './image-set-plan.js';
import type { CatalogSourceTemplate, MirroredSet } from './image-set-resources.js';
import { leaveOut } from '../../catalog/selection/leave-out.js';
import type { ImageSetLock, LockedCatalog, LockedImage } from '../lock/lock.js';
import { lockReleases } from '../lock/locked-releases.js';
import { planSurveyed } from '../lock/surveyed-set.js';
import type { SourceSession } from '../../source/session.js';
import type { RebuiltCatalog } from '../selection/rebuilt-catalog.js';
import { rebuildFrom } from '../selection/rebuilt-source.js';
import type { Verdict } from '../../oci/signatures/verify-image.js';
import { withVerdicts } from '../verification/verify-lock.js';
import { pinTransfers, surveyTransfers } from '../transfer/transfer.js';
import { findSignatures } from '../transfer/find-signatures.js';
import { copyTransfers } from '../transfer/copy-transfers.js';
import { joinReports, splitCopyOrder } from '../transfer/transfer-step.js';
import type {
  PinnedTransfer,
  StepFaults,
  SurveyedTransfer,
  Transfer,
  TransferOptions,
  TransferReport,
} from '../transfer/transfer-types.js';

/** What to do about an image that cannot be copied. */
export type OnError = 'stop' | 'skip-image' | 'skip-bundle';

interface ImageSetMirrorOptions {
  target: MirrorTarget;
  session: SourceSession;
  transfer: TransferOptions;
  onError: OnError;
  /** Carries signatures and what else refers to images along. */
  signatures: boolean;
}

/** What is known of an image once its manifests were read. */
interface Prepared {
  image: PlannedImage | undefined;
  transfer: PinnedTransfer;
}

/** What mirroring has come to. */
interface ImageSetReport extends TransferReport {
  /** What became of the catalogs for want of images, one sentence each. */
  changes: string[];
}

/**
 * Mirrors a planned image set: `prepare` learns what every image consists of, `survey` what the target lacks, and
 * `copy` copies the images and after them the catalogs, which name only what is there. `lock` tells what it was, to
 * the byte. `close` takes away what was built on the way; the plan stays open.
 */
export class ImageSetMirror {
  readonly #plan: ImageSetPlan;
  readonly #options: ImageSetMirrorOptions;
  readonly #logger: Logger;
  /** By the name at the target. */
  readonly #images: ReadonlyMap<string, PlannedImage>;
  readonly #rebuilt = new Map<PlannedCatalog, RebuiltCatalog>();
  /** By the name at the target. */
  #prepared = new Map<string, Prepared>();
  #surveyed: SurveyedTransfer[] = [];
  readonly #failed = new Map<PlannedImage, OpmateError>();
  readonly #faults: StepFaults = { missing: [], failed: [] };
  readonly #changes: string[] = [];
  readonly #withoutImages = new Set<string>();
  /** By the name in the lock. */
  #verdicts: ReadonlyMap<string, Verdict> = new Map();
  /** Bundles that were left out, as `package/bundle`, and images that only these need. */
  readonly #goneBundles = new Set<string>();
  readonly #unneeded = new Set<PlannedImage>();

  constructor(plan: ImageSetPlan, options: ImageSetMirrorOptions) {
    this.#plan = plan;
    this.#options = options;
    this.#logger = options.session.logger ?? silentLogger;
    this.#images = new Map(plan.images.map((image) => [image.destination, image]));
  }

  /**
   * Rebuilds the catalogs of which a part is taken, and at the same time reads the manifests of all other images: one
   * request a manifest. Throws the first failure unless images may be skipped.
   */
  async prepare(): Promise<void> {
    const { images, catalogs } = this.#plan;
    const isRebuilt = (image: PlannedImage): boolean => this.#findCatalog(image)?.selection.isWhole === false;
    const rebuild = async (): Promise<void> => {
      for (const catalog of catalogs) await this.#rebuild(catalog);
    };
    const [others, rebuilding] = await Promise.allSettled([
      this.#pin(images.filter((image) => !isRebuilt(image))),
      rebuild(),
    ]);
    if (rebuilding.status === 'rejected') throw rebuilding.reason;
    if (others.status === 'rejected') throw others.reason;
    const rest = await this.#pin(images.filter(isRebuilt));
    const positions = new Map(images.map(({ destination }, position) => [destination, position]));
    const inOrder = <T>(items: readonly T[], nameOf: (item: T) => string): T[] =>
      [...items].sort((a, b) => (positions.get(nameOf(a)) as number) - (positions.get(nameOf(b)) as number));
    const pinned = inOrder([...others.value.pinned, ...rest.pinned], ({ targetName }) => targetName);
    const missing = inOrder([...others.value.missing, ...rest.missing], ({ targetName }) => targetName);
    const failed = inOrder([...others.value.failed, ...rest.failed], ({ transfer }) => transfer.targetName);
    if (this.#options.onError === 'stop' && failed.length > 0)
      throw combineErrors(failed.map(({ error }) => error));
    this.#note({ missing, failed });
    for (const transfer of pinned) this.#add(transfer);
    if (this.#failed.size > 0) await this.#repair();
  }

  /** Reads the manifests of images: all of them, before anything is copied, so that all that is missing is named. */
  #pin(images: readonly PlannedImage[]): Promise<StepFaults & { pinned: PinnedTransfer[] }> {
    const { onError, transfer } = this.#options;
    return pinTransfers(
      images.map((image) => this.#getTransfer(image)),
      { ...transfer, ...(onError === 'stop' && { continueOnError: true, isQuiet: true }) },
    );
  }

  /** Looks for what is attached to all images, for a target that is nobody's yet. */
  async addSignatures(): Promise<void> {
    if (!this.#options.signatures) return;
    await this.#findSignatures(this.transfers());
  }

  /** Keeps the verdicts on the images, by their names in the lock, for the lock. */
  keepVerdicts(verdicts: ReadonlyMap<string, Verdict>): void {
    this.#verdicts = verdicts;
  }

  /** Asks the target what it has, and returns what is to be copied. */
  async survey(): Promise<BytePlan> {
    const pinned = this.transfers();
    await this.#survey(pinned);
    return planSurveyed(this.lockedImages(), this.#surveyed);
  }

  /**
   * Does what `survey` does, signatures included, which are looked for at the same time; also those of images that are
   * there, since they may have been signed since.
   */
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

  /** Copies what the survey found to be lacking: catalogs last, and only with what is there. */
  async copy(): Promise<ImageSetReport> {
    const { transfer: options } = this.#options;
    const [operands] = splitCopyOrder(this.#surveyed);
    const shared = new SharedBlobs();
    const first = await copyTransfers(operands, options, shared);
    this.#note(first);
    if (this.#failed.size > 0) {
      await this.#repair();
      this.#surveyed = operands;
      await this.#survey(splitCopyOrder(this.transfers())[1]);
    }
    const last = await copyTransfers(splitCopyOrder(this.#surveyed)[1], options, shared);
    this.#note(last);
    return { ...joinReports(first, last), ...this.#faults, changes: this.#changes };
  }

  /** What is, or is to be, at the target. */
  mirrored(): MirroredSet {
    const isThere = (image: PlannedImage): boolean => !this.#isLeftOut(image);
    const names = new Set(this.#plan.images.filter(isThere).map(({ destination }) => destination));
    return {
      images: this.#plan.images.filter(isThere),
      catalogs: this.#plan.catalogs.filter(({ destination }) => names.has(destination)),
      releases: this.#plan.releases,
    };
  }

  /** The images with what they consist of, in the order of a lock; signatures among them. */
  lockedImages(): LockedImage[] {
    return [...this.#prepared.values()].flatMap(({ image, transfer }) => {
      if (image === undefined) return [getSignature(transfer, this.#plan)];
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

  /** What each prepared image is copied from, by the name that its lock gives it. */
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
    const { catalogs } = this.mirrored();
    const names = new Set(catalogs.map(({ destination }) => destination));
    const lock = {
      configuration,
      options,
      catalogs: this.#plan.catalogs
        .filter(({ destination }) => names.has(destination))
        .map((catalog) => getLockedCatalog(catalog, templates)),
      charts: this.#plan.charts.map(({ chart: { source, packed }, name }) => ({
        ...{ source, name: packed.name, version: packed.version, ...name },
      })),
      releases: lockReleases(this.#plan),
      images: this.lockedImages(),
    };
    return withVerdicts(lock, this.#verdicts);
  }

  /** Leaves an image out as far as `onError` allows, and repairs the catalogs. Throws where it does not. */
  async skip(targetName: string, error: OpmateError): Promise<void> {
    const prepared = this.#prepared.get(targetName);
    if (this.#options.onError === 'stop' || prepared === undefined) throw error;
    this.#logger.log('error', error.message);
    this.#note({ missing: [], failed: [{ transfer: prepared.transfer, error }] });
    await this.#repair();
  }

  /** What has failed so far. */
  report(): ImageSetReport {
    return { ...joinReports(), ...this.#faults, changes: this.#changes };
  }

  async close(): Promise<void> {
    for (const rebuilt of this.#rebuilt.values()) await rebuilt.close();
    this.#rebuilt.clear();
  }

  #getTransfer(image: PlannedImage): Transfer {
    const catalog = this.#findCatalog(image);
    const rebuilt = catalog === undefined ? undefined : this.#rebuilt.get(catalog);
    return {
      source:
        rebuilt === undefined ? (image.open ?? image.reference) : () => Promise.resolve(holdOpen(rebuilt)),
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
      // A release without one of its images installs nothing.
      if (image !== undefined && isOfRelease(image)) throw error;
      if (image !== undefined) this.#failed.set(image, error);
    }
  }

  async #survey(pinned: readonly PinnedTransfer[]): Promise<void> {
    const { surveyed, ...faults } = await surveyTransfers(pinned, this.#options.transfer);
    this.#note(faults);
    this.#surveyed.push(...surveyed);
  }

  /** Returns what was found to be more than before: the signatures, and images with what refers to them. */
  async #findSignatures(transfers: readonly PinnedTransfer[]): Promise<PinnedTransfer[]> {
    const { pinned, signatures } = await findSignatures(transfers, this.#options.transfer);
    for (const transfer of [...pinned, ...signatures]) this.#add(transfer);
    return [...pinned, ...signatures];
  }

  async #rebuild(catalog: PlannedCatalog): Promise<void> {
    await this.#rebuilt.get(catalog)?.close();
    this.#rebuilt.delete(catalog);
    if (catalog.selection.isWhole) return;
    requireOtherPlace(catalog);
    const withoutImages = this.#withoutImages;
    const { platforms } = this.#getImage(catalog);
    const source = { ...catalog, facts: catalog.selection.facts };
    const rebuilt = await rebuildFrom(source, this.#options.session, { platforms, withoutImages });
    this.#rebuilt.set(catalog, rebuilt);
  }

  #getImage({ destination }: PlannedCatalog): PlannedImage {
    return this.#images.get(destination) as PlannedImage;
  }

  /** Makes the catalogs name only what is there: bundles go, or names of images do. */
  async #repair(): Promise<void> {
    const { onError, transfer: options } = this.#options;
    const bundles = new Set<string>();
    const images = new Set<string>();
    for (const image of this.#failed.keys()) {
      if (image.kind !== 'bundle' && image.kind !== 'related') continue;
      if (onError === 'skip-image' && image.kind === 'related')
        for (const text of image.texts) images.add(text);
      else for (const { package: of, bundle } of image.bundles) bundles.add(`${of}/${bundle}`);
    }
    for (const bundle of bundles) this.#goneBundles.add(bundle);
    this.#leaveOutUnneeded();
    const grown = [...images].some((text) => !this.#withoutImages.has(text));
    for (const text of images) this.#withoutImages.add(text);
    for (const catalog of this.#plan.catalogs) {
      throwIfCancelled(options.signal);
      const image = this.#getImage(catalog);
      if (this.#failed.has(image)) continue;
      const { facts } = catalog.selection;
      const gone = facts.bundles.filter((bundle) => bundles.has(`${bundle.package}/${bundle.name}`));
      if (gone.length === 0 && !grown) continue;
      try {
        await this.#shrink(catalog, new Set(gone.map((bundle) => `${bundle.package}/${bundle.name}`)));
      } catch (error) {
        if (!(error instanceof OpmateError) || error.code !== 'INVALID') throw error;
        this.#logger.log('error', error.message);
        this.#note({ missing: [], failed: [{ transfer: this.#getTransfer(image), error }] });
      }
    }
  }

  /** Leaves out the images, the bundle's own among them, of bundles that are no longer in any catalog. */
  #leaveOutUnneeded(): void {
    for (const image of this.#plan.images) {
      const isOfBundles = image.kind === 'bundle' || image.kind === 'related';
      if (!isOfBundles || image.isAsked === true || image.bundles.length === 0) continue;
      const isGone = image.bundles.every(({ package: of, bundle }) =>
        this.#goneBundles.has(`${of}/${bundle}`),
      );
      if (isGone) this.#unneeded.add(image);
    }
  }

  async #shrink(catalog: PlannedCatalog, gone: ReadonlySet<string>): Promise<void> {
    const { operator, selection } = catalog;
    const left = leaveOut(selection, gone, operator.catalog);
    catalog.selection = { ...left.selection, isWhole: false };
    catalog.isDatabase = false;
    this.#changes.push(...left.changes.map((change) => `${operator.catalog}: ${change}`));
    await this.#rebuild(catalog);
    const image = this.#getImage(catalog);
    if (targetOfCatalog(operator).tag === undefined) {
      const problem = `${operator.catalog}: what is left of it has another digest than ${quoteGo(image.name.tag)}`;
      throw new OpmateError('INVALID', problem, { hint: 'set its tag with targetTag' });
    }
    const { pinned } = await pinTransfers([this.#getTransfer(image)], this.#options.transfer);
    for (const transfer of pinned) this.#add(transfer);
  }
}

/** Throws where a part of a catalog would take the place of the catalog. */
function requireOtherPlace({ operator: { catalog, reference }, destination }: PlannedCatalog): void {
  if (reference.transport !== 'docker' || reference.digest !== undefined) return;
  const { registry, repository, tag = 'latest' } = reference;
  if (destination !== `${registry}/${repository}:${tag}`) return;
  throw new OpmateError('INVALID', 'the filtered catalog would replace the original', {
    subject: catalog,
    hint: 'mirror to another registry or path, or set another targetCatalog or targetTag',
  });
}

/** A signature lies beside its image, whatever that is called at the target. */
function getSignature({ source, target, contents }: PinnedTransfer, plan: ImageSetPlan): LockedImage {
  const place = (target as RegistryReference).repository;
  const signed = plan.images.find(({ repository }) => repository === place);
  const text = formatReference(source as Reference);
  return {
    ...{ kind: 'signature', reference: text, source: `docker://${text}` },
    ...{ repository: signed?.name.repository ?? place, tag: target.tag, bundles: [], contents },
  };
}

function getLockedCatalog(
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
    packages: packages.map(({ name: of, defaultChannel, channels }) => ({
      name: of,
      defaultChannel,
      channels: channels.map(({ name: channel, head }) => ({ name: channel, head })),
      bundles: (bundles.get(of) ?? []).map(({ name: bundle, packageProperties }) => ({
        name: bundle,
        version: packageProperties[0]?.version ?? '',
      })),
    })),
  };
}
