import { OpmateError } from '../../core/errors.js';
import { getOrAdd, groupBy, pushTo } from '../../core/groups.js';
import { sortedByBytes } from '../../core/order.js';
import { sortByChannels, sortCandidates } from './channel-order.js';
import type { NamespaceState, SubscriptionState } from './namespace-state.js';
import { type Predicate, readPredicate } from './predicates.js';
import { type CatalogKey, type ResolverEntry, existingCatalog } from './resolver-types.js';
import { getApiKey } from '../../model/csv.js';
import type { ResolverSources } from './sources.js';

/** A constraint of a variable; `text` is OLM's message. */
export type Constraint =
  | { kind: 'mandatory' | 'prohibited'; text: string }
  | { kind: 'dependency'; candidates: readonly string[]; text: string }
  | { kind: 'conflict'; other: string; text: string }
  | { kind: 'at-most-one'; members: readonly string[]; text: string };

/** What a solution contains or not: a bundle, a Subscription, or a rule. */
export interface Variable {
  id: string;
  constraints: Constraint[];
  /** Entry of a bundle. */
  entry?: ResolverEntry;
  /** Subscription that must be met. */
  subscription?: SubscriptionState;
  /** Installed version that a bundle replaces. */
  replaces?: string;
}

/** Choices that OLM makes at random. */
export interface RandomChoices {
  /** Rotates the channels of one bundle name in a Subscription without a channel. */
  channelRotation: number;
}

/** Several errors of a resolution, each of which fails the namespace. */
class ResolutionErrors {
  readonly messages: string[] = [];

  /** Runs work and keeps its error. */
  collect(work: () => void): void {
    try {
      work();
    } catch (error) {
      if (!(error instanceof OpmateError)) throw error;
      this.messages.push(error.message);
    }
  }

  /** Throws the errors as Go's aggregate prints them. */
  throwAny(): void {
    if (this.messages.length > 0) throw new OpmateError('INVALID', aggregate(this.messages));
  }
}

/** Joins messages like Go's aggregate of errors. */
export function aggregate(messages: readonly string[]): string {
  const unique = [...new Set(messages)];
  return unique.length === 1 ? (unique[0] as string) : `[${unique.join(', ')}]`;
}

/** Returns the identifier of a bundle in messages. */
export function bundleId({
  catalog,
  channel,
  name,
}: Pick<ResolverEntry, 'catalog' | 'channel' | 'name'>): string {
  return `${catalog.name}/${catalog.namespace}/${channel}/${name}`;
}

/**
 * Builds the variables and constraints of one resolution. Throws OpmateError INVALID with OLM's message for what fails
 * the whole namespace. (Source: OLM, resolver.go.)
 */
export class VariableBuilder {
  readonly variables = new Map<string, Variable>();
  readonly #visited = new Map<ResolverEntry, Variable>();
  readonly #sorted = new Map<string, readonly ResolverEntry[]>();
  readonly #sources: ResolverSources;
  readonly #state: NamespaceState;
  readonly #choices: RandomChoices;

  constructor(sources: ResolverSources, state: NamespaceState, choices: RandomChoices) {
    this.#sources = sources;
    this.#state = state;
    this.#choices = choices;
  }

  /** Adds the installed versions. */
  addExisting(): void {
    const key = { name: existingCatalog, namespace: this.#state.namespace };
    this.#addBundles(this.#sources.list(key));
  }

  /** Adds Subscriptions and returns the messages of those that fail the namespace. */
  addSubscriptions(): readonly string[] {
    const errors = new ResolutionErrors();
    for (const subscription of this.#state.subscriptions)
      errors.collect(() => {
        this.#addSubscription(subscription);
      });
    return errors.messages;
  }

  /** Adds the rules that only one bundle of a package and one provider of an API may be installed. */
  addRules(): void {
    const byApi = new Map<string, string[]>();
    const byPackage = new Map<string, string[]>();
    for (const { id, entry } of this.variables.values()) {
      if (entry === undefined) continue;
      const same = this.#sources.listNamed(entry.catalog, entry.name, entry.channel);
      if (same.length !== 1) continue;
      for (const api of entry.apis) pushTo(byApi, getApiKey(api), id);
      for (const { name } of entry.packages) pushTo(byPackage, name, id);
    }
    for (const [key, ids] of byApi) {
      const [group, version, kind] = JSON.parse(key) as [string, string, string];
      const api = `${kind} (${group}/${version})`;
      this.#addRule(api, ids, `there can be only one provider of ${api}`, `provide ${api}`);
    }
    for (const [name, ids] of byPackage)
      this.#addRule(
        name,
        ids,
        `there can be only one operator from package ${name}`,
        `originate from package ${name}`,
      );
  }

  #addRule(id: string, ids: readonly string[], mandatory: string, predicate: string): void {
    const members = sortedByBytes(ids);
    if (members.length < 2) return;
    const list = `${members.slice(0, -1).join(', ')} and ${members.at(-1)}`;
    this.variables.set(id, {
      id,
      constraints: [
        { kind: 'mandatory', text: mandatory },
        { kind: 'at-most-one', members, text: `${list} ${predicate}` },
      ],
    });
  }

  #addSubscription(subscription: SubscriptionState): void {
    const { name, namespace, source, sourceNamespace } = subscription;
    const catalog: CatalogKey = { name: source, namespace: sourceNamespace };
    const existing = { name: existingCatalog, namespace };
    const [current] = this.#sources.listNamed(existing, subscription.installedCsv);
    const entries = this.#listCandidates(subscription, catalog, current === undefined);
    if (typeof entries === 'string') {
      this.variables.set(`subscription:${name}`, {
        id: `subscription:${name}`,
        subscription,
        constraints: [
          { kind: 'mandatory', text: `subscription ${name} exists` },
          { kind: 'prohibited', text: entries },
        ],
      });
      return;
    }
    const candidates: Variable[] = [];
    const byName = groupBy(entries, (entry) => entry.name);
    for (const candidate of sortCandidates(entries)) {
      if (current !== undefined && !leadsFrom(candidate, current)) continue;
      const same = byName.get(candidate.name) ?? [];
      this.#addBundles(same);
      const { channelRotation } = this.#choices;
      const start = channelRotation % same.length;
      for (const entry of [...same.slice(start), ...same.slice(0, start)])
        candidates.push(this.variables.get(bundleId(entry)) as Variable);
    }
    const ids = candidates.map(({ id }) => id);
    if (current !== undefined) {
      const id = bundleId(current);
      for (const candidate of candidates) {
        candidate.replaces = current.name;
        const text = `${candidate.id} conflicts with ${id}`;
        candidate.constraints.push({ kind: 'conflict', other: id, text });
      }
      ids.push(id);
    }
    this.#requireOne(subscription, ids);
  }

  #requireOne(subscription: SubscriptionState, candidates: readonly string[]): void {
    const { name } = subscription;
    const id = `subscription:${name}`;
    const list =
      candidates.length === 1
        ? candidates[0]
        : `at least one of ${candidates.slice(0, -1).join(', ')} or ${candidates.at(-1)}`;
    const text =
      candidates.length === 0
        ? `no operators found matching the criteria of subscription ${name}`
        : `subscription ${name} requires ${list}`;
    this.variables.set(id, {
      id,
      subscription,
      constraints: [
        { kind: 'mandatory', text: `subscription ${name} exists` },
        { kind: 'dependency', candidates, text },
      ],
    });
  }

  /** Returns the entries that a Subscription selects, or the reason why there are none. */
  #listCandidates(
    subscription: SubscriptionState,
    catalog: CatalogKey,
    isNew: boolean,
  ): readonly ResolverEntry[] | string {
    const { name, package: packageName, channel, startingCsv } = subscription;
    const all = this.#sources.list(catalog);
    if (all.length === 0)
      return `no operators found from catalog ${catalog.name} in namespace ${catalog.namespace} referenced by subscription ${name}`;
    const ofPackage = this.#sources.listPackage(catalog, packageName);
    if (ofPackage.length === 0)
      return `no operators found in package ${packageName} in the catalog referenced by subscription ${name}`;
    const ofChannel = ofPackage.filter((entry) => channel === '' || entry.channel === channel);
    if (ofChannel.length === 0)
      return `no operators found in channel ${channel} of package ${packageName} in the catalog referenced by subscription ${name}`;
    if (!isNew || startingCsv === '') return ofChannel;
    const named = ofChannel.filter((entry) => entry.name === startingCsv);
    if (named.length > 0) return named;
    return `no operators found with name ${startingCsv} in channel ${channel} of package ${packageName} in the catalog referenced by subscription ${name}`;
  }

  /** Adds bundles with all that they may require. Throws OpmateError INVALID for invalid requirements among them. */
  #addBundles(entries: readonly ResolverEntry[]): void {
    const errors = new ResolutionErrors();
    const stack = [...entries];
    for (let entry = stack.pop(); entry !== undefined; entry = stack.pop()) {
      const known = this.#visited.get(entry);
      if (known !== undefined) {
        this.variables.set(known.id, known);
        continue;
      }
      const bundle = entry;
      errors.collect(() => {
        const variable = createBundleVariable(bundle);
        this.#visited.set(bundle, variable);
        const required = bundle.properties.flatMap((property) => {
          const predicate = readPredicate(property);
          return predicate === undefined ? [] : [{ predicate, key: JSON.stringify(property, bigintAsText) }];
        });
        for (const { predicate, key } of required)
          errors.collect(() => {
            const candidates = this.#listProviders(predicate, key, bundle);
            stack.push(...candidates);
            variable.constraints.push({
              kind: 'dependency',
              candidates: candidates.map(bundleId),
              text: `bundle ${bundle.name} requires an operator ${predicate.text}`,
            });
          });
        this.variables.set(variable.id, variable);
      });
    }
    errors.throwAny();
  }

  #listProviders(predicate: Predicate, key: string, { catalog }: ResolverEntry): readonly ResolverEntry[] {
    return getOrAdd(this.#sorted, `${catalog.namespace}/${catalog.name} ${key}`, () =>
      sortByChannels(this.#sources.listAround(predicate, catalog)).filter(predicate.test),
    );
  }
}

function bigintAsText(_key: string, value: unknown): unknown {
  return typeof value === 'bigint' ? String(value) : value;
}

/** Reports whether a candidate replaces, skips or range-skips the installed version. */
export function leadsFrom(
  { replaces, skips, skipRange }: ResolverEntry,
  current: Pick<ResolverEntry, 'name' | 'version'>,
): boolean {
  if (replaces === current.name || skips.includes(current.name)) return true;
  return current.version !== undefined && skipRange?.contains(current.version) === true;
}

function createBundleVariable(entry: ResolverEntry): Variable {
  const id = bundleId(entry);
  const constraints: Constraint[] = [];
  if (entry.catalog.name === existingCatalog && !entry.isSubscribed)
    constraints.push({
      kind: 'mandatory',
      text: `clusterserviceversion ${entry.name} exists and is not referenced by a subscription`,
    });
  if (entry.isDeprecated) constraints.push({ kind: 'prohibited', text: `bundle ${id} is deprecated` });
  return { id, constraints, entry };
}
