import { sortedByBytes } from '../../core/order.js';
import { NameIndex } from '../../core/suggest.js';
import { quoteGo } from '../../document/go-json.js';
import type { CatalogDiagnostic, CatalogSubject } from '../../model/catalog-diagnostic.js';
import { type ChannelEntry, schemas } from '../../model/declarative-config.js';
import type { BundleFacts, CatalogFacts, ChannelFacts } from '../../model/facts.js';
import { getValuePath } from './bundle-faults.js';
import type { ChannelGraph } from '../channel-graph.js';
import { findSkippedInChain } from '../graph-advice.js';

/** A finding that `opm` accepts but is probably a mistake. */
export type CatalogWarning = CatalogDiagnostic<
  'empty-catalog' | 'skipped-in-chain' | 'misspelled-name' | 'equal-versions'
>;

function warn(
  code: CatalogWarning['code'],
  problem: string,
  place: CatalogSubject,
  hint: string,
): CatalogWarning {
  return { severity: 'warning', code, problem, ...place, hint };
}

/** Returns the name of a channel in messages. */
export function formatChannel(channel: ChannelFacts): string {
  return `package ${quoteGo(channel.package)} channel ${quoteGo(channel.name)}`;
}

/** Warns of a catalog without blobs: its files were probably truncated. */
export function warnOfEmptyCatalog(facts: CatalogFacts): CatalogWarning[] {
  const { packages, channels, bundles, deprecations, otherSchemas } = facts;
  const others = otherSchemas?.size ?? 0;
  if (packages.length + channels.length + bundles.length + deprecations.length + others > 0) return [];
  const hint = 'check that the files of the catalog are complete, and are not in .indexignore';
  return [warn('empty-catalog', 'the catalog has no blobs', {}, hint)];
}

/** Warns of schemas that are similar to one of the catalog format; others are extensions. */
export function warnOfSimilarSchemas({ otherSchemas = new Map() }: CatalogFacts): CatalogWarning[] {
  const known = new NameIndex(Object.values(schemas));
  return [...otherSchemas].flatMap(([schema, { package: packageName, origin }]) => {
    const near = known.nearest(schema);
    if (near === undefined) return [];
    const place = { ...(packageName !== '' && { package: packageName }), origin, path: ['schema'] };
    const hint = `use ${quoteGo(near)} if you mean that schema`;
    return [warn('misspelled-name', `unknown schema ${quoteGo(schema)}`, place, hint)];
  });
}

/**
 * Warns of versions that differ in build metadata only, which have no order. `namesByVersion` are the bundles of a
 * package; those with an invalid version are ignored.
 */
export function warnOfEqualVersions(
  { facts, bundles }: { facts: { name: string }; bundles: ReadonlyMap<string, BundleFacts> },
  namesByVersion: ReadonlyMap<string, string[]>,
  hasVersion: (name: string) => boolean,
): CatalogWarning[] {
  if (![...namesByVersion.keys()].some((version) => version.includes('+'))) return [];
  const warnings: CatalogWarning[] = [];
  const known = new Map<string, string>();
  for (const [version, names] of namesByVersion) {
    const [name = ''] = sortedByBytes(names);
    const core = version.replace(/\+.*/s, '');
    const other = known.get(core);
    if (other === undefined) {
      known.set(core, name);
      continue;
    }
    if (!hasVersion(name) || !hasVersion(other)) continue;
    const bundle = bundles.get(name);
    const pair = `${quoteGo(other)} and ${quoteGo(name)}`;
    const path = getValuePath(bundle?.packageProperties[0]);
    warnings.push(
      warn(
        'equal-versions',
        `package ${quoteGo(facts.name)}: versions of bundles ${pair} differ in build metadata only`,
        { package: facts.name, bundle: name, origin: bundle?.origin, path },
        'use versions that differ before the "+": neither is newer than the other',
      ),
    );
  }
  return warnings;
}

/** Warns of a bundle in the chain of a valid channel that is also skipped. */
export function warnOfSkippedInChain(channel: ChannelFacts, graph: ChannelGraph): CatalogWarning[] {
  const cycle = findSkippedInChain(graph);
  if (cycle === undefined) return [];
  const index = channel.entries.findIndex(({ name }) => name === cycle.from);
  const path = ['entries', index, 'replaces'];
  const [from, to, by] = [cycle.from, cycle.to, cycle.by].map(quoteGo);
  return [
    warn(
      'skipped-in-chain',
      `${formatChannel(channel)}: entry ${from} replaces ${to}, which ${by} skips, and ${by} has no upgrade`,
      { package: channel.package, channel: channel.name, bundle: cycle.from, origin: channel.origin, path },
      `remove that skip, or replace or skip ${by} in a later entry: clusters that upgrade to ${by} cannot leave it`,
    ),
  ];
}

/** Yields the warnings for unknown names that are similar to entries, entry by entry; others are normal after pruning. */
export function* warnOfSimilarNames(
  channel: ChannelFacts,
  entries: ReadonlyMap<string, ChannelEntry>,
): Generator<CatalogWarning[]> {
  let index: NameIndex | undefined;
  for (const [position, entry] of channel.entries.entries()) {
    const warnings: CatalogWarning[] = [];
    const check = (name: string, verb: string, path: (string | number)[]): void => {
      if (name === '' || entries.has(name)) return;
      index ??= new NameIndex(entries.keys());
      const near = index.nearest(name);
      if (near === undefined) return;
      const { package: packageName, name: channelName, origin } = channel;
      warnings.push(
        warn(
          'misspelled-name',
          `${formatChannel(channel)}: entry ${quoteGo(entry.name)} ${verb} ${quoteGo(name)}, which is not an entry`,
          {
            package: packageName,
            channel: channelName,
            bundle: entry.name,
            origin,
            path: ['entries', position, ...path],
          },
          near === entry.name
            ? 'use the name of an existing entry'
            : `use ${quoteGo(near)} if you mean that entry`,
        ),
      );
    };
    check(entry.replaces, 'replaces', ['replaces']);
    entry.skips.forEach((skip, place) => check(skip, 'skips', ['skips', place]));
    yield warnings;
  }
}
