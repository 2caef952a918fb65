import { mapConcurrent } from '../../core/concurrency.js';
import { groupBy } from '../../core/groups.js';
import {
  type OpenShiftVersion,
  compareOpenShift,
  parseOpenShiftVersion,
} from '../../core/openshift-version.js';
import { decodeMeta } from '../../catalog/blob.js';
import type { Meta } from '../../catalog/meta.js';
import { DiagnosticList } from '../../document/document.js';
import type { JsonObject } from '../../document/json.js';
import { getText, getValue } from '../../document/json-fields.js';
import { type Lifecycle, lifecycleSchema, readLifecycle } from '../../model/lifecycle.js';
import type { OperatorNamespace, UpgradeCatalog, UpgradePackage } from '../../solve/upgrade/upgrade-types.js';
import { CatalogEntries } from '../../solve/v0/catalog-entries.js';
import type { CatalogKey, ResolverCatalog } from '../../solve/v0/resolver-types.js';
import { isSameCatalogKey } from '../../solve/v0/sources.js';
import type { Session } from '../../source/session.js';
import { withCatalog } from '../open-catalog.js';
import { catalogsAtOnce } from './read-resolver-catalogs.js';

/** Operators and objects of the cluster that the catalogs serve. */
interface ClusterCatalogs {
  namespaces: readonly OperatorNamespace[];
  objects: readonly JsonObject[];
}

/** Namespace of catalogs that no CatalogSource of the snapshot is known to serve. */
const globalNamespace = 'openshift-marketplace';

/**
 * Reads the catalogs of each version of OpenShift as the resolver gets them; those of two names of one version together. Each
 * is served by the CatalogSource that Subscriptions to its packages name.
 */
export async function readUpgradeCatalogs(
  references: ReadonlyMap<string, readonly string[]>,
  cluster: ClusterCatalogs,
  session: Session,
): Promise<UpgradeCatalog[]> {
  const byVersion: { version: OpenShiftVersion; references: string[] }[] = [];
  for (const [text, list] of references) {
    const version = parseOpenShiftVersion(text);
    const known = byVersion.find((item) => compareOpenShift(item.version, version) === 0);
    if (known === undefined) byVersion.push({ version, references: [...list] });
    else known.references.push(...list);
  }
  const subscribed = new Set(
    cluster.namespaces.flatMap(({ state }) =>
      state.subscriptions.map((subscription) => subscription.package),
    ),
  );
  return mapConcurrent(byVersion, catalogsAtOnce, async ({ version, references: list }) => {
    const packages = new Map<string, UpgradePackage>();
    const catalogs: ResolverCatalog[] = [];
    for (const reference of list) {
      const { entries, lifecycles } = await readContent(reference, subscribed, session);
      const own = entries.listPackages().filter((name) => !packages.has(name));
      const key = findSource(new Set(own), reference, catalogs, cluster);
      const catalog = { key, priority: findPriority(key, cluster), entries: entries.list(key) };
      catalogs.push(catalog);
      const byPackage = groupBy(catalog.entries, (entry) => entry.package);
      for (const name of own)
        packages.set(name, {
          name,
          catalog: reference,
          source: key,
          defaultChannel: entries.getDefaultChannel(name) ?? '',
          channels: groupBy(byPackage.get(name) ?? [], ({ channel }) => channel),
          lifecycle: lifecycles.get(name),
        });
    }
    return { version, packages, catalogs };
  });
}

async function readContent(
  reference: string,
  subscribed: ReadonlySet<string>,
  session: Session,
): Promise<{ entries: CatalogEntries; lifecycles: Map<string, Lifecycle> }> {
  const entries = new CatalogEntries({ searched: subscribed });
  const lifecycles = new Map<string, Lifecycle>();
  await withCatalog(reference, session, async ({ catalog }) => {
    for await (const meta of catalog.metas({ signal: session.signal })) addMeta(meta, entries, lifecycles);
  });
  return { entries, lifecycles };
}

function addMeta(meta: Meta, entries: CatalogEntries, lifecycles: Map<string, Lifecycle>): void {
  if (meta.schema === lifecycleSchema) {
    const name = meta.package === '' ? meta.name : meta.package;
    lifecycles.set(name, readLifecycle(meta.value, new DiagnosticList()));
    return;
  }
  entries.add(decodeMeta(meta));
}

/** Returns the CatalogSource that all Subscriptions to some packages name, unless another catalog has it. */
function findSource(
  packages: ReadonlySet<string>,
  reference: string,
  catalogs: readonly ResolverCatalog[],
  { namespaces }: ClusterCatalogs,
): CatalogKey {
  const sources = new Map<string, CatalogKey>();
  for (const { state } of namespaces)
    for (const { package: name, source, sourceNamespace } of state.subscriptions)
      if (packages.has(name) && source !== '')
        sources.set(`${sourceNamespace}/${source}`, { name: source, namespace: sourceNamespace });
  const [only] = sources.values();
  const isTaken = catalogs.some(({ key }) => only !== undefined && isSameCatalogKey(key, only));
  if (only !== undefined && sources.size === 1 && !isTaken) return only;
  return { namespace: globalNamespace, name: reference };
}

function findPriority(key: CatalogKey, { objects }: ClusterCatalogs): number {
  const source = objects.find(
    (object) =>
      object['kind'] === 'CatalogSource' &&
      getText(object, 'metadata', 'name') === key.name &&
      getText(object, 'metadata', 'namespace') === key.namespace,
  );
  const priority = getValue(source, 'spec', 'priority');
  return typeof priority === 'number' ? priority : 0;
}
