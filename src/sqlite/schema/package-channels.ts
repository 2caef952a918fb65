import type { PackageManifest } from '../../bundle/package-manifests.js';
import { OpmateError } from '../../core/errors.js';
import { encodeGoJson, quoteGo } from '../../document/go-json.js';
import { followReplaces } from '../../graph/channel-graph.js';
import { propertyTypes } from '../../model/declarative-config.js';
import { writeChain } from './channel-entries.js';
import type { Database } from './database.js';
import { withIndexes } from './helper-indexes.js';
import { insertFact } from './insert-bundle.js';
import { aggregateErrors } from './aggregate.js';
import { type BundleEdges, isDeprecated, readEdges } from './package-state.js';

/** A package with the heads of its channels, which determine its upgrade graph. */
export type PackageChannels = Omit<PackageManifest, 'file'>;

/**
 * Rewrites a package: its channels with the entries reachable from their heads over replaces and skips. A channel
 * with a deprecated head is omitted, and a channel ends at a deprecated bundle. Throws OpmateError INVALID with all
 * problems of the graph, and then leaves the package unchanged. Runs in the caller's transaction. Wrap many calls in
 * `withIndexes` of `entries`.
 */
export async function writePackageChannels(database: Database, wanted: PackageChannels): Promise<void> {
  const { channels, defaultChannel } = planChannels(database, wanted);
  const { packageName } = wanted;
  await withIndexes(database, 'entries', () =>
    database.transaction(() => {
      // Entries before channels, as each channel would search for its own.
      database.run('DELETE FROM channel_entry WHERE package_name = ?', packageName);
      database.run('DELETE FROM channel WHERE package_name = ?', packageName);
      database.run('DELETE FROM package WHERE name = ?', packageName);
      database.run('INSERT INTO package (name) VALUES (?)', packageName);
      for (const { name, head } of channels) {
        database.run(
          'INSERT INTO channel (name, package_name, head_operatorbundle_name) VALUES (?, ?, ?)',
          name,
          packageName,
          head,
        );
      }
      database.run('UPDATE package SET default_channel = ? WHERE name = ?', defaultChannel, packageName);
      for (const { name, chain } of channels) {
        writeChain(database, packageName, name, chain);
        for (const bundle of chain) {
          const value = encodeGoJson({ packageName, version: bundle.version }, { escapeHtml: true });
          insertFact(database, 'properties', bundle, propertyTypes.package, value);
        }
      }
    }),
  );
}

/** Planned rows of a package. */
interface Plan {
  defaultChannel: string;
  /** Channels, each with its chain of replaces from the head. */
  channels: { name: string; head: string; chain: BundleEdges[] }[];
}

function planChannels(database: Database, wanted: PackageChannels): Plan {
  const { packageName } = wanted;
  const find = bundleFinder(database);
  const errors: OpmateError[] = [];
  const fail = (message: string, hint?: string): void => {
    errors.push(new OpmateError('INVALID', message, { hint }));
  };
  const plan: Plan = { defaultChannel: '', channels: [] };
  let hasDefault = false;
  for (const { name, head } of wanted.channels) {
    // Even if its row is missing.
    if (isDeprecated(database, head)) continue;
    if (wanted.channels.length === 1 || name === wanted.defaultChannel) {
      hasDefault = true;
      plan.defaultChannel = name;
    }
    if (find(head) === undefined) {
      const subject = `failed to add channel ${quoteGo(name)} in package ${quoteGo(packageName)}`;
      fail(`${subject}: its head ${head} is not in the index`);
    } else plan.channels.push({ name, head, chain: findChain(head, find, fail) });
  }
  if (!hasDefault) {
    const { channels, defaultChannel } = wanted;
    const names = channels.map(({ name }) => name);
    fail(
      `no default channel specified for ${packageName}`,
      names.includes(defaultChannel)
        ? `the head of its default channel ${defaultChannel} is deprecated`
        : `name one of its channels as the default: ${names.join(', ')}`,
    );
  }
  if (errors.length > 0) throw aggregateErrors(errors);
  return plan;
}

function findChain(
  head: string,
  find: (name: string) => BundleEdges | undefined,
  fail: (message: string, hint: string) => void,
): BundleEdges[] {
  const { names, isCycle } = followReplaces({ heads: [head], entries: { get: find } });
  const chain = names.flatMap((name) => find(name) ?? []);
  const { name, replaces } = chain.at(-1) as BundleEdges;
  if (isCycle) {
    fail(`Cycle detected, ${name} replaces ${replaces}`, 'correct spec.replaces of one of them');
  } else if (replaces !== '') {
    fail(
      `Invalid bundle ${name}, replaces nonexistent bundle ${replaces}`,
      `add ${replaces} first or in the same call, or correct spec.replaces of ${name}`,
    );
  }
  return chain;
}

/**
 * Returns a cached lookup of bundles: rows may be long, and a bundle is in many channels. A deprecated bundle leads
 * nowhere, so that channels end there.
 */
function bundleFinder(database: Database): (name: string) => BundleEdges | undefined {
  const known = new Map<string, BundleEdges | undefined>();
  return (name) => {
    if (!known.has(name)) {
      const bundle = readEdges(database, name);
      known.set(name, bundle?.isDeprecated === true ? { ...bundle, replaces: '', skips: [] } : bundle);
    }
    return known.get(name);
  };
}
