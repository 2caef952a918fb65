import { mapConcurrent } from '../../core/concurrency.js';
import { type Diagnostic } from '../../core/diagnostic.js';
import { OpmateError } from '../../core/errors.js';
import {
  type OpenShiftVersion,
  compareOpenShift,
  formatOpenShift,
  parseOpenShiftVersion,
  stepOpenShift,
} from '../../core/openshift-version.js';
import { pushTo } from '../../core/groups.js';
import { DiagnosticList } from '../../document/document.js';
import type { JsonObject } from '../../document/json.js';
import { getObjects, getText } from '../../document/json-fields.js';
import { decodeMeta } from '../../catalog/blob.js';
import type { Meta } from '../../catalog/meta.js';
import { type ClusterSnapshot, readSnapshot } from '../../cluster/snapshot.js';
import type { ClusterText } from '../../cluster/snapshot-files.js';
import { type Lifecycle, lifecycleSchema, readLifecycle } from '../../model/lifecycle.js';
import { type UpgradeableCondition, checkUpgradeable } from '../../solve/openshift-gate.js';
import { listInstalledOperators } from '../../solve/upgrade/installed-operators.js';
import { planUpgrade } from '../../solve/upgrade/plan-upgrade.js';
import type {
  InstalledOperator,
  UpgradeCatalog,
  UpgradeHop,
  UpgradePackage,
} from '../../solve/upgrade/upgrade-types.js';
import { CatalogEntries } from '../../solve/v0/catalog-entries.js';
import type { ResolverEntry } from '../../solve/v0/resolver-types.js';
import type { Session } from '../../source/session.js';
import { catalogsAtOnce } from './read-resolver-catalogs.js';
import { withCatalog } from '../open-catalog.js';

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
  const operators = listInstalledOperators(objects);
  const catalogs = await readCatalogs(references, operators, session);
  return {
    release,
    to: formatOpenShift(to),
    condition: checkUpgradeable(objects, release),
    hops: planUpgrade({ operators, from, to, catalogs, today }),
    findings: [...findings],
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

async function readCatalogs(
  references: ReadonlyMap<string, readonly string[]>,
  operators: readonly InstalledOperator[],
  session: Session,
): Promise<UpgradeCatalog[]> {
  const names = new Set(operators.map((operator) => operator.package));
  const byVersion: { version: OpenShiftVersion; references: string[] }[] = [];
  for (const [text, list] of references) {
    const version = parseOpenShiftVersion(text);
    const known = byVersion.find((item) => compareOpenShift(item.version, version) === 0);
    if (known === undefined) byVersion.push({ version, references: [...list] });
    else known.references.push(...list);
  }
  return mapConcurrent(byVersion, catalogsAtOnce, async ({ version, references: list }) => {
    const packages = new Map<string, UpgradePackage>();
    for (const reference of list)
      for (const item of await readPackages(reference, names, session))
        if (!packages.has(item.name)) packages.set(item.name, item);
    return { version, packages };
  });
}

async function readPackages(
  reference: string,
  names: ReadonlySet<string>,
  session: Session,
): Promise<UpgradePackage[]> {
  const entries = new CatalogEntries({ packages: names, keepsObjects: true });
  const lifecycles = new Map<string, Lifecycle>();
  await withCatalog(reference, session, async ({ catalog }) => {
    for await (const meta of catalog.metas({ signal: session.signal }))
      addMeta(meta, names, entries, lifecycles);
  });
  const byPackage = new Map<string, ResolverEntry[]>();
  for (const entry of entries.list({ namespace: '', name: reference }))
    pushTo(byPackage, entry.package, entry);
  return [...byPackage].map(([name, list]) => {
    const channels = new Map<string, ResolverEntry[]>();
    for (const entry of list) pushTo(channels, entry.channel, entry);
    return {
      name,
      catalog: reference,
      defaultChannel: entries.getDefaultChannel(name) ?? '',
      channels,
      lifecycle: lifecycles.get(name),
    };
  });
}

function addMeta(
  meta: Meta,
  names: ReadonlySet<string>,
  entries: CatalogEntries,
  lifecycles: Map<string, Lifecycle>,
): void {
  const name = meta.package === '' ? meta.name : meta.package;
  if (!names.has(name)) return;
  if (meta.schema === lifecycleSchema) {
    lifecycles.set(name, readLifecycle(meta.value, new DiagnosticList()));
    return;
  }
  const decoded = decodeMeta(meta);
  if (decoded.kind === 'package') entries.addPackage(decoded.blob);
  else if (decoded.kind === 'channel') entries.addChannel(decoded.blob);
  else if (decoded.kind === 'bundle') entries.addBundle(decoded.blob);
}
