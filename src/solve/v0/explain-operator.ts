import { type Version, compareVersions, formatVersion } from '../../core/semver.js';
import { sortCandidates } from './channel-order.js';
import { explainConflict } from './explain-conflict.js';
import { findSurprises } from './findings.js';
import type { CsvState, NamespaceState, SubscriptionState } from './namespace-state.js';
import { type NamespacePrediction, predictionLimits } from './predict.js';
import { describeInstall, findRequirers } from './reasons.js';
import { findObstacles } from './resolve.js';
import { type ResolverCatalog, type ResolverEntry, existingCatalog } from './resolver-types.js';
import { isSameCatalogKey, listPackageEntries } from './sources.js';
import { bundleId, leadsFrom } from './variables.js';

/** Something that keeps an operator from an upgrade, or from being installed. */
interface Obstacle {
  code: string;
  /** Object or bundle that holds it back. */
  by: string;
  problem: string;
  /** Undefined if nothing but other content helps. */
  remedy: string | undefined;
}

/** An upgrade that OLM makes. */
interface ExplainedUpgrade {
  name: string;
  version: string;
  channel: string;
  reason: string;
}

/** Reason for the version of an operator in a namespace. */
export interface OperatorExplanation {
  namespace: string;
  package: string;
  /** Name of its Subscription; empty without one. */
  subscription: string;
  channel: string;
  /** `NAMESPACE/NAME`. */
  catalog: string;
  /** Installed version; empty before the installation. */
  installed: string;
  version: string;
  /**
   * `current`: nothing newer leads on; `upgrades`: OLM upgrades it; `held-back`: an upgrade waits or is excluded; `blocked`: OLM
   * resolves nothing in the namespace.
   */
  state: 'current' | 'upgrades' | 'held-back' | 'blocked';
  /** Reason for the installed version. */
  reason: string;
  /** Bundles that require it, each with its requirement. */
  requiredBy: { name: string; text: string }[];
  /** Upgrades, one after the other. */
  upgrades: ExplainedUpgrade[];
  heldBackBy: Obstacle[];
}

/** What is explained: a package, or one bundle of it. */
interface ExplainRequest {
  package: string;
  /** Bundle that is asked for; undefined for the newest. */
  bundle: string | undefined;
  /** Messages of OperatorConditions that say `Upgradeable=False`, by ClusterServiceVersion. */
  notUpgradeable: ReadonlyMap<string, string>;
}

/** Findings that hold operators back: all of a namespace, or one Subscription. */
const holding = ['operator-group', 'unreachable-catalog', 'pending-plan', 'upgrade-cycle', 'dead-end'];

/** Explains the version of a package in a namespace by its prediction. Throws LimitError. */
export function explainOperator(
  state: NamespaceState,
  catalogs: readonly ResolverCatalog[],
  prediction: NamespacePrediction,
  request: ExplainRequest,
): OperatorExplanation {
  const subscription = state.subscriptions.find((item) => item.package === request.package);
  const installed = findInstalled(state, subscription, request);
  const entries = subscription === undefined ? [] : listEntries(subscription, catalogs);
  const upgrades = listUpgrades(prediction, request.package);
  const context: ExplainContext = { state, catalogs, prediction, request, subscription, installed, entries };
  const failures = listFailures(context);
  const isBlocked = failures.length > 0;
  const heldBackBy = [
    ...failures,
    ...listFindings(context),
    ...(upgrades.length > 0 ? listWaits(context) : []),
    ...(isBlocked || subscription === undefined ? [] : listExclusions(context, subscription, upgrades)),
  ];
  // Another channel is a choice, not an obstacle.
  const isHeldBack = heldBackBy.some(({ code }) => code !== 'channel');
  return {
    namespace: state.namespace,
    package: request.package,
    subscription: subscription?.name ?? '',
    channel: subscription?.channel ?? '',
    catalog: subscription === undefined ? '' : `${subscription.sourceNamespace}/${subscription.source}`,
    installed: installed?.name ?? '',
    version: installed === undefined ? '' : formatVersion(installed.version),
    state: isBlocked ? 'blocked' : isHeldBack ? 'held-back' : upgrades.length > 0 ? 'upgrades' : 'current',
    reason: describeReason(context),
    requiredBy: listRequirers(context),
    upgrades,
    heldBackBy,
  };
}

interface ExplainContext {
  state: NamespaceState;
  catalogs: readonly ResolverCatalog[];
  prediction: NamespacePrediction;
  request: ExplainRequest;
  subscription: SubscriptionState | undefined;
  installed: CsvState | undefined;
  /** Entries of the package in the catalog of the Subscription, all channels. */
  entries: readonly ResolverEntry[];
}

function findInstalled(
  { csvs }: NamespaceState,
  subscription: SubscriptionState | undefined,
  { bundle }: ExplainRequest,
): CsvState | undefined {
  const name = subscription === undefined ? bundle : subscription.installedCsv;
  return csvs.find((csv) => csv.name === name && !csv.isCopied);
}

function listEntries(
  { source, sourceNamespace, package: packageName }: SubscriptionState,
  catalogs: readonly ResolverCatalog[],
): ResolverEntry[] {
  const key = { name: source, namespace: sourceNamespace };
  return catalogs
    .filter((catalog) => source === '' || isSameCatalogKey(catalog.key, key))
    .flatMap((catalog) => listPackageEntries(catalog, packageName));
}

function listUpgrades({ rounds }: NamespacePrediction, packageName: string): ExplainedUpgrade[] {
  return rounds.flatMap(({ before, resolution, plan }) => {
    if (plan === undefined || resolution.outcome !== 'resolved' || plan.approval === 'none') return [];
    const requirers = findRequirers(resolution.variables);
    return plan.installs
      .filter(({ entry }) => entry.package === packageName)
      .map((item) => ({
        name: item.entry.name,
        version: item.entry.versionText,
        channel: item.entry.channel,
        reason: describeInstall(before, item, requirers.get(bundleId(item.entry)) ?? []),
      }));
  });
}

function describeReason({ state, subscription, installed, entries }: ExplainContext): string {
  if (installed === undefined)
    return subscription === undefined
      ? 'no Subscription to it'
      : `Subscription ${subscription.name}, nothing installed`;
  if (subscription === undefined) return 'it has no Subscription: OLM never upgrades it';
  const { name, channel, startingCsv, isGenerated } = subscription;
  const place = `${isGenerated ? 'generated Subscription' : 'Subscription'} ${name}, ${channel === '' ? 'all channels' : `channel ${channel}`}`;
  const own = entries.filter((entry) => channel === '' || entry.channel === channel);
  const entry = own.find((candidate) => candidate.name === installed.name);
  if (entry === undefined) return `${place}: its catalog does not have the installed version`;
  const after = own.filter(
    (candidate) => leadsFrom(candidate, installed) && candidate.name !== installed.name,
  );
  if (after.length === 0) return `${place}: head of the channel`;
  const isStarting = startingCsv === installed.name && state.subscriptions.length > 0;
  return `${place}: ${isStarting ? 'startingCSV, ' : ''}${after.map((candidate) => candidate.name).join(', ')} can follow`;
}

function listRequirers({ prediction, state, installed }: ExplainContext): { name: string; text: string }[] {
  const first = prediction.rounds[0]?.resolution;
  if (installed === undefined || first?.outcome !== 'resolved') return [];
  const catalog = { name: existingCatalog, namespace: state.namespace };
  return findRequirers(first.variables).get(bundleId({ catalog, channel: '', name: installed.name })) ?? [];
}

/** Lists the constraints or the error that keep OLM from resolving the namespace. */
function listFailures({ state, catalogs, prediction }: ExplainContext): Obstacle[] {
  const last = prediction.rounds.at(-1)?.resolution;
  if (last === undefined || last.outcome === 'resolved') return [];
  const by = `namespace ${state.namespace}`;
  if (last.outcome === 'error') return [{ code: 'error', by, problem: last.message, remedy: undefined }];
  return explainConflict(last.conflict, catalogs).map(({ text, detail, remedy }) => ({
    code: 'conflict',
    by,
    problem: detail === undefined ? text : `${text}: ${detail}`,
    remedy,
  }));
}

function listFindings({ state, catalogs, prediction, subscription }: ExplainContext): Obstacle[] {
  const own = `Subscription ${state.namespace}/${subscription?.name ?? ''}`;
  return findSurprises(prediction, catalogs)
    .filter(
      ({ code, subject = '' }) => holding.includes(code) && (!subject.startsWith('Sub') || subject === own),
    )
    .map(({ code, subject = '', problem, hint }) => ({ code, by: subject, problem, remedy: hint }));
}

/** Lists what upgrades wait for: approvals, and the operator itself. */
function listWaits({ state, installed, request }: ExplainContext): Obstacle[] {
  const manual = state.subscriptions.filter(({ isManual }) => isManual);
  const waits = manual.slice(0, 1).map(({ name }) => ({
    code: 'manual-approval',
    by: `Subscription ${state.namespace}/${name}`,
    problem: 'installPlanApproval is Manual, which applies to all install plans of the namespace',
    remedy: 'approve the install plan',
  }));
  const condition = installed === undefined ? undefined : request.notUpgradeable.get(installed.name);
  if (condition === undefined) return waits;
  const by = `OperatorCondition ${state.namespace}/${installed?.name ?? ''}`;
  const remedy = 'wait for the operator, or set spec.overrides of its OperatorCondition';
  return [...waits, { code: 'operator-condition', by, problem: `Upgradeable=False: ${condition}`, remedy }];
}

/** Lists what excludes the newest bundle, or the one that is asked for, where the upgrades end. */
function listExclusions(
  { catalogs, prediction, request, entries, installed }: ExplainContext,
  subscription: SubscriptionState,
  upgrades: readonly ExplainedUpgrade[],
): Obstacle[] {
  const wanted = request.bundle === installed?.name ? undefined : request.bundle;
  if (wanted !== undefined && upgrades.some(({ name }) => name === wanted)) return [];
  const end = prediction.rounds.at(-1)?.before;
  const last = end?.subscriptions.find(({ name }) => name === subscription.name);
  const current = end?.csvs.find(({ name }) => name === last?.installedCsv);
  if (end === undefined || current === undefined) return [];
  const own = entries.filter(
    ({ channel }) => subscription.channel === '' || channel === subscription.channel,
  );
  const candidates = sortCandidates(own).filter(
    (entry) => leadsFrom(entry, current) && entry.name !== current.name,
  );
  const target = wanted === undefined ? candidates[0] : candidates.find(({ name }) => name === wanted);
  if (target !== undefined) {
    const lines = findObstacles(end, catalogs, predictionLimits, bundleId(target)) ?? [];
    return explainConflict(lines, catalogs).map(({ text, detail, remedy }) => ({
      code: 'constraint',
      by: `bundle ${target.name}`,
      problem: detail === undefined ? text : `${text}: ${detail}`,
      remedy,
    }));
  }
  return [
    ...(wanted === undefined ? [] : describeUnreached(wanted, current, own, entries)),
    ...findChannels(entries, own, current, wanted),
  ];
}

function describeUnreached(
  wanted: string,
  current: CsvState,
  own: readonly ResolverEntry[],
  entries: readonly ResolverEntry[],
): Obstacle[] {
  const by = `bundle ${wanted}`;
  const entry = own.find(({ name }) => name === wanted);
  if (entry === undefined) {
    const channels = entries.filter(({ name }) => name === wanted).map(({ channel }) => channel);
    const problem =
      channels.length === 0 ? 'not in the catalog of the Subscription' : `only in ${channels.join(', ')}`;
    return [{ code: 'no-channel', by, problem, remedy: undefined }];
  }
  const isOlder = entry.version !== undefined && compareVersions(entry.version, current.version) < 0;
  const problem = isOlder ? `below ${current.name}` : `no edge leads to it from ${current.name}`;
  const skipping = own.find(({ skips }) => skips.includes(wanted));
  return [
    {
      code: 'no-edge',
      by,
      problem: skipping === undefined ? problem : `skipped by ${skipping.name}`,
      remedy: undefined,
    },
  ];
}

/** Finds other channels that lead on to a newer bundle. */
function findChannels(
  entries: readonly ResolverEntry[],
  own: readonly ResolverEntry[],
  current: CsvState,
  wanted: string | undefined,
): Obstacle[] {
  const owned = new Set(own.map(({ channel }) => channel));
  const newer = entries.filter(
    (entry): entry is ResolverEntry & { version: Version } =>
      !owned.has(entry.channel) &&
      leadsFrom(entry, current) &&
      entry.version !== undefined &&
      compareVersions(entry.version, current.version) > 0 &&
      (wanted === undefined || entry.name === wanted),
  );
  // The newest of each channel; these entries alone need not be one line of replacements.
  const newest = new Map<string, ResolverEntry>();
  for (const entry of newer) {
    const known = newest.get(entry.channel);
    if (known === undefined || compareVersions(entry.version, known.version as Version) > 0)
      newest.set(entry.channel, entry);
  }
  return [...newest.values()].map(({ name, channel }) => ({
    code: 'channel',
    by: `channel ${channel}`,
    problem: `leads on from ${current.name} to ${name}`,
    remedy: `set spec.channel of the Subscription to ${channel}`,
  }));
}
