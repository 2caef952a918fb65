import type { CancelOptions } from '../../core/concurrency.js';
import { OpmateError, systemCode, throwIfCancelled } from '../../core/errors.js';
import type { Logger } from '../../core/log.js';
import { groupBy, pushTo } from '../../core/groups.js';
import { compareBytes } from '../../core/order.js';
import { SemverError, type Version } from '../../core/semver.js';
import { type CheckedBundles, type Refusal, checkBundles } from './add-checks.js';
import { findAddWarnings } from './add-warnings.js';
import { joinRefusals } from './already-added.js';
import type { BundleRecord } from '../schema/bundle-record.js';
import { type ChannelMember, chooseHeads, compareWithBuild, headVersion } from './channel-heads.js';
import type { Database } from '../schema/database.js';
import { withEditIndexes, withIndexes } from '../schema/helper-indexes.js';
import { insertBundle, writeManifests } from '../schema/insert-bundle.js';
import { dropManifestsOfNonHeads, findManifestsWithoutImage } from './minimal.js';
import { removeOverwritten } from './overwrite.js';
import { writePackageChannels } from '../schema/package-channels.js';
import { type IndexedPackage, readPackage } from '../schema/package-state.js';
import { findPruned } from './pruned.js';
import { refuseBytesAsNames } from '../schema/schema.js';
import { addToSemverChannels } from './semver-channels.js';
import type { StagedBundle } from './stage.js';
import { applySubstitution } from './substitutes.js';

/** Source of the edges of new bundles. */
export type AddMode = 'replaces' | 'semver' | 'semver-skippatch';

export interface AddOptions extends CancelOptions {
  mode: AddMode;
  /** Replace the head of a channel by a bundle of the same name. */
  overwriteLatest?: boolean | undefined;
  /** Add valid bundles, and report the others. */
  permissive?: boolean | undefined;
  /** Accept bundles that substitute for others. */
  enableAlpha?: boolean | undefined;
  /** Drop the manifests of bundles other than heads; always in the semver modes. */
  minimal?: boolean | undefined;
  /** Keep the manifests of all bundles in any mode. */
  allInOne?: boolean | undefined;
  logger?: Logger | undefined;
}

export interface AddReport {
  /** Names of added bundles, in order. */
  added: string[];
  /** With `permissive`: skipped bundles with reasons. */
  failures: { bundle: StagedBundle; error: OpmateError }[];
}

/**
 * Adds bundles to an index: all or, unless `permissive`, none. Their order does not matter: they are sorted by
 * package, version, name and reference. Runs in the caller's transaction. Throws OpmateError INVALID with all bundles
 * that cannot be added and the reasons. Warns about bundles that make the index unreadable.
 */
export async function addBundles(
  database: Database,
  bundles: readonly StagedBundle[],
  options: AddOptions,
): Promise<AddReport> {
  const { mode, overwriteLatest = false, enableAlpha = false } = options;
  const sorted = inOrder(bundles);
  const headsOnly = keepsHeadsOnly(options);
  const refusals = new Refusals(options.permissive ?? false);
  refuseBytesAsNames(database);
  await withIndexes(database, 'entries', async () => {
    const checked = await withIndexes(database, 'names', () =>
      checkBundles(database, sorted, { overwriteLatest, enableAlpha }),
    );
    checked.refusals.forEach((refusal) => refusals.add(refusal));
    if (mode !== 'replaces') refuseOverwrites(sorted, checked, refusals);
    refusals.throwUnlessPermissive();
    const addAll = async (): Promise<void> => {
      const allowed = sorted.filter((bundle) => !refusals.has(bundle));
      const addition = { database, options, headsOnly, overwritten: checked.overwritten, refusals };
      for (const [packageName, group] of groupBy(allowed, ({ record }) => record.packageName))
        await addToPackage(addition, packageName, group);
    };
    const addWithAlpha = enableAlpha ? () => withIndexes(database, 'substitutions', addAll) : addAll;
    await (checked.overwritten.size > 0 ? withEditIndexes(database, addWithAlpha) : addWithAlpha());
    refusals.throwUnlessPermissive();
  });
  const added = sorted.filter((bundle) => !refusals.has(bundle));
  if (headsOnly) await keepManifestsOfHeads(database, added, options);
  if (options.minimal === true) warnOfKeptManifests(database, options.logger);
  for (const warning of findAddWarnings(database, added)) options.logger?.log('warn', warning);
  return { added: added.map(({ record }) => record.name), failures: refusals.failures() };
}

/** Reports whether only channel heads keep their manifests. */
function keepsHeadsOnly({ mode, minimal = false, allInOne = false }: AddOptions): boolean {
  return !allInOne && (minimal || mode !== 'replaces');
}

/**
 * Writes the manifests of new heads, and drops those of previous ones. Other manifests are never written, so the file
 * does not grow by them.
 */
async function keepManifestsOfHeads(
  database: Database,
  added: readonly StagedBundle[],
  { signal }: CancelOptions,
): Promise<void> {
  const heads = new Set(database.texts('SELECT head_operatorbundle_name FROM channel'));
  for (const bundle of added) {
    throwIfCancelled(signal);
    const { name, image } = bundle.record;
    if (image !== '' && heads.has(name)) writeManifests(database, name, await bundle.manifests());
  }
  dropManifestsOfNonHeads(database);
}

/** Warns about kept manifests: those of bundles without an image exist nowhere else. */
function warnOfKeptManifests(database: Database, logger: Logger | undefined): void {
  const kept = findManifestsWithoutImage(database);
  if (kept.length === 0) return;
  const names = kept.slice(0, 5).join(', ') + (kept.length > 5 ? ` and ${kept.length - 5} more` : '');
  logger?.log('warn', `--minimal keeps the manifests of bundles without an image: ${names}`);
}

function refuseOverwrites(
  bundles: readonly StagedBundle[],
  { overwritten }: CheckedBundles,
  refusals: Refusals,
): void {
  for (const bundle of bundles) {
    if (!overwritten.has(bundle.record.name) || refusals.has(bundle)) continue;
    const message = `failed to add bundle "${bundle.record.name}": it is in the index already`;
    const hint = 'use --overwrite-latest with --mode replaces only';
    refusals.add({ bundle, error: new OpmateError('INVALID', message, { hint }) });
  }
}

/** Sorts bundles by package, version, name and reference. */
function inOrder(bundles: readonly StagedBundle[]): StagedBundle[] {
  const keyed = bundles.map((bundle) => ({ bundle, version: orderVersion(bundle.record.version) }));
  keyed.sort((a, b) => {
    const [bundleRecord, other] = [a.bundle.record, b.bundle.record];
    return (
      compareBytes(bundleRecord.packageName, other.packageName) ||
      compareOrNone(a.version, b.version) ||
      compareBytes(bundleRecord.version, other.version) ||
      compareBytes(bundleRecord.name, other.name) ||
      compareBytes(a.bundle.reference, b.bundle.reference)
    );
  });
  return keyed.map(({ bundle }) => bundle);
}

/** Returns the version that orders a bundle; undefined if it cannot be compared. */
function orderVersion(text: string): Version | undefined {
  try {
    const version = headVersion(text);
    compareWithBuild(version, version);
    return version;
  } catch (error) {
    if (error instanceof SemverError) return undefined;
    throw error;
  }
}

function compareOrNone(a: Version | undefined, b: Version | undefined): number {
  if (a === undefined || b === undefined) return Number(a === undefined) - Number(b === undefined);
  return compareWithBuild(a, b);
}

/** Collects refusals, for one error or for the report. */
class Refusals {
  readonly #permissive: boolean;
  readonly #errors = new Map<StagedBundle, OpmateError[]>();

  constructor(permissive: boolean) {
    this.#permissive = permissive;
  }

  get permissive(): boolean {
    return this.#permissive;
  }

  add({ bundle, error }: Refusal): void {
    this.#errors.set(bundle, [...(this.#errors.get(bundle) ?? []), error]);
  }

  has(bundle: StagedBundle): boolean {
    return this.#errors.has(bundle);
  }

  throwUnlessPermissive(): void {
    if (this.#permissive || this.#errors.size === 0) return;
    throw joinRefusals([...this.#errors.values()].flat());
  }

  failures(): AddReport['failures'] {
    return [...this.#errors].map(([bundle, errors]) => ({ bundle, error: joinRefusals(errors) }));
  }
}

/** Reason why several bundles cannot be added together; the others can be added without the `blamed` ones. */
class RefusedTogether extends Error {
  readonly error: OpmateError;
  readonly blamed: Refusal[];
  constructor(error: OpmateError, blamed: Refusal[] = []) {
    super(error.message);
    this.error = error;
    this.blamed = blamed;
  }
}

/** Context for adding to any package of an index. */
interface Addition {
  database: Database;
  options: AddOptions;
  headsOnly: boolean;
  /** Names to remove before the bundles of the same name are added. */
  overwritten: ReadonlySet<string>;
  refusals: Refusals;
}

/**
 * Adds bundles to one package: all, or refuses all, or if permitted, adds as many as possible: all but those known to
 * be at fault; otherwise the lower half by version, then the upper half. Appends added bundles to `added`.
 */
async function addToPackage(
  addition: Addition,
  packageName: string,
  bundles: readonly StagedBundle[],
  added: StagedBundle[] = [],
): Promise<void> {
  const { database, refusals } = addition;
  let refused: RefusedTogether;
  try {
    await database.transaction(() => writeBundles(addition, packageName, bundles, added));
    added.push(...bundles);
    return;
  } catch (error) {
    if (!(error instanceof RefusedTogether)) throw error;
    refused = error;
  }
  const { blamed, error } = refused;
  blamed.forEach((refusal) => refusals.add(refusal));
  const { permissive } = refusals;
  if (blamed.length > 0) {
    const others = bundles.filter((bundle) => !refusals.has(bundle));
    if (permissive && others.length > 0) await addToPackage(addition, packageName, others, added);
  } else if (permissive && bundles.length > 1) {
    const middle = bundles.length >> 1;
    await addToPackage(addition, packageName, bundles.slice(0, middle), added);
    await addToPackage(addition, packageName, bundles.slice(middle), added);
  } else if (bundles[0] !== undefined) {
    refusals.add({ bundle: bundles[0], error });
  }
}

/** Adds bundles; throws RefusedTogether if they cannot be added, and the caller rolls back. */
async function writeBundles(
  addition: Addition,
  packageName: string,
  bundles: readonly StagedBundle[],
  added: readonly StagedBundle[],
): Promise<void> {
  const { database } = addition;
  const { mode, logger } = addition.options;
  const before = readPackage(database, packageName);
  const overwritten = bundles.filter(({ record }) => addition.overwritten.has(record.name));
  for (const { record } of overwritten) removeOverwritten(database, packageName, record.name);
  // Before the rows of the new bundles exist.
  const existing = overwritten.length === 0 ? before : readPackage(database, packageName);
  await insertBundles(addition, bundles);
  const records = bundles.map(({ record }) => record);
  await refusing(async () => {
    if (mode === 'replaces') {
      const heads = chooseHeads(packageName, getMembers(existing, records), records);
      await writePackageChannels(database, heads);
    } else {
      const skipPatch = mode === 'semver-skippatch';
      await addToSemverChannels(database, packageName, records, { skipPatch });
    }
  });
  const after = readPackage(database, packageName);
  const all = [...added, ...bundles];
  const pruned = await refusing(() =>
    findPruned(
      packageName,
      after,
      all.map(({ record }) => record),
    ),
  );
  if (pruned.length > 0) {
    const blamed = bundles.flatMap((bundle) =>
      pruned.filter(({ record }) => record === bundle.record).map(({ error }) => ({ bundle, error })),
    );
    throw new RefusedTogether(joinRefusals(pruned.map(({ error }) => error)), blamed);
  }
  for (const name of before.bundles.keys()) {
    if (after.bundles.has(name)) continue;
    logger?.log('warn', `package ${packageName}: ${name} is no longer in a channel: no bundle leads to it`);
  }
}

async function insertBundles(
  { database, headsOnly, options: { enableAlpha = false, signal } }: Addition,
  bundles: readonly StagedBundle[],
): Promise<void> {
  for (const bundle of bundles) {
    throwIfCancelled(signal);
    const { record } = bundle;
    // A bundle that cannot be pulled always keeps its manifests; for others, heads are known later.
    const manifests = headsOnly && record.image !== '' ? undefined : await bundle.manifests();
    await refusing(() => {
      insertBundle(database, record, manifests);
      if (enableAlpha) applySubstitution(database, record.name);
    }, bundle);
  }
}

/** Returns the bundles of a package for choosing heads, including new ones that were skipped before. */
function getMembers(
  { channels, bundles, defaultChannel }: IndexedPackage,
  records: readonly BundleRecord[],
): ChannelMember[] {
  const versions = new Map([...bundles].map(([name, { version }]) => [name, version]));
  for (const { name, version } of records) versions.set(name, version);
  const channelsByName = new Map<string, string[]>();
  for (const [channel, entries] of channels)
    for (const { name } of entries) if (versions.has(name)) pushTo(channelsByName, name, channel);
  return [...channelsByName].map(([name, names]) => ({
    name,
    version: versions.get(name) as string,
    channels: names,
    defaultChannel,
  }));
}

/** Runs `work`; errors of the bundles, but not of the database or system, refuse them. */
async function refusing<T>(work: () => T | Promise<T>, bundle?: StagedBundle): Promise<T> {
  try {
    return await work();
  } catch (error) {
    const isFault =
      error instanceof OpmateError &&
      error.code === 'INVALID' &&
      (error.cause === undefined || !/^SQLITE_(?!CONSTRAINT)/.test(systemCode(error.cause) ?? ''));
    if (!isFault) throw error;
    throw new RefusedTogether(error, bundle === undefined ? [] : [{ bundle, error }]);
  }
}
