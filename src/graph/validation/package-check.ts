import { pushTo } from '../../core/groups.js';
import { quoteGo } from '../../document/go-json.js';
import type { CatalogSubject } from '../../model/catalog-diagnostic.js';
import { type ChannelEntry, schemas } from '../../model/declarative-config.js';
import { deprecationKey } from '../../model/deprecations.js';
import type { ErrorTree } from '../../model/error-tree.js';
import type { ChannelFacts } from '../../model/facts.js';
import { describeDuplicateVersions, findDuplicateVersions, formatBundleVersion } from '../bundle-version.js';
import { type ChannelGraph, describeGraphFault, readGraph } from '../channel-graph.js';
import { adviseOnGraph } from '../graph-advice.js';
import type { SkipRanges } from '../skip-ranges.js';
import { emptyDeprecation, findEntryFaults, getValuePath } from './bundle-faults.js';
import {
  formatChannel,
  warnOfEqualVersions,
  warnOfSimilarNames,
  warnOfSkippedInChain,
} from './catalog-warnings.js';
import type { CheckedPackage, Steps } from './checked-package.js';
import type { Findings } from './findings.js';

const emptyChannel = 'channel must contain at least one bundle';

/** Checks one package with its channels and bundles. (Source: model.Validate of operator-registry.) */
export class PackageCheck {
  readonly #model: CheckedPackage;
  readonly #findings: Findings;
  readonly #ranges: SkipRanges;
  readonly #tree: ErrorTree;
  /** Faults of bundles, which several channels may have, as `text/name`. */
  readonly #reported = new Set<string>();

  constructor(model: CheckedPackage, findings: Findings, ranges: SkipRanges) {
    this.#model = model;
    this.#findings = findings;
    this.#ranges = ranges;
    this.#tree = { message: `invalid package ${quoteGo(model.facts.name)}`, children: [] };
  }

  /** Returns the errors of the package; no children if it is valid. */
  *run(): Steps<ErrorTree> {
    const { defaultChannel } = this.#model.facts;
    if (defaultChannel === '') this.#requireDefault();
    for (const channel of this.#model.channels.values()) {
      addBranch(this.#tree, yield* this.#checkChannel(channel));
    }
    if (defaultChannel !== '' && !this.#model.channels.has(defaultChannel)) this.#addMissingDefault();
    yield;
    yield* this.#checkVersions();
    if (this.#model.emptyDeprecations.has(deprecationKey(schemas.package)))
      addLeaf(this.#tree, emptyDeprecation);
    return this.#tree;
  }

  /** Reports an empty default channel. */
  #requireDefault(): void {
    const { channels, facts } = this.#model;
    const subject = `package ${quoteGo(facts.name)}`;
    const place = { package: facts.name, origin: facts.origin, path: ['defaultChannel'] };
    addLeaf(this.#tree, 'default channel must be set');
    const some = channels.keys().next().value;
    const example = some === undefined ? '' : `, such as ${quoteGo(some)}`;
    const hint = `set defaultChannel to one of its channels${example}`;
    this.#findings.report(`${subject}: default channel must be set`, place, hint);
    if (channels.size > 0) return;
    const problem = 'package must contain at least one channel';
    addLeaf(this.#tree, problem);
    this.#findings.report(`${subject}: ${problem}`, { ...place, path: undefined }, 'add an olm.channel blob');
  }

  /** `opm` creates an empty channel for a default channel without a blob, and reports it as empty. */
  #addMissingDefault(): void {
    const { channels, hasUnnamedChannel } = this.#model;
    const { name, defaultChannel, origin } = this.#model.facts;
    const branch: ErrorTree = { message: `invalid channel ${quoteGo(defaultChannel)}`, children: [] };
    addLeaf(branch, emptyChannel);
    this.#addEmptyDeprecation(branch, defaultChannel);
    this.#tree.children.push(branch);
    // The channel without a name, already reported, may be the default.
    if (hasUnnamedChannel) return;
    const near = this.#model.nearest('channels', defaultChannel);
    const known = [...channels.keys()]
      .filter((text) => text !== '')
      .slice(0, 10)
      .map(quoteGo)
      .join(', ');
    let hint = 'add an olm.channel blob of this name';
    if (known !== '') hint = `set defaultChannel to one of its channels: ${known}`;
    if (near !== undefined) hint = `set defaultChannel to ${quoteGo(near)}`;
    const channel = quoteGo(defaultChannel);
    const message = `package ${quoteGo(name)}: default channel ${channel} has no olm.channel blob`;
    this.#findings.report(message, { package: name, origin }, hint, ['defaultChannel']);
  }

  #addEmptyDeprecation(tree: ErrorTree, channel: string): void {
    if (this.#model.emptyDeprecations.has(deprecationKey(schemas.channel, channel)))
      addLeaf(tree, emptyDeprecation);
  }

  *#checkChannel(channel: ChannelFacts): Steps<ErrorTree> {
    const tree: ErrorTree = { message: `invalid channel ${quoteGo(channel.name)}`, children: [] };
    if (channel.entries.length === 0) {
      addLeaf(tree, emptyChannel);
      const message = `${formatChannel(channel)}: ${emptyChannel}`;
      this.#findings.report(message, placeOf(channel), 'add entries, or remove the channel', ['entries']);
    } else yield* this.#checkGraph(channel, tree);
    const seen = new Set<string>();
    for (const [index, entry] of channel.entries.entries()) {
      if (seen.has(entry.name)) continue;
      seen.add(entry.name);
      yield;
      this.#checkEntry(channel, entry, index, tree);
    }
    this.#addEmptyDeprecation(tree, channel.name);
    return tree;
  }

  *#checkGraph(channel: ChannelFacts, tree: ErrorTree): Steps<void> {
    const graph = readGraph(channel.entries);
    yield;
    const fault = describeGraphFault(graph);
    if (fault === undefined) this.#findings.warn(warnOfSkippedInChain(channel, graph));
    else {
      addLeaf(tree, fault);
      yield* this.#model.readVersions(graph.entries.keys());
      this.#reportGraphFault(channel, graph, fault);
    }
    yield;
    for (const similar of warnOfSimilarNames(channel, graph.entries)) {
      this.#findings.warn(similar);
      yield;
    }
  }

  #reportGraphFault(channel: ChannelFacts, graph: ChannelGraph, fault: string): void {
    const { entries } = channel;
    const misspelled = entries.find(({ name }) => this.#model.misspelled.has(name));
    const { hint, entry, field } =
      misspelled === undefined
        ? adviseOnGraph(graph, (a, b) => this.#model.compareBundles(a, b))
        : {
            hint: `fix the name of entry ${quoteGo(misspelled.name)} first`,
            entry: misspelled.name,
            field: undefined,
          };
    const index = entries.findIndex(({ name }) => name === entry);
    const path = entry === undefined ? ['entries'] : ['entries', index, field ?? 'name'];
    const place = { ...placeOf(channel), path, ...(entry !== undefined && { bundle: entry }) };
    this.#findings.report(`${formatChannel(channel)}: ${fault}`, place, hint);
  }

  #checkEntry(channel: ChannelFacts, entry: ChannelEntry, index: number, tree: ErrorTree): void {
    const { name } = entry;
    const { facts, bundles, emptyDeprecations } = this.#model;
    const bundle = bundles.get(name);
    const faults = findEntryFaults(entry, bundle, {
      packageName: facts.name,
      ranges: this.#ranges,
      hasEmptyDeprecation: emptyDeprecations.has(deprecationKey(schemas.bundle, name)),
    });
    if (faults.length === 0) return;
    const branch: ErrorTree = { message: `invalid bundle ${quoteGo(name)}`, children: [] };
    for (const { text, path, hint, in: blob, follows = false } of faults) {
      addLeaf(branch, text);
      if (follows) continue;
      if (blob === 'entry') {
        const place = { ...placeOf(channel), bundle: name, path: ['entries', index, ...path] };
        this.#findings.report(`${formatChannel(channel)} entry ${quoteGo(name)}: ${text}`, place, hint);
      } else if (!this.#reported.has(`${text}/${name}`)) {
        this.#reported.add(`${text}/${name}`);
        const message = `package ${quoteGo(facts.name)} bundle ${quoteGo(name)}: ${text}`;
        const place = { package: facts.name, bundle: name, origin: bundle?.origin, path };
        this.#findings.report(message, place, hint);
      }
    }
    tree.children.push(branch);
  }

  *#checkVersions(): Steps<void> {
    const { bundles, entryNames } = this.#model;
    const byVersion = new Map<string, string[]>();
    for (const name of entryNames) {
      const properties = bundles.get(name)?.packageProperties;
      if (properties === undefined) pushTo(byVersion, '0.0.0', name);
      else if (properties[0] !== undefined) pushTo(byVersion, formatBundleVersion(properties[0]), name);
      yield;
    }
    const hasVersion = (name: string): boolean => this.#model.bundleVersion(name) !== undefined;
    const groups = findDuplicateVersions(byVersion);
    if (groups.length > 0) addLeaf(this.#tree, describeDuplicateVersions(groups));
    for (const [version, names] of groups) {
      yield* this.#model.readVersions(names);
      const real = names.filter(hasVersion);
      if (real.length > 1) this.#reportVersion(version, real);
    }
    this.#findings.warn(warnOfEqualVersions(this.#model, byVersion, hasVersion));
  }

  #reportVersion(version: string, names: readonly string[]): void {
    const { name } = this.#model.facts;
    const last = this.#model.bundles.get(names.at(-1) as string);
    const message = `package ${quoteGo(name)}: duplicate version ${version} in bundles ${names.map(quoteGo).join(', ')}`;
    const path = getValuePath(last?.packageProperties[0]);
    const place = { package: name, bundle: last?.name ?? '', origin: last?.origin, path };
    this.#findings.report(message, place, 'use a unique version for each bundle');
  }
}

function placeOf({ package: packageName, name, origin }: ChannelFacts): CatalogSubject {
  return { package: packageName, channel: name, origin };
}

function addLeaf(tree: ErrorTree, message: string): void {
  tree.children.push({ message, children: [] });
}

/** Adds a branch that has errors. */
export function addBranch(tree: ErrorTree, branch: ErrorTree): void {
  if (branch.children.length > 0) tree.children.push(branch);
}
