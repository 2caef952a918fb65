import { quoteGo } from '../../document/go-json.js';
import { compareBytes } from '../../core/order.js';
import { NameIndex } from '../../core/suggest.js';
import { dns1123LabelFaults } from '../../kube/names.js';
import type { CatalogSubject } from '../../model/catalog-diagnostic.js';
import { deprecationKey } from '../../model/deprecations.js';
import type {
  BundleFacts,
  CatalogFacts,
  ChannelFacts,
  DeprecationsFacts,
  PackageFacts,
} from '../../model/facts.js';
import { findBlobFaults } from './bundle-faults.js';
import { formatChannel } from './catalog-warnings.js';
import { CheckedPackage, type Steps } from './checked-package.js';
import { findReferenceFault } from './deprecation-faults.js';
import type { Findings } from './findings.js';

/**
 * Checks the references between the blobs of a catalog, and collects its packages for the checks of each. (Source:
 * ConvertToModel of operator-registry.)
 */
export class CatalogReferences {
  readonly #findings: Findings;
  readonly #packages = new Map<string, CheckedPackage>();
  readonly #unknownPackages = new Set<string>();
  /** Created on demand, when all packages are known. */
  #packageIndex: NameIndex | undefined;

  constructor(findings: Findings) {
    this.#findings = findings;
  }

  /** Returns the packages by name. */
  *check(facts: CatalogFacts): Steps<ReadonlyMap<string, CheckedPackage>> {
    for (const blob of facts.packages) {
      this.#addPackage(blob);
      yield;
    }
    for (const blob of facts.channels) {
      this.#addChannel(blob);
      yield;
    }
    for (const blob of facts.bundles) {
      this.#addBundle(blob);
      yield;
    }
    yield* this.#checkMissingBundles();
    for (const [index, blob] of facts.deprecations.entries()) this.#addDeprecations(blob, index);
    return this.#packages;
  }

  #addPackage(facts: PackageFacts): void {
    const { name, origin } = facts;
    const place: CatalogSubject = { package: name, origin, path: ['name'] };
    if (name === '') {
      this.#findings.fail('config contains package with no name', place, 'set the name of the package');
      return;
    }
    if (this.#packages.has(name)) {
      this.#findings.fail(`duplicate package ${quoteGo(name)}`, place, 'remove one of its olm.package blobs');
      return;
    }
    const reasons = dns1123LabelFaults(name);
    if (reasons.length > 0) {
      const hint = 'use at most 63 of a-z, 0-9 and "-", here and in every blob of the package';
      this.#findings.fail(`invalid package name ${quoteGo(name)}: [${reasons.join(' ')}]`, place, hint);
    }
    this.#packages.set(name, new CheckedPackage(facts));
  }

  #addChannel(channel: ChannelFacts): void {
    const { name, origin } = channel;
    const packageName = channel.package;
    const place: CatalogSubject = { package: packageName, channel: name, origin };
    const model = this.#packages.get(packageName);
    if (model === undefined) {
      const message = `unknown package ${quoteGo(packageName)} for channel ${quoteGo(name)}`;
      this.#failUnknownPackage(message, { ...place, path: ['package'] });
      return;
    }
    for (const entry of channel.entries) model.entryNames.add(entry.name);
    if (name === '') {
      model.hasUnnamedChannel = true;
      const message = `package ${quoteGo(packageName)} contains channel with no name`;
      this.#findings.fail(message, place, 'set the name of the channel', ['name']);
      return;
    }
    if (model.channels.has(name)) {
      const message = `package ${quoteGo(packageName)} has duplicate channel ${quoteGo(name)}`;
      this.#findings.fail(message, place, 'merge the entries of both blobs into one, or rename one', [
        'name',
      ]);
      return;
    }
    const seen = new Set<string>();
    for (const [index, entry] of channel.entries.entries()) {
      if (seen.has(entry.name)) {
        const subject = `invalid package ${quoteGo(packageName)}, channel ${quoteGo(name)}`;
        const path = ['entries', index, 'name'];
        this.#findings.fail(
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
  #failUnknownPackage(message: string, place: CatalogSubject, meant?: string): void {
    const name = place.package ?? '';
    if (this.#unknownPackages.has(name)) return;
    this.#unknownPackages.add(name);
    this.#packageIndex ??= new NameIndex(this.#packages.keys());
    const near = meant ?? this.#packageIndex.nearest(name);
    const add =
      name === '' ? 'say which package it belongs to' : `add an olm.package blob named ${quoteGo(name)}`;
    this.#findings.fail(message, place, near === undefined ? add : `use ${quoteGo(near)}, or ${add}`);
  }

  #addBundle(bundle: BundleFacts): void {
    const { name, origin } = bundle;
    const place: CatalogSubject = { package: bundle.package, bundle: name, origin };
    const model = this.#packages.get(bundle.package);
    if (model === undefined) {
      const meant = bundle.packageProperties[0]?.packageName ?? '';
      this.#packages.get(meant)?.misplaced.add(name);
      const message =
        bundle.package === ''
          ? `package name must be set for bundle ${quoteGo(name)}`
          : `unknown package ${quoteGo(bundle.package)} for bundle ${quoteGo(name)}`;
      const known = this.#packages.has(meant) ? meant : undefined;
      this.#failUnknownPackage(message, { ...place, path: ['package'] }, known);
    } else if (model.bundles.has(name)) {
      const message = `package ${quoteGo(bundle.package)} has duplicate bundle ${quoteGo(name)}`;
      this.#findings.fail(message, place, 'remove one of the blobs, or rename the bundle in one', ['name']);
      return;
    }
    model?.bundles.set(name, bundle);
    for (const { text, path, hint } of findBlobFaults(bundle, model !== undefined)) {
      this.#findings.fail(text, place, hint, path);
    }
    if (model === undefined || model.entryNames.has(name)) return;
    this.#findings.stop(unlistedMessage(bundle));
    model.unlisted.push(bundle);
  }

  /** Reports bundles without an entry; called when the entries without a bundle are known. */
  #reportUnlisted(model: CheckedPackage): void {
    if (model.unlisted.length === 0) return;
    const index = new NameIndex([...model.entryNames].filter((entry) => !model.bundles.has(entry)));
    for (const bundle of model.unlisted) {
      const { package: packageName, name, origin } = bundle;
      const near = index.nearest(name);
      let hint = 'add an entry for it to a channel, or remove the bundle';
      if (near !== undefined)
        hint = `use the same name for the bundle and for the entry ${quoteGo(near)}, which has no bundle`;
      if (name === '') hint = 'set the name of the bundle to that of its entries';
      this.#findings.report(
        unlistedMessage(bundle),
        { package: packageName, bundle: name, origin, path: ['name'] },
        hint,
      );
    }
  }

  /** Checks for entries without a bundle. `opm` checks only the last channel of each package. */
  *#checkMissingBundles(): Steps<void> {
    const names = [...this.#packages.keys()].sort(compareBytes);
    for (const name of names) {
      const model = this.#packages.get(name) as CheckedPackage;
      const last = (model.lastChannel?.entries ?? []).filter((entry) => !model.bundles.has(entry.name));
      if (last.length > 0) {
        const missing = [...new Set(last.map((entry) => entry.name))].sort(compareBytes).join(' ');
        this.#findings.stop(
          `no olm.bundle blobs found in package ${quoteGo(name)} for olm.channel entries [${missing}]`,
        );
      }
      this.#reportUnlisted(model);
      yield;
      yield* this.#reportMissingBundles(model);
    }
  }

  *#reportMissingBundles(model: CheckedPackage): Steps<void> {
    const packageName = model.facts.name;
    const reported = new Set<string>();
    for (const channel of model.channels.values()) {
      for (const [index, { name }] of channel.entries.entries()) {
        if (model.bundles.has(name) || model.misplaced.has(name) || reported.has(name)) continue;
        reported.add(name);
        const near = model.nearest('bundles', name);
        if (near !== undefined) model.misspelled.add(name);
        const message = `${formatChannel(channel)}: entry ${quoteGo(name)} has no olm.bundle blob`;
        const place = { package: packageName, channel: channel.name, bundle: name, origin: channel.origin };
        const hint =
          near === undefined
            ? 'add the bundle to the catalog, or remove the entry from every channel'
            : `use ${quoteGo(near)}, or add the bundle`;
        this.#findings.report(message, place, hint, ['entries', index, 'name']);
        yield;
      }
    }
  }

  #addDeprecations(blob: DeprecationsFacts, index: number): void {
    const packageName = blob.package;
    const quoted = quoteGo(packageName);
    const place: CatalogSubject = { package: packageName, origin: blob.origin, path: ['package'] };
    if (packageName === '') {
      const hint = 'set the package of the deprecations';
      this.#findings.fail(`package name must be set for deprecation item ${index}`, place, hint);
      return;
    }
    const model = this.#packages.get(packageName);
    if (model === undefined) {
      this.#failUnknownPackage(`cannot apply deprecations to an unknown package ${quoted}`, place);
      return;
    }
    if (model.isDeprecated) {
      const message = `expected a maximum of one deprecation per package: ${quoted}`;
      const hint = 'merge the entries of all olm.deprecations blobs of the package into one';
      this.#findings.fail(message, place, hint);
    }
    model.isDeprecated = true;
    this.#checkDeprecations(model, blob, place);
  }

  /** Checks the references and messages of deprecations. */
  #checkDeprecations(model: CheckedPackage, { entries }: DeprecationsFacts, place: CatalogSubject): void {
    const seen = new Set<string>();
    for (const [position, { reference, message }] of entries.entries()) {
      const fault = findReferenceFault(reference, position, model, seen);
      if (fault !== undefined) {
        this.#findings.fail(fault.text, place, fault.hint, ['entries', position, 'reference']);
        continue;
      }
      if (message !== '') continue;
      const { schema, name } = reference;
      model.emptyDeprecations.add(deprecationKey(schema, name));
      const of = `${schema}${name === '' ? '' : ` ${quoteGo(name)}`}`;
      const problem = `package ${quoteGo(model.facts.name)}: deprecation of ${of}: message must be set`;
      const hint = 'add a message that describes what users should do instead';
      this.#findings.report(problem, place, hint, ['entries', position, 'message']);
    }
  }
}

function unlistedMessage({ package: packageName, name }: BundleFacts): string {
  return `package ${quoteGo(packageName)}, bundle ${quoteGo(name)} not found in any channel entries`;
}
