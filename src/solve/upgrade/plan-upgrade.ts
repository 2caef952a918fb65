import {
  type OpenShiftVersion,
  compareOpenShift,
  formatOpenShift,
  stepOpenShift,
} from '../../core/openshift-version.js';
import { compareBytes } from '../../core/order.js';
import type { ResolverEntry } from '../v0/resolver-types.js';
import { continueNamespace } from './continue-namespace.js';
import { orderSteps } from './hop-steps.js';
import { listInstalledOperators } from './operator-namespaces.js';
import { findRemovedApis, findSupportEnd, note } from './operator-notes.js';
import { type NamespacePhase, getOperatorKey, prepareNamespace } from './prepare-namespace.js';
import type {
  ChannelPosition,
  HopRelease,
  InstalledOperator,
  OperatorHop,
  OperatorNamespace,
  UpgradeCatalog,
  UpgradeHop,
  UpgradeNote,
} from './upgrade-types.js';

/** Releases of one update, and what the update graph says about it. */
export interface HopReleases {
  releases: HopRelease[];
  notes: UpgradeNote[];
}

/** Request of `planUpgrade`. */
interface UpgradeRequest {
  namespaces: readonly OperatorNamespace[];
  from: OpenShiftVersion;
  to: OpenShiftVersion;
  /** Catalogs by OpenShift version; 4.23 and 5.0 are one. */
  catalogs: readonly UpgradeCatalog[];
  /** By the version that an update leads to; none without an update graph. */
  releases: ReadonlyMap<string, HopReleases>;
  /** `YYYY-MM-DD`, which support phases are compared with. */
  today: string;
}

/** Maximum number of updates of a cluster. */
const maxHops = 40;

/** Returns the versions that a cluster is updated to, one after the other. */
export function listHops(from: OpenShiftVersion, to: OpenShiftVersion): OpenShiftVersion[] {
  const versions: OpenShiftVersion[] = [];
  let next = stepOpenShift(from, to);
  while (next !== undefined && versions.length < maxHops) {
    versions.push(next);
    next = stepOpenShift(next, to);
  }
  return versions;
}

/**
 * Plans the updates of a cluster to a higher version of OpenShift: what each operator must be before and after each, and
 * what blocks. Plans on after a blocked update with the operators as they are.
 */
export function planUpgrade({
  namespaces,
  from,
  to,
  catalogs,
  releases,
  today,
}: UpgradeRequest): UpgradeHop[] {
  const hops: UpgradeHop[] = [];
  let state = namespaces;
  let current = from;
  for (const next of listHops(from, to)) {
    const known = releases.get(formatOpenShift(next));
    const hop = planHop(state, { from: current, to: next, catalogs, releases: known, today });
    hops.push(hop.plan);
    state = hop.state;
    current = next;
  }
  return hops;
}

interface HopContext {
  from: OpenShiftVersion;
  to: OpenShiftVersion;
  catalogs: readonly UpgradeCatalog[];
  releases: HopReleases | undefined;
  today: string;
}

/** The catalogs before and after an update. */
interface HopCatalogs {
  here: UpgradeCatalog | undefined;
  there: UpgradeCatalog | undefined;
}

function planHop(
  namespaces: readonly OperatorNamespace[],
  context: HopContext,
): { plan: UpgradeHop; state: OperatorNamespace[] } {
  const { from, to, releases } = context;
  const find = (version: OpenShiftVersion): UpgradeCatalog | undefined =>
    context.catalogs.find((catalog) => compareOpenShift(catalog.version, version) === 0);
  const catalogs: HopCatalogs = { here: find(from), there: find(to) };
  const notes = [...(releases?.notes ?? []), ...noteMissing(context, catalogs)];
  const results = namespaces.map((namespace) => planNamespace(namespace, catalogs, context));
  const operators = results.flatMap((result) => result.operators);
  operators.sort((a, b) => compareBytes(a.namespace, b.namespace) || compareBytes(a.package, b.package));
  notes.push(...results.flatMap((result) => result.notes));
  const plan: UpgradeHop = {
    from: formatOpenShift(from),
    to: formatOpenShift(to),
    releases: releases?.releases ?? [],
    isBlocked:
      operators.some(({ status }) => status === 'blocked') ||
      releases?.notes.some(({ severity }) => severity === 'error') === true,
    notes,
    operators,
    order: [],
  };
  return { plan: { ...plan, order: orderSteps(plan) }, state: results.map(({ end }) => end) };
}

function noteMissing({ from, to }: HopContext, { here, there }: HopCatalogs): UpgradeNote[] {
  const missing = [...(here === undefined ? [from] : []), ...(there === undefined ? [to] : [])];
  return missing.map((version) =>
    note('warning', 'no-catalog', `no catalog of ${formatOpenShift(version)} specified`),
  );
}

interface PlannedNamespace {
  operators: OperatorHop[];
  notes: UpgradeNote[];
  end: OperatorNamespace;
}

function planNamespace(
  start: OperatorNamespace,
  catalogs: HopCatalogs,
  context: HopContext,
): PlannedNamespace {
  const { here, there } = catalogs;
  const { namespace } = start.state;
  const before = prepareNamespace(start, { here, there, from: context.from });
  const stays: NamespacePhase = {
    end: before.end,
    installs: [],
    failure: undefined,
    channels: new Map(),
    notes: new Map(),
  };
  const after = there === undefined ? stays : continueNamespace(before.end, there, context.to);
  const notes = [before, after].flatMap(({ failure }) =>
    failure === undefined ? [] : [note('error', 'unsatisfiable', `namespace ${namespace}: ${failure}`)],
  );
  const byKey = (state: OperatorNamespace): Map<string, InstalledOperator> =>
    new Map(listInstalledOperators(state).map((operator) => [getOperatorKey(operator), operator]));
  const [installed, prepared, final] = [byKey(start), byKey(before.end), byKey(after.end)];
  const keys = new Set([...installed.keys(), ...prepared.keys(), ...final.keys()]);
  const operators = [...keys].map((key) => {
    const states = { installed: installed.get(key), prepared: prepared.get(key), final: final.get(key) };
    return planOperator(key, states, { before, after }, catalogs, context);
  });
  return { operators, notes, end: after.end };
}

/** An operator before everything, before the update, and after it. */
interface OperatorStates {
  installed: InstalledOperator | undefined;
  prepared: InstalledOperator | undefined;
  final: InstalledOperator | undefined;
}

function planOperator(
  key: string,
  { installed, prepared, final }: OperatorStates,
  { before, after }: Record<'before' | 'after', NamespacePhase>,
  { here, there }: HopCatalogs,
  { to, today }: HopContext,
): OperatorHop {
  const operator = (final ?? prepared ?? installed) as InstalledOperator;
  const { namespace, subscription, package: name } = operator;
  const [own, later] = [here?.packages.get(name), there?.packages.get(name)];
  const isOwn = (item: { bundle: string }, catalog: typeof own): boolean =>
    item.bundle === operator.csv || findEntry(catalog, item.bundle) !== undefined;
  const installs = [
    ...before.installs.filter((item) => isOwn(item, own)),
    ...after.installs.filter((item) => isOwn(item, later)),
  ];
  const notes = [...(before.notes.get(key) ?? []), ...(after.notes.get(key) ?? [])];
  const condition = installed?.notUpgradeable;
  if (condition !== undefined) {
    // OLM leaves the next version Pending until the installed one allows it.
    const severity = installs.length > 0 ? 'error' : 'warning';
    notes.push(note(severity, 'operator-condition', `OperatorCondition Upgradeable=False: ${condition}`));
  }
  if (prepared !== undefined) {
    const entry = findEntry(own, prepared.csv);
    if (entry !== undefined) notes.push(...findRemovedApis(entry, to, 'warning'));
    notes.push(...findSupportEnd(prepared, later, to, today));
  }
  for (const { phase, bundle } of installs) {
    const entry = phase === 'after' ? findEntry(later, bundle) : undefined;
    if (entry !== undefined) notes.push(...findRemovedApis(entry, to, 'error'));
  }
  const isBlocked = notes.some(({ severity }) => severity === 'error');
  const hasChange = installs.length > 0 || installed?.channel !== final?.channel;
  const isUnknown = subscription !== '' && there !== undefined && later === undefined;
  const status = isBlocked ? 'blocked' : hasChange ? 'change' : 'ready';
  return {
    namespace,
    subscription,
    package: name,
    status,
    reason: describeStatus(notes, installs),
    installed: installed && toPosition(installed, own?.catalog),
    before: prepared && toPosition(prepared, own?.catalog),
    steps: installs.filter(({ phase }) => phase === 'before').map(({ bundle }) => bundle),
    after:
      there === undefined || isUnknown || final === undefined ? undefined : toPosition(final, later?.catalog),
    channels: [before, after].flatMap(({ channels }) => {
      const change = channels.get(subscription);
      const former = change?.phase === 'before' ? installed : prepared;
      return change === undefined || change.channel === former?.channel ? [] : [change];
    }),
    installs,
    needsApproval: installs.length > 0 && isManualNamespace(after.end),
    notes,
  };
}

/** OLM makes one install plan for a namespace, which waits if any Subscription is Manual. */
function isManualNamespace({ state }: OperatorNamespace): boolean {
  return state.subscriptions.some(({ isManual }) => isManual);
}

/** Codes of notes that say why an operator is changed, or stays. */
const reasons = ['upgrade-before', 'change-channel', 'left-behind', 'no-package', 'no-channel'];

function describeStatus(notes: readonly UpgradeNote[], installs: OperatorHop['installs']): string {
  const [problem] = notes.filter(({ severity }) => severity === 'error');
  const reason = problem ?? notes.find(({ code }) => reasons.includes(code));
  return (
    reason?.text ??
    installs.at(-1)?.reason ??
    'neither blocks the update nor has a newer bundle in its channel'
  );
}

function findEntry(
  catalog: { channels: ReadonlyMap<string, readonly ResolverEntry[]> } | undefined,
  bundle: string,
) {
  for (const entries of catalog?.channels.values() ?? []) {
    const entry = entries.find(({ name }) => name === bundle);
    if (entry !== undefined) return entry;
  }
  return undefined;
}

function toPosition({ channel, csv, versionText }: InstalledOperator, catalog = ''): ChannelPosition {
  return { catalog, channel, bundle: csv, version: versionText };
}
