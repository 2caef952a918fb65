import {
  type OpenShiftVersion,
  compareOpenShift,
  formatOpenShift,
  getKubernetesMinor,
  stepOpenShift,
} from '../../core/openshift-version.js';
import { compareBytes } from '../../core/order.js';
import { getText } from '../../document/json-fields.js';
import { removedApis } from '../../bundle/plain/object-warnings.js';
import type { ResolverEntry } from '../v0/resolver-types.js';
import { type Reached, continuesIn, findGate, followChannel, orderChannels } from './package-ways.js';
import type {
  ChannelPosition,
  InstalledOperator,
  OperatorHop,
  UpgradeCatalog,
  UpgradeHop,
  UpgradeNote,
  UpgradePackage,
} from './upgrade-types.js';

/** Request of `planUpgrade`. */
interface UpgradeRequest {
  operators: readonly InstalledOperator[];
  from: OpenShiftVersion;
  to: OpenShiftVersion;
  /** Catalogs by OpenShift version; 4.23 and 5.0 are one. */
  catalogs: readonly UpgradeCatalog[];
  /** `YYYY-MM-DD`, which support phases are compared with. */
  today: string;
}

/** Maximum number of updates of a cluster. */
const maxHops = 40;

/**
 * Plans the updates of a cluster to a higher version of OpenShift: what each operator must be before and after each, and
 * what blocks. Plans on after a blocked update with the operators as they are.
 */
export function planUpgrade({ operators, from, to, catalogs, today }: UpgradeRequest): UpgradeHop[] {
  const hops: UpgradeHop[] = [];
  let state = [...operators];
  let current = from;
  for (
    let next = stepOpenShift(current, to);
    next !== undefined && hops.length < maxHops;
    next = stepOpenShift(current, to)
  ) {
    const hop = planHop(state, { from: current, to: next, catalogs, today });
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
  today: string;
}

function planHop(
  operators: readonly InstalledOperator[],
  context: HopContext,
): { plan: UpgradeHop; state: InstalledOperator[] } {
  const { from, to, catalogs } = context;
  const find = (version: OpenShiftVersion): UpgradeCatalog | undefined =>
    catalogs.find((catalog) => compareOpenShift(catalog.version, version) === 0);
  const [here, there] = [find(from), find(to)];
  const notes: UpgradeNote[] = [];
  for (const [version, catalog] of [
    [from, here],
    [to, there],
  ] as const)
    if (catalog === undefined)
      notes.push(note('warning', 'no-catalog', `no catalog of ${formatOpenShift(version)} specified`));
  const results = operators.map((operator) => planOperator(operator, here, there, context));
  const plans = results.map(({ plan }) => plan);
  plans.sort((a, b) => compareBytes(a.namespace, b.namespace) || compareBytes(a.package, b.package));
  return {
    plan: {
      from: formatOpenShift(from),
      to: formatOpenShift(to),
      releases: [],
      isBlocked: plans.some(({ status }) => status === 'blocked'),
      notes,
      operators: plans,
    },
    state: results.map(({ after }) => after),
  };
}

function note(severity: UpgradeNote['severity'], code: string, text: string): UpgradeNote {
  return { severity, code, text };
}

function planOperator(
  operator: InstalledOperator,
  here: UpgradeCatalog | undefined,
  there: UpgradeCatalog | undefined,
  { from, to, today }: HopContext,
): { plan: OperatorHop; after: InstalledOperator } {
  const notes: UpgradeNote[] = [];
  const own = here?.packages.get(operator.package);
  const later = there?.packages.get(operator.package);
  const before = prepare(operator, { own, later, from, isKnownThere: there !== undefined }, notes);
  if (operator.notUpgradeable !== undefined)
    notes.push(
      note('error', 'operator-condition', `OperatorCondition Upgradeable=False: ${operator.notUpgradeable}`),
    );
  const prepared = before.operator;
  if (before.entry !== undefined) notes.push(...findRemovedApis(before.entry, to));
  const after = there === undefined ? undefined : continueIn(prepared, later, to, notes);
  notes.push(...findSupportEnd(prepared, later, to, today));
  const steps = before.steps;
  const isBlocked = notes.some(({ severity }) => severity === 'error');
  const final = after ?? prepared;
  const hasChange =
    steps.length > 0 || prepared.channel !== operator.channel || final.channel !== prepared.channel;
  return {
    plan: {
      namespace: operator.namespace,
      subscription: operator.subscription,
      package: operator.package,
      status: isBlocked ? 'blocked' : hasChange ? 'change' : 'ready',
      installed: toPosition(operator, own),
      before: toPosition(prepared, own),
      steps,
      after: after && toPosition(after, later),
      needsApproval: operator.isManual && (steps.length > 0 || final.csv !== prepared.csv),
      notes,
    },
    after: final,
  };
}

function toPosition(
  { channel, csv, versionText }: InstalledOperator,
  own: UpgradePackage | undefined,
): ChannelPosition {
  return { catalog: own?.catalog ?? '', channel, bundle: csv, version: versionText };
}

function moveTo(operator: InstalledOperator, entry: ResolverEntry, channel: string): InstalledOperator {
  return {
    ...operator,
    channel,
    csv: entry.name,
    version: entry.version ?? operator.version,
    versionText: entry.versionText,
    maxOpenShift: entry.maxOpenShift,
    notUpgradeable: undefined,
  };
}

interface Prepared {
  operator: InstalledOperator;
  steps: string[];
  /** Entry of what is installed then, if the catalog has it. */
  entry: ResolverEntry | undefined;
}

/** Finds what must be installed before the update: what neither blocks it nor is left behind by the next catalogs. */
function prepare(
  operator: InstalledOperator,
  {
    own,
    later,
    from,
    isKnownThere,
  }: {
    own: UpgradePackage | undefined;
    later: UpgradePackage | undefined;
    from: OpenShiftVersion;
    isKnownThere: boolean;
  },
  notes: UpgradeNote[],
): Prepared {
  const installed = [...(own?.channels.values() ?? [])].flat().find(({ name }) => name === operator.csv);
  const stay: Prepared = { operator, steps: [], entry: installed };
  const gate = findGate(operator.maxOpenShift, from);
  const isLeftBehind = (start: Pick<InstalledOperator, 'csv' | 'version'>): boolean =>
    isKnownThere &&
    later !== undefined &&
    ![...later.channels.values()].some((entries) => continuesIn(entries, start));
  if (gate === undefined && !isLeftBehind(operator)) return stay;
  if (own !== undefined) {
    const way = findWay(own, operator, ({ entry }) => {
      const start = { csv: entry.name, version: entry.version ?? operator.version };
      return findGate(entry.maxOpenShift, from) === undefined && !isLeftBehind(start);
    });
    if (way !== undefined) {
      const reason = gate === undefined ? 'the next catalogs do not lead on from it' : gate;
      notes.push(note('notice', 'upgrade-before', `${operator.csv}: ${reason}`));
      if (way.channel !== operator.channel)
        notes.push(
          note('warning', 'change-channel', `change the channel to ${way.channel} before the update`),
        );
      return {
        operator: moveTo(operator, way.reached.entry, way.channel),
        steps: way.reached.steps,
        entry: way.reached.entry,
      };
    }
  }
  if (gate !== undefined) {
    const why =
      own === undefined ? 'its package is in no catalog of the version' : 'no reachable bundle allows it';
    notes.push(note('error', 'max-openshift-version', `${operator.csv}: ${gate}; ${why}`));
  } else
    notes.push(note('warning', 'left-behind', `${operator.csv}: the next catalogs do not lead on from it`));
  return stay;
}

/** Finds the nearest bundle that fits, in the own channel first. */
function findWay(
  own: UpgradePackage,
  operator: InstalledOperator,
  fits: (reached: Reached) => boolean,
): { channel: string; reached: Reached } | undefined {
  for (const channel of orderChannels(own, operator.channel)) {
    const reached = followChannel(own.channels.get(channel) ?? [], operator).find(fits);
    if (reached !== undefined) return { channel, reached };
  }
  return undefined;
}

/** Returns where OLM takes an operator with the next catalogs; undefined if they do not have its package. */
function continueIn(
  operator: InstalledOperator,
  later: UpgradePackage | undefined,
  to: OpenShiftVersion,
  notes: UpgradeNote[],
): InstalledOperator | undefined {
  const version = formatOpenShift(to);
  if (operator.subscription === '') return operator;
  if (later === undefined) {
    notes.push(note('warning', 'no-package', `no catalog of ${version} has package ${operator.package}`));
    return undefined;
  }
  const isAny = operator.channel === '';
  const own = isAny ? [...later.channels.values()].flat() : later.channels.get(operator.channel);
  if (own !== undefined && continuesIn(own, operator)) {
    const last = followChannel(own, operator).at(-1);
    return last === undefined ? operator : moveTo(operator, last.entry, operator.channel);
  }
  const other = orderChannels(later, operator.channel).find((channel) =>
    continuesIn(later.channels.get(channel) ?? [], operator),
  );
  const problem =
    own === undefined
      ? `no channel ${operator.channel} in the catalogs of ${version}`
      : `channel ${operator.channel} of ${version} does not lead on from ${operator.csv}`;
  if (other === undefined) {
    notes.push(note('warning', 'no-channel', problem));
    return operator;
  }
  notes.push(note('warning', 'change-channel', `${problem}: change it to ${other} after the update`));
  const last = followChannel(later.channels.get(other) ?? [], operator).at(-1);
  return last === undefined ? { ...operator, channel: other } : moveTo(operator, last.entry, other);
}

/** Finds APIs in the objects of a bundle that the Kubernetes of the next version has no more. */
function findRemovedApis(entry: ResolverEntry, to: OpenShiftVersion): UpgradeNote[] {
  const minor = getKubernetesMinor(to);
  if (minor === undefined) return [];
  const found = new Set<string>();
  for (const object of entry.objects) {
    const [apiVersion, kind] = [getText(object, 'apiVersion'), getText(object, 'kind')];
    const removed = removedApis.find(
      ([removedVersion, kinds]) => removedVersion === apiVersion && kinds.split(' ').includes(kind),
    );
    if (removed !== undefined && Number(removed[2].split('.')[1]) <= minor)
      found.add(`${kind} of ${apiVersion}, removed in Kubernetes ${removed[2]}`);
  }
  return [...found].map((text) => note('error', 'removed-api', `${entry.name} contains ${text}`));
}

/** Finds an end of support in the lifecycle that the next catalogs give. */
function findSupportEnd(
  { versionText, csv }: InstalledOperator,
  later: UpgradePackage | undefined,
  to: OpenShiftVersion,
  today: string,
): UpgradeNote[] {
  const minor = versionText.split('.').slice(0, 2).join('.');
  const lifecycle = later?.lifecycle?.versions.find(({ name }) => name === minor);
  if (lifecycle === undefined) return [];
  const notes: UpgradeNote[] = [];
  const platform = lifecycle.platforms.find(({ name }) => /openshift/i.test(name));
  const target = formatOpenShift(to);
  if (platform !== undefined && !platform.versions.includes(target))
    notes.push(note('warning', 'unsupported-platform', `${csv} is not supported on OpenShift ${target}`));
  const end = lifecycle.phases
    .flatMap(({ endDate }) => endDate ?? [])
    .sort()
    .at(-1);
  if (end !== undefined && end < today)
    notes.push(note('warning', 'end-of-support', `support of ${minor} ended on ${end}`));
  return notes;
}
