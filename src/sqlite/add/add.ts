import type { CancelOptions } from '../../core/concurrency.js';
import { OpmateError, systemCode, throwIfCancelled } from '../../core/errors.js';
import type { Logger } from '../../core/log.js';
import { groupBy, pushTo } from '../../core/groups.js';
import { compareBytes } from '../../core/order.js';
import { SemverError, type Version } from '../../core/semver.js';
import { checkBundles } from './add-checks.js';
import { findAddWarnings } from './add-warnings.js';
import { joinRefusals } from './already-added.js';
import type { BundleRecord } from '../schema/bundle-record.js';
import { type ChannelMember, chooseHeads, compareWithBuild, headVersion } from './channel-heads.js';
import type { Database } from '../schema/database.js';
import { withEditIndexes, withIndexes } from '../schema/helper-indexes.js';
import { insertBundle, writeManifests } from '../schema/insert-bundle.js';
import { removeOverwritten } from './overwrite.js';
import { writePackageChannels } from '../schema/package-channels.js';
import { type IndexPackage, readPackage } from '../schema/package-state.js';
import { findPruned } from './pruned.js';
import { refuseBytesAsNames } from '../schema/schema.js';
import { addToSemverChannels } from './semver-channels.js';
import type { StagedBundle } from './stage.js';
import { applySubstitution } from './substitutes.js';
import type { AddMode } from '../../catalog/edit/plan-add.js';

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
  const { mode, overwriteLatest = false, enableAlpha = false, permissive = false } = options;
  const { minimal = false, allInOne = false, logger } = options;
  const sorted = inOrder(bundles);
  // Whether only channel heads keep their manifests.
  const headsOnly = !allInOne && (minimal || mode !== 'replaces');
  const refused: Refusals = new Map();
  const throwIfRefused = (): void => {
    if (!permissive && refused.size > 0) throw joinRefusals([...refused.values()].flat());
  };
  refuseBytesAsNames(database);
  await withIndexes(database, 'entries', async () => {
    const overwritten = await withIndexes(database, 'names', () =>
      checkBundles(database, sorted, { overwriteLatest, enableAlpha }, (bundle, error) =>
        pushTo(refused, bundle, error),
      ),
    );
    for (const bundle of mode === 'replaces' ? [] : sorted) {
      if (!overwritten.has(bundle.record.name) || refused.has(bundle)) continue;
      const message = `failed to add bundle "${bundle.record.name}": it is in the index already`;
      const hint = 'use options.overwriteLatest with options.mode replaces only';
      refused.set(bundle, [new OpmateError('INVALID', message, { hint })]);
    }
    throwIfRefused();
    const addAll = async (): Promise<void> => {
      const allowed = sorted.filter((bundle) => !refused.has(bundle));
      const addition = { database, options, headsOnly, overwritten, refused };
      for (const [packageName, group] of groupBy(allowed, ({ record }) => record.packageName))
        await addToPackage(addition, packageName, group);
    };
    const addWithAlpha = enableAlpha ? () => withIndexes(database, 'substitutions', addAll) : addAll;
    await (overwritten.size > 0 ? withEditIndexes(database, addWithAlpha) : addWithAlpha());
    throwIfRefused();
  });
  const added = sorted.filter((bundle) => !refused.has(bundle));
  if (headsOnly) await keepManifestsOfHeads(database, added, options);
  if (minimal) warnOfKeptManifests(database, logger);
  for (const warning of findAddWarnings(database, added)) logger?.log('warn', warning);
  return {
    added: added.map(({ record }) => record.name),
    failures: [...refused].map(([bundle, errors]) => ({ bundle, error: joinRefusals(errors) })),
  };
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

/** Matches bundles with manifests that head no channel of any package. */
const isHeadless = `(csv IS NOT NULL OR bundle IS NOT NULL) AND name NOT IN (
  SELECT head_operatorbundle_name FROM channel WHERE head_operatorbundle_name IS NOT NULL)`;

/**
 * Drops the manifests of all bundles that head no channel and can be pulled from their image; everything else stays,
 * so listing, resolving and mirroring still work. Returns the number of bundles changed.
 */
export function dropManifestsOfNonHeads(database: Database): number {
  return database.run(
    `UPDATE operatorbundle SET csv = NULL, bundle = NULL WHERE ${isHeadless} AND length(bundlepath) > 0`,
  ).changes;
}

/** Warns about kept manifests: those of bundles without an image, added from directories, exist nowhere else. */
function warnOfKeptManifests(database: Database, logger: Logger | undefined): void {
  const kept = database.texts(
    `SELECT name FROM operatorbundle WHERE ${isHeadless} AND coalesce(length(bundlepath), 0) = 0 ORDER BY name`,
  );
  if (kept.length === 0) return;
  const names = kept.slice(0, 5).join(', ') + (kept.length > 5 ? ` and ${kept.length - 5} more` : '');
  logger?.log('warn', `options.minimal keeps the manifests of bundles without an image: ${names}`);
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

/** Reasons why bundles are not added. */
type Refusals = Map<StagedBundle, OpmateError[]>;

/** Reason why several bundles cannot be added together; the others can be added without the `blamed` ones. */
class RefusedTogether extends Error {
  readonly error: OpmateError;
  readonly blamed: AddReport['failures'];
  constructor(error: OpmateError, blamed: AddReport['failures'] = []) {
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
  refused: Refusals;
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
  const { database, refused } = addition;
  const { permissive = false } = addition.options;
  try {
    await database.transaction(() => writeBundles(addition, packageName, bundles, added));
    added.push(...bundles);
  } catch (failure) {
    if (!(failure instanceof RefusedTogether)) throw failure;
    const { blamed, error } = failure;
    for (const item of blamed) pushTo(refused, item.bundle, item.error);
    if (blamed.length > 0) {
      const others = bundles.filter((bundle) => !refused.has(bundle));
      if (permissive && others.length > 0) await addToPackage(addition, packageName, others, added);
    } else if (permissive && bundles.length > 1) {
      const middle = bundles.length >> 1;
      await addToPackage(addition, packageName, bundles.slice(0, middle), added);
      await addToPackage(addition, packageName, bundles.slice(middle), added);
    } else if (bundles[0] !== undefined) {
      pushTo(refused, bundles[0], error);
    }
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
  const all = [...added, ...bundles].map(({ record }) => record);
  const pruned = await refusing(() => findPruned(packageName, after, all));
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
  { channels, bundles, defaultChannel }: IndexPackage,
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
