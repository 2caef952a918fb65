import { addContext } from '../../core/diagnostics-error.js';
import type { CancelOptions } from '../../core/concurrency.js';
import { OpmateError, throwIfCancelled } from '../../core/errors.js';
import { reachableFrom } from '../../graph/ways.js';
import type { ColumnValue, Database } from '../schema/database.js';
import { withEditIndexes } from '../schema/helper-indexes.js';
import { deprecatedProperty, insertFact } from '../schema/insert-bundle.js';
import { readBundle } from '../schema/package-state.js';
import { aggregateErrors } from '../schema/aggregate.js';
import { removeBundle } from '../schema/remove-bundle.js';
import { brokenEdges, checkEdges, removePackages } from './remove.js';
import { type BundlesByPackage, packagesOfBundles, removeOfUnknownPackages } from './stranded.js';

interface DeprecateOptions extends CancelOptions {
  /** Deprecate valid bundles, and report the others. */
  permissive?: boolean | undefined;
  /** Remove a package if the heads of all its channels, the default channel included, are deprecated. */
  allowPackageRemoval?: boolean | undefined;
}

/** Changes of a deprecation. */
export interface DeprecateReport {
  /** Names of deprecated bundles, in the order of their images. */
  deprecated: string[];
  /** Removed packages. */
  packages: string[];
  /** Names of removed bundles, in order. */
  bundles: string[];
  /** With `permissive`: skipped bundles with reasons. */
  failures: OpmateError[];
}

/**
 * Deprecates bundles by image: each becomes the last of its channels; what it replaces and skips is removed from
 * these, and from the index if nothing else leads there; channels that it heads are removed. Images removed by
 * truncation are ignored, as are all images of an index without bundles. Throws OpmateError: NOT_FOUND for unknown
 * images, INVALID with all bundles without which the default channel would be removed; with `permissive` these are
 * reported and the others deprecated.
 */
export async function deprecateTruncate(
  database: Database,
  images: readonly string[],
  options: DeprecateOptions = {},
): Promise<DeprecateReport> {
  const { permissive = false, allowPackageRemoval = false, signal } = options;
  return withEditIndexes(database, async () => {
    const report: DeprecateReport = { deprecated: [], packages: [], bundles: [], failures: [] };
    const listed = listedBundles(database);
    if (listed.size === 0) return report;
    const failed = (problems: OpmateError[]): void => {
      if (problems.length === 0) return;
      if (!permissive) throw aggregateErrors(problems);
      report.failures.push(...problems);
    };
    const wanted = [...new Set(images)];
    const missing = wanted.filter((image) => !listed.has(image));
    if (missing.length > 0) {
      const problem = `target bundlepaths for deprecation missing from registry: [${missing.join(' ')}]`;
      const hint = 'use the images that api.openIndex bundles lists';
      failed([new OpmateError('NOT_FOUND', problem, { subject: database.name, hint })]);
    }
    let remaining = wanted.filter((image) => listed.has(image));
    if (allowPackageRemoval) {
      try {
        const named = remaining;
        remaining = await database.transaction(() => removeWholePackages(database, named, listed, report));
      } catch (error) {
        if (!(error instanceof OpmateError)) throw error;
        failed([error]);
      }
    }
    let owners = packagesOfBundles(database);
    const broken = brokenEdges(database);
    const problems: OpmateError[] = [];
    for (const image of remaining) {
      throwIfCancelled(signal);
      const name = listed.get(image) as string;
      const removed: string[] = [];
      try {
        const done = await database.transaction(() => {
          const isDeprecated = deprecateBundle(database, { name, image }, owners, removed);
          checkEdges(database, broken);
          return isDeprecated;
        });
        report.bundles.push(...removed);
        if (done) report.deprecated.push(name);
      } catch (error) {
        if (!(error instanceof OpmateError)) throw error;
        const subject = `${database.name}: error deprecating bundle ${image}`;
        problems.push(addContext(error, { subject, replaces: [database.name] }));
        owners = packagesOfBundles(database);
      }
    }
    failed(problems);
    return report;
  });
}

/** Returns the names of the bundles in channels, by image. */
function listedBundles(database: Database): Map<string, string> {
  const rows = database.textRows<'image' | 'name'>(
    `SELECT bundlepath AS image, name FROM operatorbundle
      WHERE typeof(name) = 'text' AND version IS NOT NULL AND bundlepath IS NOT NULL AND EXISTS
        (SELECT 1 FROM channel_entry WHERE operatorbundle_name = operatorbundle.name AND channel_name IS NOT NULL)`,
  );
  return new Map(rows.map(({ image, name }) => [image, name]));
}

/**
 * Removes packages whose default channel is headed by one of the images, and returns the remaining images. Throws
 * INVALID if another channel of such a package has a different head.
 */
async function removeWholePackages(
  database: Database,
  images: readonly string[],
  listed: ReadonlyMap<string, string>,
  report: DeprecateReport,
): Promise<string[]> {
  const packages = new Set<string>();
  for (const image of images) {
    const headed = database.texts(
      `SELECT package.name FROM channel JOIN package ON channel.package_name = package.name
        AND channel.name = package.default_channel WHERE head_operatorbundle_name = ?`,
      listed.get(image) as string,
    );
    for (const name of headed) packages.add(name);
  }
  const removed = new Set<string>();
  for (const packageName of packages) {
    const heads = database.textRows<'channel' | 'image'>(
      `SELECT channel.name AS channel, bundlepath AS image FROM channel
        LEFT JOIN operatorbundle ON operatorbundle.name = head_operatorbundle_name
        WHERE package_name = ? ORDER BY channel.name`,
      packageName,
    );
    for (const { channel, image } of heads) {
      if (images.includes(image)) {
        removed.add(image);
        continue;
      }
      throw new OpmateError(
        'INVALID',
        `${database.name}: cannot deprecate default channel head from package without removing all other ` +
          `channel heads in package ${packageName}: must deprecate ${image}, head of channel ${channel}`,
      );
    }
  }
  if (packages.size === 0) return [...images];
  const { bundles } = await removePackages(database, [...packages]);
  report.packages.push(...packages);
  report.bundles.push(...bundles);
  return images.filter((image) => !removed.has(image));
}

/** Neighbors of an entry. */
interface TailEntry {
  channels: Set<ColumnValue>;
  /** Replaced or skipped by the bundle. */
  below: Set<string>;
  /** Replaces or skips the bundle. */
  above: Set<string>;
}

/** Deprecates one bundle; returns false if it no longer exists. Within `withEditIndexes`. */
function deprecateBundle(
  database: Database,
  { name, image }: { name: string; image: string },
  owners: BundlesByPackage,
  removed: string[],
): boolean {
  const bundle = readBundle(database, name);
  if (bundle === undefined) return false;
  const tail = readTail(database, name);
  const ownChannels = tail.get(name)?.channels ?? new Set();
  const isTail = (bundleName: string): boolean => tail.has(bundleName);
  for (const [below, { channels, above }] of tail) {
    if (below === name) continue;
    removeFromChannels(database, below, ownChannels);
    // Bundles that other channels or bundles lead to stay.
    if ([...channels].every((channel) => ownChannels.has(channel)) && [...above].every(isTail))
      removeBundle(database, below, removed);
  }
  database.run('UPDATE channel_entry SET replaces = NULL WHERE operatorbundle_name = ?', name);
  database.run('DELETE FROM channel WHERE head_operatorbundle_name = ?', name);
  const { type, value } = deprecatedProperty;
  insertFact(database, 'properties', { name, version: bundle.version, image }, type, value);
  database.run('INSERT OR REPLACE INTO deprecated (operatorbundle_name) VALUES (?)', name);
  removeOfUnknownPackages(database, owners, removed);
  return true;
}

/**
 * Returns a bundle and everything below it in all channels, nearest first. Throws INVALID if one of them heads the
 * default channel of its package.
 */
function readTail(database: Database, name: string): Map<string, TailEntry> {
  const [head] = database.texts(
    `SELECT head_operatorbundle_name FROM channel
      JOIN package ON channel.name = package.default_channel AND channel.package_name = package.name
      JOIN channel_entry ON channel.package_name = channel_entry.package_name
      WHERE channel_entry.operatorbundle_name = ? LIMIT 1`,
    name,
  );
  if (head === undefined || head === '') {
    throw new OpmateError('INVALID', `error getting default channel head for ${name}`, {
      subject: database.name,
      hint: 'set a default channel for its package',
    });
  }
  const tail = new Map<string, TailEntry>();
  reachableFrom(name, {
    get: (bundle) => {
      const entry = readTailEntry(database, bundle);
      if (entry !== undefined) tail.set(bundle, entry);
      return entry?.below;
    },
  });
  if (tail.has(head)) {
    throw new OpmateError('INVALID', 'Bundle deprecation causing default channel removal', {
      subject: database.name,
      hint: 'specify the heads of all its channels and options.allowPackageRemoval to remove its package',
    });
  }
  return tail;
}

/** Returns the neighbors of a bundle; undefined for a bundle without entries. */
function readTailEntry(database: Database, name: string): TailEntry | undefined {
  const rows = database.all<Record<'channel' | 'below' | 'above', ColumnValue>>(
    `SELECT entry.channel_name AS channel, lower.operatorbundle_name AS below, upper.operatorbundle_name AS above
      FROM channel_entry AS entry
      LEFT JOIN channel_entry AS lower ON lower.entry_id = entry.replaces
      LEFT JOIN channel_entry AS upper ON upper.replaces = entry.entry_id
      WHERE entry.operatorbundle_name = ? ORDER BY entry.entry_id`,
    name,
  );
  if (rows.length === 0) return undefined;
  // Names that are bytes equal no other name, and no tool writes them.
  const isText = (value: ColumnValue): value is string => typeof value === 'string';
  return {
    channels: new Set(rows.map(({ channel }) => channel).filter((channel) => channel !== null)),
    below: new Set(rows.map(({ below }) => below).filter(isText)),
    above: new Set(rows.map(({ above }) => above).filter(isText)),
  };
}

/** Removes the entries of a bundle from channels. */
function removeFromChannels(database: Database, bundle: string, channels: ReadonlySet<ColumnValue>): void {
  // The sign keeps sqlite from looking up the channel: many packages have channels of the same name.
  const entries = 'SELECT entry_id FROM channel_entry WHERE operatorbundle_name = ? AND +channel_name = ?';
  for (const channel of channels) {
    database.run(`UPDATE channel_entry SET replaces = NULL WHERE replaces IN (${entries})`, bundle, channel);
    database.run(`DELETE FROM channel_entry WHERE entry_id IN (${entries})`, bundle, channel);
  }
}
