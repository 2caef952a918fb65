import { type CancelOptions, takeTurn } from '../core/concurrency.js';
import { throwIfCancelled } from '../core/errors.js';
import { quoteGo } from '../document/go-json.js';
import { pushTo } from '../core/groups.js';
import { compareBytes } from '../core/order.js';
import { type Version, compareVersions } from '../core/semver.js';
import { type ChannelEntry, schemas } from '../model/declarative-config.js';
import { type ErrorTree, errorLines, joinErrorLines } from '../model/error-tree.js';
import { type CompareBundles, adviseOnGraph } from './graph-advice.js';
import {
  describeDuplicateVersions,
  findDuplicateVersions,
  formatBundleVersion,
  readBundleVersion,
} from './bundle-version.js';
import type { PackageModel } from './package-model.js';
import type {
  BundleFacts,
  CatalogFacts,
  ChannelFacts,
  DeprecationsFacts,
  PackageFacts,
} from '../model/facts.js';
import { describeGraphFault, readGraph } from './channel-graph.js';
import { SkipRanges } from './skip-ranges.js';
import { dns1123LabelFaults } from '../kube/names.js';
import { emptyDeprecation, findBlobFaults, findEntryFaults, getValuePath } from './bundle-faults.js';
import {
  type CatalogWarning,
  formatChannel,
  warnOfEmptyCatalog,
  warnOfSimilarSchemas,
  warnOfEqualVersions,
  warnOfSimilarNames,
  warnOfSkippedInChain,
} from './catalog-warnings.js';
import { NameIndex } from '../core/suggest.js';
import type { CatalogDiagnostic, CatalogSubject } from '../model/catalog-diagnostic.js';

/** Result of validating a catalog. */
export interface ValidationReport {
  passed: boolean;
  /** Message of `opm validate`, possibly of several lines; undefined if valid. */
  message?: string;
  /** All problems, in order of package, channel, bundle. Empty only for a valid catalog. */
  problems: CatalogDiagnostic<'invalid'>[];
  /** In the same order. */
  warnings: CatalogWarning[];
}

/**
 * Validates a catalog as `opm validate` does, in two stages: references between blobs, which stop at the first error,
 * then each package, channel and bundle, as a tree of all errors. The verdict and `message` are `opm`'s; `problems`
 * has all errors of both stages once, without consequential ones. Where `opm` has a random order, blobs are in their
 * own order. Takes linear time for any graph. (Source: ConvertToModel and model.Validate of operator-registry.)
 */
export function validateCatalog(facts: CatalogFacts): ValidationReport {
  const steps = validateInSteps(facts);
  for (;;) {
    const { done, value } = steps.next();
    if (done === true) return value;
  }
}

/** Validates as `validateCatalog`, for servers: yields to the event loop between steps, even within a long channel. */
export async function validateInTurns(
  facts: CatalogFacts,
  { signal }: CancelOptions = {},
): Promise<ValidationReport> {
  throwIfCancelled(signal);
  const steps = validateInSteps(facts);
  for (;;) {
    const { done, value } = steps.next();
    if (done === true) return value;
    const turn = takeTurn();
    if (turn === undefined) continue;
    await turn;
    throwIfCancelled(signal);
  }
}

/** Work that can pause at each yield. */
type Steps<T> = Generator<void, T, void>;

/** A package with its validation state. */
interface CheckedPackage extends Omit<PackageModel, 'deprecations'> {
  /** Names in the entries of all channels, including duplicate channels. */
  entryNames: Set<string>;
  lastChannel: ChannelFacts | undefined;
  hasUnnamedChannel: boolean;
  /** Bundles whose blob names an unknown package instead of this one. */
  misplaced: Set<string>;
  /** Entries without a bundle that are probably misspelled. */
  misspelled: Set<string>;
  /** Bundles without an entry. */
  unlisted: BundleFacts[];
  deprecated: boolean;
  /** References with an empty message, by `schema/name`. */
  emptyDeprecations: Set<string>;
  /** Created on demand, when all blobs are known. */
  indexes: { bundles?: NameIndex; channels?: NameIndex };
  /** Parsed on demand, to compare bundles. */
  versions: Map<string, Version | undefined>;
}

function* validateInSteps(facts: CatalogFacts): Steps<ValidationReport> {
  const packages = new Map<string, CheckedPackage>();
  const problems: CatalogDiagnostic<'invalid'>[] = [];
  const warnings: CatalogWarning[] = [];
  const unknownPackages = new Set<string>();
  const ranges = new SkipRanges();
  let packageIndex: NameIndex | undefined;
  /** First error of the first stage, in the words of `opm`. */
  let fatal: string | undefined;

  for (const blob of facts.packages) {
    addPackage(blob);
    yield;
  }
  for (const blob of facts.channels) {
    addChannel(blob);
    yield;
  }
  for (const blob of facts.bundles) {
    addBundle(blob);
    yield;
  }
  yield* checkMissingBundles();
  for (const [index, blob] of facts.deprecations.entries()) addDeprecations(blob, index);
  const tree: ErrorTree = { message: 'invalid index', children: [] };
  for (const model of packages.values()) addBranch(tree, yield* checkPackage(model));
  warnings.push(...warnOfEmptyCatalog(facts), ...warnOfSimilarSchemas(facts));
  const message = fatal ?? (tree.children.length > 0 ? yield* renderInSteps(tree) : undefined);
  sortFindings(problems);
  yield;
  sortFindings(warnings);
  return { passed: message === undefined, ...(message !== undefined && { message }), problems, warnings };

  /** Reports an error of the first stage. */
  function fail(problem: string, place: CatalogSubject, hint: string, path = place.path): void {
    fatal ??= problem;
    report(problem, place, hint, path);
  }

  function report(problem: string, place: CatalogSubject, hint: string, path = place.path): void {
    problems.push({ severity: 'error', code: 'invalid', problem, ...place, path, hint });
  }

  // The first stage.

  function addPackage(facts: PackageFacts): void {
    const { name, origin } = facts;
    const place: CatalogSubject = { package: name, origin, path: ['name'] };
    if (name === '') {
      fail('config contains package with no name', place, 'set the name of the package');
      return;
    }
    if (packages.has(name)) {
      fail(`duplicate package ${quoteGo(name)}`, place, 'remove one of its olm.package blobs');
      return;
    }
    const reasons = dns1123LabelFaults(name);
    if (reasons.length > 0) {
      const hint = 'use at most 63 of a-z, 0-9 and "-", here and in every blob of the package';
      fail(`invalid package name ${quoteGo(name)}: [${reasons.join(' ')}]`, place, hint);
    }
    packages.set(name, {
      facts,
      channels: new Map(),
      bundles: new Map(),
      entryNames: new Set(),
      lastChannel: undefined,
      hasUnnamedChannel: false,
      misplaced: new Set(),
      misspelled: new Set(),
      unlisted: [],
      deprecated: false,
      emptyDeprecations: new Set(),
      indexes: {},
      versions: new Map(),
    });
  }

  function addChannel(channel: ChannelFacts): void {
    const { name, origin } = channel;
    const packageName = channel.package;
    const place: CatalogSubject = { package: packageName, channel: name, origin };
    const model = packages.get(packageName);
    if (model === undefined) {
      const message = `unknown package ${quoteGo(packageName)} for channel ${quoteGo(name)}`;
      failUnknownPackage(message, { ...place, path: ['package'] });
      return;
    }
    for (const entry of channel.entries) model.entryNames.add(entry.name);
    if (name === '') {
      model.hasUnnamedChannel = true;
      const message = `package ${quoteGo(packageName)} contains channel with no name`;
      fail(message, place, 'set the name of the channel', ['name']);
      return;
    }
    if (model.channels.has(name)) {
      const message = `package ${quoteGo(packageName)} has duplicate channel ${quoteGo(name)}`;
      fail(message, place, 'merge the entries of both blobs into one, or rename one', ['name']);
      return;
    }
    const seen = new Set<string>();
    for (const [index, entry] of channel.entries.entries()) {
      if (seen.has(entry.name)) {
        const subject = `invalid package ${quoteGo(packageName)}, channel ${quoteGo(name)}`;
        const path = ['entries', index, 'name'];
        fail(
          `${subject}: duplicate entry ${quoteGo(entry.name)}`,
          { ...place, bundle: entry.name, path },
          'merge what both entries replace and skip into one entry',
        );
      }
      seen.add(entry.name);
    }
    model.channels.set(name, channel);
    model.lastChannel = channel;
  }

  /** Reports an unknown package once, however many blobs refer to it. */
  function failUnknownPackage(message: string, place: CatalogSubject, meant?: string): void {
    const name = place.package ?? '';
    if (unknownPackages.has(name)) return;
    unknownPackages.add(name);
    packageIndex ??= new NameIndex(packages.keys());
    const near = meant ?? packageIndex.nearest(name);
    const add =
      name === '' ? 'say which package it belongs to' : `add an olm.package blob named ${quoteGo(name)}`;
    fail(message, place, near === undefined ? add : `use ${quoteGo(near)}, or ${add}`);
  }

  function addBundle(bundle: BundleFacts): void {
    const { name, origin } = bundle;
    const place: CatalogSubject = { package: bundle.package, bundle: name, origin };
    const model = packages.get(bundle.package);
    if (model === undefined) {
      const meant = bundle.packageProperties[0]?.packageName ?? '';
      packages.get(meant)?.misplaced.add(name);
      const message =
        bundle.package === ''
          ? `package name must be set for bundle ${quoteGo(name)}`
          : `unknown package ${quoteGo(bundle.package)} for bundle ${quoteGo(name)}`;
      const known = packages.has(meant) ? meant : undefined;
      failUnknownPackage(message, { ...place, path: ['package'] }, known);
    } else if (model.bundles.has(name)) {
      const message = `package ${quoteGo(bundle.package)} has duplicate bundle ${quoteGo(name)}`;
      fail(message, place, 'remove one of the blobs, or rename the bundle in one', ['name']);
      return;
    }
    model?.bundles.set(name, bundle);
    for (const { text, path, hint } of findBlobFaults(bundle, model !== undefined)) {
      fail(text, place, hint, path);
    }
    if (model === undefined || model.entryNames.has(name)) return;
    fatal ??= unlistedMessage(bundle);
    model.unlisted.push(bundle);
  }

  /** Reports bundles without an entry; called when the entries without a bundle are known. */
  function reportUnlisted(model: CheckedPackage): void {
    if (model.unlisted.length === 0) return;
    const index = new NameIndex([...model.entryNames].filter((entry) => !model.bundles.has(entry)));
    for (const bundle of model.unlisted) {
      const { package: packageName, name, origin } = bundle;
      const near = index.nearest(name);
      let hint = 'add an entry for it to a channel, or remove the bundle';
      if (near !== undefined)
        hint = `use the same name for the bundle and for the entry ${quoteGo(near)}, which has no bundle`;
      if (name === '') hint = 'set the name of the bundle to that of its entries';
      report(unlistedMessage(bundle), { package: packageName, bundle: name, origin, path: ['name'] }, hint);
    }
  }

  /** Checks for entries without a bundle. `opm` checks only the last channel of each package. */
  function* checkMissingBundles(): Steps<void> {
    const names = [...packages.keys()].sort(compareBytes);
    for (const name of names) {
      const model = packages.get(name) as CheckedPackage;
      const last = (model.lastChannel?.entries ?? []).filter((entry) => !model.bundles.has(entry.name));
      if (last.length > 0) {
        const missing = [...new Set(last.map((entry) => entry.name))].sort(compareBytes).join(' ');
        fatal ??= `no olm.bundle blobs found in package ${quoteGo(name)} for olm.channel entries [${missing}]`;
      }
      reportUnlisted(model);
      yield;
      yield* reportMissingBundles(model);
    }
  }

  /** Parses the versions of bundles before comparing all of them. */
  function* readVersions(model: CheckedPackage, names: Iterable<string>): Steps<void> {
    for (const name of names) {
      bundleVersion(model, name);
      yield;
    }
  }

  function* reportMissingBundles(model: CheckedPackage): Steps<void> {
    const packageName = model.facts.name;
    const reported = new Set<string>();
    for (const channel of model.channels.values()) {
      for (const [index, { name }] of channel.entries.entries()) {
        if (model.bundles.has(name) || model.misplaced.has(name) || reported.has(name)) continue;
        reported.add(name);
        const near = nearestIn(model, 'bundles', name);
        if (near !== undefined) model.misspelled.add(name);
        const message = `${formatChannel(channel)}: entry ${quoteGo(name)} has no olm.bundle blob`;
        const place = { package: packageName, channel: channel.name, bundle: name, origin: channel.origin };
        const hint =
          near === undefined
            ? 'add the bundle to the catalog, or remove the entry from every channel'
            : `use ${quoteGo(near)}, or add the bundle`;
        report(message, place, hint, ['entries', index, 'name']);
        yield;
      }
    }
  }

  function addDeprecations(blob: DeprecationsFacts, index: number): void {
    const { origin } = blob;
    const packageName = blob.package;
    const quoted = quoteGo(packageName);
    const place: CatalogSubject = { package: packageName, origin, path: ['package'] };
    if (packageName === '') {
      const hint = 'set the package of the deprecations';
      fail(`package name must be set for deprecation item ${index}`, place, hint);
      return;
    }
    const model = packages.get(packageName);
    if (model === undefined) {
      failUnknownPackage(`cannot apply deprecations to an unknown package ${quoted}`, place);
      return;
    }
    if (model.deprecated) {
      const message = `expected a maximum of one deprecation per package: ${quoted}`;
      fail(message, place, 'merge the entries of all olm.deprecations blobs of the package into one');
    }
    model.deprecated = true;
    const seen = new Set<string>();
    for (const [position, { reference, message }] of blob.entries.entries()) {
      const { schema, name } = reference;
      const path = ['entries', position, 'reference'];
      const refuse = (text: string, hint: string): unknown => fail(text, place, hint, path);
      const dump = `declcfg.PackageScopedReference{Schema:${quoteGo(schema)}, Name:${quoteGo(name)}}`;
      const key = `${schema}/${name}`;
      if (schema === '') {
        const hint = `set reference.schema to ${schemas.package}, ${schemas.channel} or ${schemas.bundle}`;
        refuse(`schema must be set for deprecation entry [${position}] for package ${quoted}`, hint);
        continue;
      }
      if (seen.has(key)) {
        refuse(
          `duplicate deprecation entry ${dump} for package ${quoted}`,
          'keep one entry for each reference',
        );
        continue;
      }
      seen.add(key);
      if (schema === schemas.bundle || schema === schemas.channel) {
        const kind = schema === schemas.bundle ? 'bundle' : 'channel';
        // A default channel without a blob counts as a channel here.
        if (
          !model[`${kind}s`].has(name) &&
          !(kind === 'channel' && name !== '' && name === model.facts.defaultChannel)
        ) {
          const near = nearestIn(model, `${kind}s`, name);
          const hint = near === undefined ? `set it to a ${kind} of the package` : `use ${quoteGo(near)}`;
          refuse(`cannot deprecate ${kind} ${quoteGo(name)} for package ${quoted}: ${kind} not found`, hint);
          continue;
        }
      } else if (schema === schemas.package) {
        if (name !== '') {
          const problem = `package name must be empty for deprecated package ${quoted} (specified ${quoteGo(name)})`;
          refuse(problem, 'remove reference.name');
          continue;
        }
      } else {
        const referrer = `referenced by entry ${position} for package ${quoted}`;
        const hint = `set reference.schema to ${schemas.package}, ${schemas.channel} or ${schemas.bundle}`;
        refuse(`cannot deprecate object ${dump} ${referrer}: object schema unknown`, hint);
        continue;
      }
      if (message !== '') continue;
      model.emptyDeprecations.add(key);
      const subject = `package ${quoted}: deprecation of ${schema}${name === '' ? '' : ` ${quoteGo(name)}`}`;
      const hint = 'add a message that describes what users should do instead';
      report(`${subject}: message must be set`, place, hint, ['entries', position, 'message']);
    }
  }

  // The second stage.

  function* checkPackage(model: CheckedPackage): Steps<ErrorTree> {
    const { name, defaultChannel, origin } = model.facts;
    const quoted = quoteGo(name);
    const tree: ErrorTree = { message: `invalid package ${quoted}`, children: [] };
    const place: CatalogSubject = { package: name, origin };
    const path = ['defaultChannel'];
    if (defaultChannel === '') {
      addLeaf(tree, 'default channel must be set');
      const some = model.channels.keys().next().value;
      const example = some === undefined ? '' : `, such as ${quoteGo(some)}`;
      const hint = `set defaultChannel to one of its channels${example}`;
      report(`package ${quoted}: default channel must be set`, place, hint, path);
      if (model.channels.size === 0) {
        addLeaf(tree, 'package must contain at least one channel');
        report(
          `package ${quoted}: package must contain at least one channel`,
          place,
          'add an olm.channel blob',
        );
      }
    }
    const reported = new Set<string>();
    for (const channel of model.channels.values())
      addBranch(tree, yield* checkChannel(model, channel, reported));
    if (defaultChannel !== '' && !model.channels.has(defaultChannel)) {
      addMissingDefault(model, tree, { ...place, path });
    }
    yield;
    yield* checkVersions(model, tree);
    if (model.emptyDeprecations.has(`${schemas.package}/`)) addLeaf(tree, emptyDeprecation);
    return tree;
  }

  /** `opm` creates an empty channel for a default channel without a blob, and reports it as empty. */
  function addMissingDefault(model: CheckedPackage, tree: ErrorTree, place: CatalogSubject): void {
    const { name, defaultChannel } = model.facts;
    const channel: ErrorTree = { message: `invalid channel ${quoteGo(defaultChannel)}`, children: [] };
    addLeaf(channel, emptyChannel);
    if (model.emptyDeprecations.has(`${schemas.channel}/${defaultChannel}`))
      addLeaf(channel, emptyDeprecation);
    tree.children.push(channel);
    // The channel without a name, already reported, may be the default.
    if (model.hasUnnamedChannel) return;
    const near = nearestIn(model, 'channels', defaultChannel);
    const known = [...model.channels.keys()]
      .filter((text) => text !== '')
      .slice(0, 10)
      .map(quoteGo)
      .join(', ');
    let hint = 'add an olm.channel blob of this name';
    if (known !== '') hint = `set defaultChannel to one of its channels: ${known}`;
    if (near !== undefined) hint = `set defaultChannel to ${quoteGo(near)}`;
    const channelName = quoteGo(defaultChannel);
    const message = `package ${quoteGo(name)}: default channel ${channelName} has no olm.channel blob`;
    report(message, place, hint);
  }

  function* checkChannel(
    model: CheckedPackage,
    channel: ChannelFacts,
    reported: Set<string>,
  ): Steps<ErrorTree> {
    const { origin, entries } = channel;
    const tree: ErrorTree = { message: `invalid channel ${quoteGo(channel.name)}`, children: [] };
    const place: CatalogSubject = { package: channel.package, channel: channel.name, origin };
    const subject = formatChannel(channel);
    if (entries.length === 0) {
      addLeaf(tree, emptyChannel);
      report(`${subject}: ${emptyChannel}`, place, 'add entries, or remove the channel', ['entries']);
    } else {
      const graph = readGraph(entries);
      yield;
      const fault = describeGraphFault(graph);
      const compare: CompareBundles = (a, b) => compareBundles(model, a, b);
      if (fault !== undefined) {
        addLeaf(tree, fault);
        yield* readVersions(model, graph.entries.keys());
        const misspelled = entries.find(({ name }) => model.misspelled.has(name));
        const { hint, entry, field } =
          misspelled === undefined
            ? adviseOnGraph(graph, compare)
            : {
                hint: `fix the name of entry ${quoteGo(misspelled.name)} first`,
                entry: misspelled.name,
                field: undefined,
              };
        const path =
          entry === undefined ? ['entries'] : ['entries', indexOfEntry(entries, entry), field ?? 'name'];
        report(
          `${subject}: ${fault}`,
          { ...place, path, ...(entry !== undefined && { bundle: entry }) },
          hint,
        );
      } else warnings.push(...warnOfSkippedInChain(channel, graph));
      yield;
      for (const similar of warnOfSimilarNames(channel, graph.entries)) {
        warnings.push(...similar);
        yield;
      }
    }
    const seen = new Set<string>();
    for (const [index, entry] of entries.entries()) {
      if (seen.has(entry.name)) continue;
      seen.add(entry.name);
      yield;
      const { name } = entry;
      const { package: packageName } = channel;
      const bundle = model.bundles.get(name);
      const faults = findEntryFaults(entry, bundle, {
        packageName: model.facts.name,
        ranges: ranges,
        hasEmptyDeprecation: model.emptyDeprecations.has(`${schemas.bundle}/${name}`),
      });
      if (faults.length === 0) continue;
      const branch: ErrorTree = { message: `invalid bundle ${quoteGo(name)}`, children: [] };
      for (const { text, path, hint, in: blob, follows = false } of faults) {
        addLeaf(branch, text);
        if (follows) continue;
        if (blob === 'entry') {
          const entryPlace = { ...place, bundle: name, path: ['entries', index, ...path] };
          report(`${subject} entry ${quoteGo(name)}: ${text}`, entryPlace, hint);
        } else if (!reported.has(`${text}/${name}`)) {
          reported.add(`${text}/${name}`);
          const message = `package ${quoteGo(packageName)} bundle ${quoteGo(name)}: ${text}`;
          report(message, { package: packageName, bundle: name, origin: bundle?.origin, path }, hint);
        }
      }
      tree.children.push(branch);
    }
    if (model.emptyDeprecations.has(`${schemas.channel}/${channel.name}`)) addLeaf(tree, emptyDeprecation);
    return tree;
  }

  function* checkVersions(model: CheckedPackage, tree: ErrorTree): Steps<void> {
    const byVersion = new Map<string, string[]>();
    for (const name of model.entryNames) {
      const properties = model.bundles.get(name)?.packageProperties;
      if (properties === undefined) pushTo(byVersion, '0.0.0', name);
      else if (properties[0] !== undefined) pushTo(byVersion, formatBundleVersion(properties[0]), name);
      yield;
    }
    const groups = findDuplicateVersions(byVersion);
    if (groups.length > 0) addLeaf(tree, describeDuplicateVersions(groups));
    for (const [version, names] of groups) {
      yield* readVersions(model, names);
      const real = names.filter((name) => bundleVersion(model, name) !== undefined);
      if (real.length > 1) reportVersion(model, version, real);
    }
    const hasVersion = (name: string): boolean => bundleVersion(model, name) !== undefined;
    warnings.push(...warnOfEqualVersions(model, byVersion, hasVersion));
  }

  function reportVersion(model: CheckedPackage, version: string, names: string[]): void {
    const last = model.bundles.get(names[names.length - 1] as string);
    const subject = `package ${quoteGo(model.facts.name)}`;
    report(
      `${subject}: duplicate version ${version} in bundles ${names.map(quoteGo).join(', ')}`,
      {
        package: model.facts.name,
        bundle: last?.name ?? '',
        origin: last?.origin,
        path: getValuePath(last?.packageProperties[0]),
      },
      'use a unique version for each bundle',
    );
  }

  function compareBundles(model: CheckedPackage, a: string, b: string): number | undefined {
    const [x, y] = [bundleVersion(model, a), bundleVersion(model, b)];
    return x === undefined || y === undefined ? undefined : compareVersions(x, y);
  }

  function bundleVersion(model: CheckedPackage, name: string): Version | undefined {
    if (!model.versions.has(name)) model.versions.set(name, readBundleVersion(model.bundles.get(name)));
    return model.versions.get(name);
  }
}

const emptyChannel = 'channel must contain at least one bundle';

function* renderInSteps(tree: ErrorTree): Steps<string> {
  const lines: string[] = [];
  for (const line of errorLines(tree)) {
    lines.push(line);
    yield;
  }
  return joinErrorLines(lines);
}

function addLeaf(tree: ErrorTree, message: string): void {
  tree.children.push({ message, children: [] });
}

function addBranch(tree: ErrorTree, branch: ErrorTree): void {
  if (branch.children.length > 0) tree.children.push(branch);
}

function nearestIn(model: CheckedPackage, kind: 'bundles' | 'channels', name: string): string | undefined {
  return (model.indexes[kind] ??= new NameIndex(model[kind].keys())).nearest(name);
}

function indexOfEntry(entries: readonly ChannelEntry[], name: string): number {
  return entries.findIndex((entry) => entry.name === name);
}

function unlistedMessage({ package: packageName, name }: BundleFacts): string {
  return `package ${quoteGo(packageName)}, bundle ${quoteGo(name)} not found in any channel entries`;
}

/** Sorts by package; within it problems of the package, its channels and its bundles, each in order of detection. */
function sortFindings(findings: CatalogDiagnostic[]): void {
  const rank = ({ channel, bundle }: CatalogDiagnostic): number =>
    channel !== undefined ? 1 : bundle !== undefined ? 2 : 0;
  findings.sort((a, b) => compareBytes(a.package ?? '', b.package ?? '') || rank(a) - rank(b));
}
