import { OpmateError } from '../../core/errors.js';
import { quoteGo } from '../../document/go-json.js';
import type { Version } from '../../core/semver.js';
import { schemas } from '../../model/declarative-config.js';
import type { BundleFacts, CatalogFacts, ChannelFacts } from '../../model/facts.js';
import { readBundleVersion } from '../../graph/bundle-version.js';
import { findHighestChannel } from '../../graph/package-model.js';
import { repairChannel } from './repair-channel.js';
import { type CatalogSelection, type SelectedPackage, requireValid, summarizeChannels } from './selection.js';

/** What leaving bundles out has changed. */
export interface LeftOut {
  selection: CatalogSelection;
  /** One sentence each, e.g. which entry leads past a bundle that is gone. */
  changes: string[];
}

/**
 * A selection without some bundles, its upgrade graphs repaired (see `repairChannel`). A channel or package that has
 * nothing left goes; a package whose default channel goes gets that of its channels whose head has the highest
 * version, of equal ones the first by name. What is left is a valid catalog, in the order that it had. A selection
 * with none of the bundles comes back as it is; any other is not whole any more. `bundles` are `package/bundle`.
 *
 * Throws OpmateError INVALID where nothing is left, and what `repairChannel` throws.
 */
export function leaveOut(
  selection: CatalogSelection,
  bundles: ReadonlySet<string>,
  catalog: string,
): LeftOut {
  const { facts } = selection;
  const affected = new Map<string, PackageRepair>();
  for (const bundle of facts.bundles) {
    if (!bundles.has(`${bundle.package}/${bundle.name}`)) continue;
    let repair = affected.get(bundle.package);
    if (repair === undefined) affected.set(bundle.package, (repair = new PackageRepair(bundle.package)));
    repair.gone.add(bundle.name);
  }
  if (affected.size === 0) return { selection, changes: [] };
  for (const bundle of facts.bundles) affected.get(bundle.package)?.addVersion(bundle);
  const result: CatalogFacts = {
    channels: facts.channels.flatMap((channel) => {
      const repair = affected.get(channel.package);
      return repair === undefined ? [channel] : repair.repair(channel);
    }),
    packages: facts.packages.flatMap((one) => {
      const repair = affected.get(one.name);
      return repair === undefined ? [one] : repair.chooseDefault(one);
    }),
    bundles: facts.bundles.filter(({ package: of, name }) => affected.get(of)?.gone.has(name) !== true),
    deprecations: facts.deprecations.flatMap((one) => {
      const repair = affected.get(one.package);
      if (repair === undefined) return [one];
      const entries = one.entries.filter(({ reference }) => repair.has(reference));
      return entries.length === 0 ? [] : [{ ...one, entries }];
    }),
  };
  if (result.packages.length === 0) {
    throw new OpmateError(
      'INVALID',
      `${catalog}: without the bundles that are left out nothing is left of it`,
    );
  }
  requireValid(result, catalog);
  return {
    selection: {
      ...selection,
      isWhole: false,
      facts: result,
      packages: selection.packages.flatMap((one) => affected.get(one.name)?.summary(result) ?? one),
      kept: selection.kept.filter(
        (one) => affected.get(one.package)?.hasEntry(one.channel, one.bundle) !== false,
      ),
    },
    changes: [...affected.values()].flatMap(({ changes }) => changes),
  };
}

/** A package that loses bundles. */
class PackageRepair {
  readonly gone = new Set<string>();
  readonly changes: string[] = [];
  readonly #name: string;
  readonly #versions = new Map<string, Version>();
  readonly #channels = new Map<string, ChannelFacts>();

  constructor(name: string) {
    this.#name = name;
  }

  addVersion(bundle: BundleFacts): void {
    const version = readBundleVersion(bundle);
    if (version !== undefined) this.#versions.set(bundle.name, version);
  }

  /** The channel without what is gone, or none. */
  repair(channel: ChannelFacts): ChannelFacts[] {
    const { entries, changes } = repairChannel(channel.entries, this.gone, this.#versions);
    const subject = `package ${quoteGo(this.#name)}, channel ${quoteGo(channel.name)}`;
    if (entries.length === 0 && channel.entries.length > 0) {
      this.changes.push(`${subject}: is left out, since none of its bundles is left`);
      return [];
    }
    this.changes.push(...changes.map((change) => `${subject}: ${change}`));
    const repaired = { ...channel, entries };
    this.#channels.set(channel.name, repaired);
    return [repaired];
  }

  /** The package, or none where no channel is left. */
  chooseDefault<T extends { name: string; defaultChannel: string }>(facts: T): T[] {
    const subject = `package ${quoteGo(this.#name)}`;
    if (this.#channels.size === 0) {
      // What its channels had to say is said with it.
      this.changes.splice(0, Infinity, `${subject}: is left out, since none of its bundles is left`);
      return [];
    }
    if (this.#channels.has(facts.defaultChannel)) return [facts];
    const defaultChannel = findHighestChannel([...this.#channels.values()], this.#versions);
    this.changes.push(`${subject}: its default channel is ${quoteGo(defaultChannel)} now`);
    return [{ ...facts, defaultChannel }];
  }

  /** Whether what is deprecated is still there. */
  has({ schema, name }: { schema: string; name: string }): boolean {
    if (schema === schemas.channel) return this.#channels.has(name);
    return schema !== schemas.bundle || !this.gone.has(name);
  }

  hasEntry(channel: string, bundle: string): boolean {
    return this.#channels.get(channel)?.entries.some((entry) => entry.name === bundle) === true;
  }

  summary({ packages, bundles }: CatalogFacts): SelectedPackage[] {
    const facts = packages.find((one) => one.name === this.#name);
    if (facts === undefined) return [];
    const { name, defaultChannel } = facts;
    const channels = summarizeChannels(this.#channels.values());
    return [
      { name, defaultChannel, channels, bundles: bundles.filter((one) => one.package === name).length },
    ];
  }
}
