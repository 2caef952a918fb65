import { OpmateError } from '../../core/errors.js';
import { describeMissing, suggestName } from '../../core/suggest.js';
import { type Version, parseVersion, tryParse } from '../../core/semver.js';
import { compareKnownVersions, compareVersionBuilds, sortNewestFirst } from '../../graph/bundle-version.js';
import type { BundleManifests } from '../schema/bundle-record.js';
import { followReplaces } from '../../graph/channel-graph.js';
import { findHighestChannel } from '../../graph/package-model.js';
import { type ChainLink, writeChain } from '../schema/channel-entries.js';
import type { Database } from '../schema/database.js';
import { withEditIndexes } from '../schema/helper-indexes.js';
import { writeManifests } from '../schema/insert-bundle.js';
import {
  type BundleEdges,
  type IndexPackage,
  readBundle,
  readEdges,
  readPackage,
  readVersions,
} from '../schema/package-state.js';
import { removeBundle } from '../schema/remove-bundle.js';
import { noSuchPackage } from './remove.js';

/** Fetches the manifests of a bundle from its image, with its name there. */
export type FetchManifests = (image: string) => Promise<{ name: string; manifests: BundleManifests }>;

/** Changes of a deletion. */
export interface DeleteReport {
  /** Names of deleted bundles. */
  bundles: string[];
  packages: string[];
  /** Channels with a new head. */
  heads: { packageName: string; channel: string; head: string }[];
  /** Deleted channels, which had no other bundle that is not deprecated. */
  emptied: { packageName: string; channel: string }[];
  /** Packages with a new default channel. */
  defaults: { packageName: string; channel: string }[];
  /** Names of bundles whose manifests were fetched again. */
  restored: string[];
}

/**
 * Deletes one bundle and repairs the upgrade graph of its package:
 * - Bundles that replaced it replace what it replaced, skip its skips, and skip it, so that clusters that run it can
 *   upgrade, and it can be added again.
 * - A deleted head is followed by what it replaced or, if it skipped newer bundles that nothing else leads to, by the
 *   newest of these, which then skips or replaces the others; skipped names without a bundle are dropped there, as
 *   their order is unknown.
 * - A channel without other bundles is deleted; a deleted default channel is replaced by the channel with the newest
 *   head, of equal ones the first by name.
 * - A new head without manifests gets them again.
 *
 * The graph of a bundle that was only skipped stays as it is. Throws OpmateError: NOT_FOUND for an unknown bundle;
 * INVALID, with names, if its package would have no channel left, if the bundles that it skipped cannot be ordered by
 * version, and if manifests of a new head are in neither the index nor what `fetchManifests` returns.
 */
export async function deleteBundle(
  database: Database,
  name: string,
  { fetchManifests }: { fetchManifests?: FetchManifests | undefined } = {},
): Promise<DeleteReport> {
  return deleteBundles(database, [name], fetchManifests);
}

/**
 * Deletes the newest version of a package from the index: of the heads of its channels, the one with the highest
 * version, from all channels. With `eachChannel` it deletes every head. The next bundle becomes the head, with all of
 * its manifests. Channels and the default channel change as in `deleteBundle`. A database does not store the channels
 * that a bundle declares, so a new head may be one that was only part of a channel's history.
 *
 * Throws as `deleteBundle`, and OpmateError NOT_FOUND for an unknown package, INVALID if versions do not determine
 * the newest bundle or no channel would be left.
 */
export async function deleteLatest(
  database: Database,
  packageName: string,
  fetchManifests: FetchManifests,
  { eachChannel = false }: { eachChannel?: boolean | undefined } = {},
): Promise<DeleteReport> {
  return withEditIndexes(database, async () => {
    const state = readPackage(database, packageName);
    const versions = readVersions(state);
    const heads = [...new Set(state.heads.values())].filter((head) => state.bundles.has(head));
    const names = sortNewestFirst(heads, versions, compareVersionBuilds);
    const [newest, next] = names;
    if (newest === undefined) throw noSuchPackage(database, [packageName]);
    if (eachChannel || next === undefined) return deleteBundles(database, names, fetchManifests);
    if (compareKnownVersions(versions.get(newest), versions.get(next), compareVersionBuilds) === 0) {
      throw new OpmateError(
        'INVALID',
        `package ${packageName}: ${newest} and ${next} have the same version, or none`,
        {
          subject: database.name,
          hint: 'select one with api.editIndex delete options.bundle NAME, or remove both with options.eachChannel',
        },
      );
    }
    return deleteBundles(database, [newest], fetchManifests);
  });
}

/** Deletes bundles one by one, see `deleteBundle`; only the final heads of channels get their manifests again. */
async function deleteBundles(
  database: Database,
  names: readonly string[],
  fetchManifests?: FetchManifests,
): Promise<DeleteReport> {
  return withEditIndexes(database, async () => {
    const report: DeleteReport = {
      bundles: [],
      packages: [],
      heads: [],
      emptied: [],
      defaults: [],
      restored: [],
    };
    for (const name of names) takeOut(database, name, report);
    await restoreHeads(database, report, fetchManifests);
    return report;
  });
}

/** Columns of a bundle that determine the graph. */
interface BundleRow extends Omit<BundleEdges, 'version'> {
  version: Version | undefined;
}

/** Deletes a bundle and repairs the graph, without manifests of new heads. Within `withEditIndexes`. */
function takeOut(database: Database, name: string, report: DeleteReport): void {
  const bundle = readRow(database, name);
  if (bundle === undefined) throw noSuchBundle(database, name);
  repairColumns(database, bundle);
  const packages = database.texts(
    'SELECT DISTINCT package_name FROM channel_entry WHERE operatorbundle_name = ? ORDER BY package_name',
    name,
  );
  for (const packageName of packages) {
    takeOutOfPackage(database, packageName, bundle, report);
    if (!report.packages.includes(packageName)) report.packages.push(packageName);
  }
  removeBundle(database, name, report.bundles, true);
  database.run('DELETE FROM deprecated WHERE operatorbundle_name = ?', name);
}

function readRow(database: Database, name: string): BundleRow | undefined {
  const edges = readEdges(database, name);
  if (edges === undefined) return undefined;
  const skips = edges.skips.filter((skip) => skip !== '');
  return { ...edges, version: tryParse(parseVersion, edges.version), skips };
}

function noSuchBundle(database: Database, name: string): OpmateError {
  const [upper] = database.texts(
    `SELECT upper.operatorbundle_name FROM channel_entry AS lower
      JOIN channel_entry AS upper ON upper.replaces = lower.entry_id WHERE lower.operatorbundle_name = ? LIMIT 1`,
    name,
  );
  return new OpmateError('NOT_FOUND', describeMissing('bundle', name), {
    subject: database.name,
    hint:
      upper === undefined
        ? suggestName(
            'bundle',
            name,
            database.texts('SELECT name FROM operatorbundle WHERE name IS NOT NULL'),
          )
        : `check the name: it is not in the index, only skipped or replaced by ${upper}`,
  });
}

function takeOutOfPackage(
  database: Database,
  packageName: string,
  bundle: BundleRow,
  report: DeleteReport,
): void {
  const state = readPackage(database, packageName);
  /** Remaining heads by channel. */
  const heads = new Map(state.heads);
  const changed = new Map<string, ChainLink[]>();
  for (const channel of state.heads.keys()) {
    const fail = (problem: string, hint: string): OpmateError =>
      new OpmateError('INVALID', `package ${packageName}, channel ${channel}: ${problem}`, {
        subject: database.name,
        hint,
      });
    const chain = readChain(state, channel, fail);
    const index = chain.findIndex(({ name }) => name === bundle.name);
    if (index < 0) continue;
    const repaired =
      index > 0 ? withoutLower(chain, index, bundle) : withoutHead(database, chain, bundle, fail);
    changed.set(channel, repaired);
    if (repaired[0] === undefined) heads.delete(channel);
    else heads.set(channel, repaired[0].name);
  }
  if (state.heads.size > 0 && heads.size === 0) {
    throw new OpmateError('INVALID', `without ${bundle.name} package ${packageName} has no channel left`, {
      subject: database.name,
      hint: `remove the package with api.editIndex rm options.packages ${packageName}`,
    });
  }
  if (heads.size > 0 && !heads.has(state.defaultChannel)) {
    const channel = findHighestChannel(heads, readVersions(state), compareVersionBuilds);
    const where = [channel, packageName];
    const { changes } = database.run('UPDATE package SET default_channel = ? WHERE name = ?', ...where);
    report.defaults = report.defaults.filter((item) => item.packageName !== packageName);
    if (changes > 0) report.defaults.push({ packageName, channel });
  }
  for (const [channel, chain] of changed) {
    const head = heads.get(channel);
    const hasNewHead = head !== state.heads.get(channel);
    changeChannel(database, { packageName, channel }, chain, { head, hasNewHead }, report);
  }
}

/** Writes a channel without a bundle, or deletes it if it has none left. */
function changeChannel(
  database: Database,
  { packageName, channel }: { packageName: string; channel: string },
  chain: ChainLink[],
  { head, hasNewHead }: { head: string | undefined; hasNewHead: boolean },
  report: DeleteReport,
): void {
  if (hasNewHead) {
    report.heads = report.heads.filter(
      (item) => item.packageName !== packageName || item.channel !== channel,
    );
  }
  if (head === undefined) {
    // Its entries are deleted with it.
    database.run('DELETE FROM channel WHERE name = ? AND package_name = ?', channel, packageName);
    report.emptied.push({ packageName, channel });
    return;
  }
  if (hasNewHead) {
    database.run(
      'UPDATE channel SET head_operatorbundle_name = ? WHERE name = ? AND package_name = ?',
      head,
      channel,
      packageName,
    );
    report.heads.push({ packageName, channel, head });
  }
  writeChain(database, packageName, channel, chain);
}

/**
 * Reads the chain of a channel from its head down. Throws the error of `fail` for bundles that the head does not lead
 * to, as such a channel could not be written again.
 */
function readChain(
  { heads, channels, bundles }: IndexPackage,
  channel: string,
  fail: (problem: string, hint: string) => OpmateError,
): ChainLink[] {
  const head = heads.get(channel) ?? '';
  const list = channels.get(channel) ?? [];
  const entries = new Map(list.map((entry) => [entry.name, entry]));
  const names = entries.has(head) ? followReplaces({ heads: [head], entries }).names : [];
  const chain = names.map((name) => ({ name, skips: [...new Set(entries.get(name)?.skips)] }));
  const reached = new Set(chain.flatMap(({ name, skips }) => [name, ...skips]));
  const loose = list.find(({ name }) => !reached.has(name) && bundles.has(name));
  if (loose === undefined) return chain;
  throw fail(`its head ${head || '(none)'} does not lead to ${loose.name}`, 'add the package anew');
}

/** Returns the chain without a bundle that another replaces. */
function withoutLower(nodes: readonly ChainLink[], index: number, bundle: BundleRow): ChainLink[] {
  const [upper, node] = [nodes[index - 1], nodes[index]] as [ChainLink, ChainLink];
  const skips = new Set([...upper.skips, bundle.name, ...node.skips]);
  skips.delete(upper.name);
  return [...nodes.slice(0, index - 1), { name: upper.name, skips: [...skips] }, ...nodes.slice(index + 1)];
}

/** Returns the chain without its head; empty if only deprecated bundles remain. */
function withoutHead(
  database: Database,
  nodes: readonly ChainLink[],
  bundle: BundleRow,
  fail: (problem: string, hint: string) => OpmateError,
): ChainLink[] {
  const [head, ...below] = nodes as [ChainLink, ...ChainLink[]];
  const reached = new Set(below.flatMap((node) => [node.name, ...node.skips]));
  // Bundles reachable from the head only.
  const loose = head.skips
    .filter((name) => name !== bundle.name && !reached.has(name))
    .map((name) => readRow(database, name))
    .filter((bundleRow) => bundleRow !== undefined);
  const top = below[0] === undefined ? undefined : readRow(database, below[0].name);
  const isLive = (bundleRow: BundleRow | undefined): boolean =>
    bundleRow !== undefined && !bundleRow.isDeprecated;
  if (!isLive(top) && !loose.some(isLive)) return [];
  if (loose.length === 0) return below;
  const ordered = newestFirst([...loose, ...(top === undefined ? [] : [top])]);
  if (ordered === undefined) {
    const names = loose.map(({ name }) => name).join(', ');
    throw fail(
      `without ${bundle.name} nothing leads to ${names}, and their versions do not determine the next one`,
      `delete those first, or add a bundle that replaces ${bundle.name}`,
    );
  }
  const newer = ordered.slice(
    0,
    isLive(top) ? ordered.findIndex((bundleRow) => bundleRow === top) : undefined,
  );
  const { chain, next } = getChain(newer.filter(isLive), below);
  const result = [...chain, ...below.slice(next)];
  const placed = new Set(result.flatMap((node) => [node.name, ...node.skips]));
  const skip = (node: ChainLink | undefined, name: string): void => {
    if (!placed.has(name)) node?.skips.push(name);
    placed.add(name);
  };
  for (const node of below.slice(0, next))
    [node.name, ...node.skips].forEach((name) => skip(chain.at(-1), name));
  // The others are skipped by the lowest newer bundle.
  const chained = new Map(result.map((node) => [node.name, node]));
  let above = result[0];
  for (const { name } of ordered) {
    skip(above, name);
    above = chained.get(name) ?? above;
  }
  // Readers of catalogs do not follow the chain through a skipped bundle.
  const inner = new Set(result.slice(0, -1).map(({ name }) => name));
  for (const node of result) node.skips = node.skips.filter((name) => !inner.has(name));
  for (const [index, node] of result.slice(0, chain.length + 1).entries())
    writeEdges(database, node, index < chain.length ? result[index + 1]?.name : undefined, inner);
  return result;
}

/** Sorts newest first; undefined if a version is missing or duplicate. */
function newestFirst(bundles: readonly BundleRow[]): BundleRow[] | undefined {
  const sorted = [...bundles].sort((a, b) => compareByVersion(b, a));
  const isClear = sorted.every((bundle, index) => {
    const next = sorted[index + 1];
    return bundle.version !== undefined && (next === undefined || compareByVersion(bundle, next) > 0);
  });
  return isClear ? sorted : undefined;
}

/** Compares as `registry add` orders bundles: by version, then build metadata; no version is lowest. */
function compareByVersion(a: BundleRow, b: BundleRow): number {
  return compareKnownVersions(a.version, b.version, compareVersionBuilds);
}

/**
 * Returns the chain from the newest bundle along the columns, and where it continues in the chain below: at what the
 * last one replaces, or at the top.
 */
function getChain(
  newestToOldest: readonly BundleRow[],
  below: readonly ChainLink[],
): { chain: ChainLink[]; next: number } {
  const chain: ChainLink[] = [];
  let index = 0;
  let bundle = newestToOldest[0];
  let next = 0;
  while (bundle !== undefined) {
    const { name, skips, replaces } = bundle;
    chain.push({ name, skips: [...skips] });
    const lower = newestToOldest.findIndex((bundleRow) => bundleRow.name === replaces);
    if (lower <= index) {
      next = Math.max(
        0,
        below.findIndex((node) => node.name === replaces),
      );
      break;
    }
    index = lower;
    bundle = newestToOldest[lower];
  }
  return { chain, next };
}

/**
 * Writes the entries of a bundle to its columns, so that writing the package again keeps them; what it replaces only
 * if set.
 */
function writeEdges(
  database: Database,
  node: ChainLink,
  replaces: string | undefined,
  inner: ReadonlySet<string>,
): void {
  const bundle = readRow(database, node.name);
  if (bundle === undefined || bundle.isDeprecated) return;
  const skips = [...new Set([...bundle.skips, ...node.skips])].filter((name) => !inner.has(name));
  database.run(
    'UPDATE operatorbundle SET replaces = ?, skips = ? WHERE name = ?',
    replaces ?? bundle.replaces,
    skips.join(','),
    node.name,
  );
}

/** Updates the columns of bundles that replaced a bundle or substituted for it. */
function repairColumns(database: Database, bundle: BundleRow): void {
  const { name, replaces, skips, substitutesFor, isDeprecated } = bundle;
  // Edges of a deprecated bundle are not followed any more, and mostly missing.
  const next = !isDeprecated && readBundle(database, replaces) !== undefined ? replaces : '';
  // Only those of its packages: these columns follow the manifests, so reading all takes the whole file.
  const others = database.texts(
    `SELECT DISTINCT operatorbundle_name FROM channel_entry WHERE package_name IN
      (SELECT package_name FROM channel_entry WHERE operatorbundle_name = ?) ORDER BY 1`,
    name,
  );
  for (const other of others) {
    const row = readRow(database, other);
    if (row === undefined || row.name === name) continue;
    if (row.replaces === name) {
      const merged = new Set([...row.skips, name, ...(isDeprecated ? [] : skips)]);
      merged.delete(row.name);
      database.run(
        'UPDATE operatorbundle SET replaces = ?, skips = ? WHERE name = ?',
        next === row.name ? '' : next,
        [...merged].join(','),
        row.name,
      );
    }
    if (row.substitutesFor === name && substitutesFor !== '' && substitutesFor !== row.name) {
      database.run('UPDATE operatorbundle SET substitutesfor = ? WHERE name = ?', substitutesFor, row.name);
    }
  }
}

/** Restores the manifests of the new heads of a report. Throws OpmateError INVALID if unavailable, and as fetching. */
async function restoreHeads(
  database: Database,
  report: DeleteReport,
  fetchManifests: FetchManifests | undefined,
): Promise<void> {
  for (const { packageName, channel, head } of report.heads) {
    const [image] = database.texts(
      `SELECT bundlepath FROM operatorbundle
        WHERE name = ? AND (coalesce(length(csv), 0) = 0 OR coalesce(length(bundle), 0) = 0)`,
      head,
    );
    if (image === undefined || report.restored.includes(head)) continue;
    const subject = `${database.name}: ${head}, now the head of channel ${channel} of package ${packageName}`;
    if (image === '')
      throw new OpmateError('INVALID', `${subject}, has no manifests in the index and no image`);
    if (fetchManifests === undefined)
      throw new OpmateError('INVALID', `${subject}, has no manifests in the index`);
    const fetched = await fetchManifests(image);
    if (fetched.name !== head) {
      throw new OpmateError('INVALID', `its image ${image} holds ${fetched.name} now`, {
        subject,
        hint: 'check the tag, which has moved; nothing was changed',
      });
    }
    writeManifests(database, head, fetched.manifests);
    report.restored.push(head);
  }
}
