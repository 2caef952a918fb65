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
export function prepareNamespace(start: OperatorNamespace, request: PrepareRequest): NamespacePhase {
  const preparation = new Preparation(request);
  const needy = preparation.findNeedy(start);
  preparation.chooseChannels(needy);
  const course = preparation.follow(start);
  preparation.noteObstacles(needy, course);
  return { ...course, channels: preparation.channels, notes: preparation.notes };
}

/** An operator that blocks the update, or that the next catalogs do not lead on from. */
interface NeedyOperator {
  operator: InstalledOperator;
  problem: string;
}

/** Channels and notes of a namespace before an update. */
class Preparation {
  readonly notes = new Map<string, UpgradeNote[]>();
  readonly channels = new Map<string, ChannelSwitch>();
  readonly #here: PrepareRequest['here'];
  readonly #there: PrepareRequest['there'];
  readonly #from: OpenShiftVersion;

  constructor({ here, there, from }: PrepareRequest) {
    this.#here = here;
    this.#there = there;
    this.#from = from;
  }

  findNeedy(start: OperatorNamespace): NeedyOperator[] {
    return listInstalledOperators(start).flatMap((operator) => {
      const problem = this.#findProblem(operator);
      return problem === undefined ? [] : [{ operator, problem }];
    });
  }

  /** Chooses the channel of each operator that a bundle helps. */
  chooseChannels(needy: readonly NeedyOperator[]): void {
    for (const { operator, problem } of needy) {
      const own = this.#here?.packages.get(operator.package);
      const way = findPreparation(operator, own, this.#from, (bundle) => this.#isLeftBehind(bundle));
      if (way === undefined) continue;
      const reason = `${operator.csv}: ${problem}`;
      this.channels.set(operator.subscription, { phase: 'before', channel: way.channel, reason });
      const list = [note('notice', 'upgrade-before', reason)];
      if (way.channel !== operator.channel)
        list.push(
          note('warning', 'change-channel', `change the channel to ${way.channel} before the update`),
        );
      this.notes.set(getOperatorKey(operator), list);
    }
  }

  /** Follows the namespace in the chosen channels until no operator has a problem. */
  follow(start: OperatorNamespace): Course {
    const { channels } = this;
    if (channels.size === 0 || this.#here === undefined)
      return { end: start, installs: [], failure: undefined };
    return followNamespace(start, this.#here, {
      phase: 'before',
      channels,
      setAside: listUnknown(start, this.#here, channels),
      suffices: (namespace) =>
        listInstalledOperators(namespace).every(
          (operator) => !channels.has(operator.subscription) || this.#findProblem(operator) === undefined,
        ),
    });
  }

  /** Notes why operators still have a problem at the end. */
  noteObstacles(needy: readonly NeedyOperator[], { end: last, failure }: Course): void {
    const reached = new Map(
      listInstalledOperators(last).map((operator) => [getOperatorKey(operator), operator]),
    );
    for (const { operator } of needy) {
      const end = reached.get(getOperatorKey(operator)) ?? operator;
      if (this.#findProblem(end) === undefined) continue;
      const why = describeObstacle(operator, end, this.#here, failure);
      const gate = findGate(end.maxOpenShift, this.#from);
      this.notes.set(getOperatorKey(operator), [
        gate === undefined
          ? note('warning', 'left-behind', `${end.csv}: the next catalogs do not lead on from it`)
          : note('error', 'max-openshift-version', `${end.csv}: ${gate}; ${why}`),
      ]);
    }
  }

  #isLeftBehind(operator: Pick<InstalledOperator, 'package' | 'csv' | 'version'>): boolean {
    const later = this.#there?.packages.get(operator.package);
    return later !== undefined && ![...later.channels.values()].some((list) => continuesIn(list, operator));
  }

  #findProblem(operator: InstalledOperator): string | undefined {
    const gate = findGate(operator.maxOpenShift, this.#from);
    if (gate !== undefined) return gate;
    return operator.subscription !== '' && this.#isLeftBehind(operator)
      ? 'the next catalogs do not lead on from it'
      : undefined;
  }
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
