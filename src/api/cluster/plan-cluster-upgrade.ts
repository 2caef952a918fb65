import { type Diagnostic, createWarning } from '../../core/diagnostic.js';
import { OpmateError } from '../../core/errors.js';
import { formatOpenShift, parseOpenShiftVersion, stepOpenShift } from '../../core/openshift-version.js';
import type { JsonObject } from '../../document/json.js';
import { getObjects, getText } from '../../document/json-fields.js';
import { type ClusterSnapshot, readSnapshot } from '../../cluster/snapshot.js';
import type { ClusterText } from '../../cluster/snapshot-files.js';
import { type UpgradeableCondition, checkUpgradeable } from '../../solve/openshift-gate.js';
import { assumedGroup, readOperatorNamespaces } from '../../solve/upgrade/operator-namespaces.js';
import { note } from '../../solve/upgrade/operator-notes.js';
import { type HopReleases, listHops, planUpgrade } from '../../solve/upgrade/plan-upgrade.js';
import type { OperatorNamespace, UpgradeHop } from '../../solve/upgrade/upgrade-types.js';
import type { Session } from '../../source/session.js';
import { type UpdateGraphRequest, readReleasePath } from './read-release-path.js';
import { readUpgradeCatalogs } from './read-upgrade-catalogs.js';

/** Request of `planClusterUpgrade`. */
export interface PlanClusterUpgradeRequest {
  /** Files, directories and texts of objects, or a snapshot. */
  snapshot: readonly (string | ClusterText)[] | ClusterSnapshot;
  /** Version of OpenShift, such as `5.0`. */
  to: string;
  /** Release of the cluster; default that of its ClusterVersion. */
  from?: string;
  /** References of catalogs by OpenShift version, such as `4.19`. */
  catalogs: ReadonlyMap<string, readonly string[]>;
  /** Update graph that the releases of the path come from; default none. */
  updateGraph?: UpdateGraphRequest | undefined;
  /** `YYYY-MM-DD`, which support phases are compared with. */
  today: string;
}

/** Plan for updates of a cluster. */
export interface ClusterUpgradePlan {
  /** Release of the cluster. */
  release: string;
  to: string;
  /** Condition `Upgradeable` that OLM reports now. */
  condition: UpgradeableCondition;
  hops: UpgradeHop[];
  /** Faults of the snapshot. */
  findings: Diagnostic[];
}

/**
 * Plans the updates of an OpenShift cluster, one minor version after the other: operators that block each, the channel
 * and version of each operator before and after, ends of support, removed APIs. Throws OpmateError: NOT_FOUND without a
 * release in the snapshot, INVALID if the target is not above it.
 */
export async function planClusterUpgrade(
  request: PlanClusterUpgradeRequest,
  session: Session,
): Promise<ClusterUpgradePlan> {
  const { snapshot, catalogs: references, today } = request;
  const { objects, findings } = 'objects' in snapshot ? snapshot : await readSnapshot(snapshot, session);
  const release = request.from ?? findRelease(objects);
  const [from, to] = [parseOpenShiftVersion(release), parseOpenShiftVersion(request.to)];
  if (stepOpenShift(from, to) === undefined)
    throw new OpmateError('INVALID', `no update leads from ${release} to ${request.to}`, {
      hint: `specify a version above ${formatOpenShift(from)}`,
    });
  const namespaces = readOperatorNamespaces(objects);
  const catalogs = await readUpgradeCatalogs(references, { namespaces, objects }, session);
  const route = {
    release,
    to: { version: to, release: /^\d+\.\d+\.\d/.test(request.to) ? request.to : undefined },
    hops: listHops(from, to),
  };
  const graph = request.updateGraph;
  const releases =
    graph === undefined
      ? new Map<string, HopReleases>()
      : await readReleasePath(graph, route, objects, session);
  const hops = planUpgrade({ namespaces, from, to, catalogs, releases, today });
  noteClusterOperators(objects, hops);
  return {
    release,
    to: formatOpenShift(to),
    condition: checkUpgradeable(objects, release),
    hops,
    findings: [...findings, ...findAssumptions(namespaces)],
  };
}

function findRelease(objects: readonly JsonObject[]): string {
  const version = objects.find((object) => object['kind'] === 'ClusterVersion');
  const history = getObjects(version, 'status', 'history').find(
    (item) => getText(item, 'state') === 'Completed',
  );
  const release = getText(history, 'version') || getText(version, 'status', 'desired', 'version');
  if (release !== '') return release;
  throw new OpmateError('NOT_FOUND', 'no release of OpenShift in the snapshot', {
    hint: 'include the ClusterVersion, or specify the release',
  });
}

/** Notes ClusterOperators that stop minor updates now; OLM's own is that of operators. */
function noteClusterOperators(objects: readonly JsonObject[], [first]: readonly UpgradeHop[]): void {
  if (first === undefined) return;
  for (const object of objects) {
    const name = getText(object, 'metadata', 'name');
    if (object['kind'] !== 'ClusterOperator' || name === 'operator-lifecycle-manager') continue;
    const condition = getObjects(object, 'status', 'conditions').find(
      ({ type, status }) => type === 'Upgradeable' && status === 'False',
    );
    if (condition === undefined) continue;
    const message = getText(condition, 'message') || getText(condition, 'reason');
    first.notes.push(
      note('error', 'cluster-operator', `ClusterOperator ${name} Upgradeable=False: ${message}`),
    );
    first.isBlocked = true;
  }
}

function findAssumptions(namespaces: readonly OperatorNamespace[]): Diagnostic[] {
  return namespaces
    .filter(({ state }) => state.subscriptions.length > 0 && state.operatorGroups[0] === assumedGroup)
    .map(({ state: { namespace } }) =>
      createWarning('operator-group', 'no OperatorGroup in the snapshot: planned as if it had one', {
        subject: `namespace ${namespace}`,
      }),
    );
}
