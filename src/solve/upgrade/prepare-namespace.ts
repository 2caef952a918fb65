import type { OpenShiftVersion } from '../../core/openshift-version.js';
import { type Course, followNamespace } from './follow-namespace.js';
import { listInstalledOperators } from './operator-namespaces.js';
import { note } from './operator-notes.js';
import { continuesIn, findGate, findWay } from './package-ways.js';
import type {
  ChannelSwitch,
  InstalledOperator,
  OperatorNamespace,
  UpgradeCatalog,
  UpgradeNote,
  UpgradePackage,
} from './upgrade-types.js';

/** Course of a namespace before or after an update of the cluster. */
export interface NamespacePhase extends Course {
  /** Channels to set, by Subscription. */
  channels: ReadonlyMap<string, ChannelSwitch>;
  /** Notes by Subscription, or by ClusterServiceVersion without one. */
  notes: ReadonlyMap<string, UpgradeNote[]>;
}

/** Returns the name by which an operator is known through its upgrades. */
export function getOperatorKey({
  subscription,
  csv,
}: Pick<InstalledOperator, 'subscription' | 'csv'>): string {
  return subscription === '' ? `csv/${csv}` : subscription;
}

interface PrepareRequest {
  here: UpgradeCatalog | undefined;
  there: UpgradeCatalog | undefined;
  from: OpenShiftVersion;
}

/**
 * Brings a namespace to where no operator blocks an update of the cluster, and the next catalogs lead on from each: with as
 * few install plans as possible, in other channels where needed.
 */
export function prepareNamespace(
  start: OperatorNamespace,
  { here, there, from }: PrepareRequest,
): NamespacePhase {
  const notes = new Map<string, UpgradeNote[]>();
  const channels = new Map<string, ChannelSwitch>();
  const isLeftBehind = (operator: Pick<InstalledOperator, 'package' | 'csv' | 'version'>): boolean => {
    const later = there?.packages.get(operator.package);
    return later !== undefined && ![...later.channels.values()].some((list) => continuesIn(list, operator));
  };
  const findProblem = (operator: InstalledOperator): string | undefined =>
    findGate(operator.maxOpenShift, from) ??
    (operator.subscription !== '' && isLeftBehind(operator)
      ? 'the next catalogs do not lead on from it'
      : undefined);
  const needy = listInstalledOperators(start).flatMap((operator) => {
    const problem = findProblem(operator);
    return problem === undefined ? [] : [{ operator, problem }];
  });
  for (const { operator, problem } of needy) {
    const way = findPreparation(operator, here?.packages.get(operator.package), from, isLeftBehind);
    if (way === undefined) continue;
    channels.set(operator.subscription, {
      phase: 'before',
      channel: way.channel,
      reason: `${operator.csv}: ${problem}`,
    });
    const list = [note('notice', 'upgrade-before', `${operator.csv}: ${problem}`)];
    if (way.channel !== operator.channel)
      list.push(note('warning', 'change-channel', `change the channel to ${way.channel} before the update`));
    notes.set(getOperatorKey(operator), list);
  }
  const suffices = (namespace: OperatorNamespace): boolean =>
    listInstalledOperators(namespace).every(
      (operator) => !channels.has(operator.subscription) || findProblem(operator) === undefined,
    );
  const course: Course =
    channels.size === 0 || here === undefined
      ? { end: start, installs: [], failure: undefined }
      : followNamespace(start, here, {
          phase: 'before',
          channels,
          setAside: listUnknown(start, here, channels),
          suffices,
        });
  const reached = new Map(
    listInstalledOperators(course.end).map((operator) => [getOperatorKey(operator), operator]),
  );
  for (const { operator } of needy) {
    const end = reached.get(getOperatorKey(operator)) ?? operator;
    if (findProblem(end) === undefined) continue;
    const why = describeObstacle(operator, end, here, course.failure);
    const gate = findGate(end.maxOpenShift, from);
    notes.set(getOperatorKey(operator), [
      gate === undefined
        ? note('warning', 'left-behind', `${end.csv}: the next catalogs do not lead on from it`)
        : note('error', 'max-openshift-version', `${end.csv}: ${gate}; ${why}`),
    ]);
  }
  return { ...course, channels, notes };
}

/** Finds the nearest bundle that neither blocks the update nor is left behind, and its channel. */
function findPreparation(
  operator: InstalledOperator,
  own: UpgradePackage | undefined,
  from: OpenShiftVersion,
  isLeftBehind: (operator: Pick<InstalledOperator, 'package' | 'csv' | 'version'>) => boolean,
): { channel: string } | undefined {
  if (own === undefined || operator.subscription === '') return undefined;
  return findWay(own, operator, ({ entry }) => {
    const next = { package: own.name, csv: entry.name, version: entry.version ?? operator.version };
    return findGate(entry.maxOpenShift, from) === undefined && !isLeftBehind(next);
  });
}

function describeObstacle(
  operator: InstalledOperator,
  end: InstalledOperator,
  here: UpgradeCatalog | undefined,
  failure: string | undefined,
): string {
  if (here?.packages.has(operator.package) !== true) return 'its package is in no catalog of the version';
  if (operator.subscription === '') return 'it has no Subscription that upgrades it';
  if (failure !== undefined) return `OLM does not upgrade its namespace: ${failure}`;
  return end.csv === operator.csv ? 'no reachable bundle allows it' : 'OLM upgrades no further';
}

/** Returns the Subscriptions whose package or channel catalogs do not have. */
export function listUnknown(
  { state }: OperatorNamespace,
  { packages }: UpgradeCatalog,
  channels: ReadonlyMap<string, ChannelSwitch>,
): Set<string> {
  const isUnknown = ({
    name,
    package: packageName,
    channel,
  }: (typeof state.subscriptions)[number]): boolean => {
    const served = packages.get(packageName);
    const wanted = channels.get(name)?.channel ?? channel;
    return served === undefined || (wanted !== '' && !served.channels.has(wanted));
  };
  return new Set(state.subscriptions.filter(isUnknown).map(({ name }) => name));
}
