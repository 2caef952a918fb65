import { getObject, getObjects, getText, getValue } from '../../document/json-fields.js';
import { isJsonObject, type JsonObject } from '../../document/json.js';
import { findSourceFault, notFoundMessage } from './checks.js';
import { getName, getNamespace } from '../../kube/object.js';
import { type ClusterIndex, kinds } from './cluster-index.js';
import { getInstalledVersion } from './properties.js';

/** What OLM v0 installed for a Subscription. */
export interface InstalledSubscription {
  subscription: JsonObject;
  csv: JsonObject;
  installPlan: JsonObject | undefined;
  packageName: string;
  version: string;
  /** Empty if the Subscription has none. */
  channel: string;
  /** Image of the bundle; empty if the InstallPlan does not name it. */
  image: string;
  /** Why its CatalogSource cannot become a ClusterCatalog. */
  sourceFault: string | undefined;
}

/** Returns what OLM v0 installed for a Subscription; `error` says in the words of the migration library what is missing. */
export function findInstalled(
  cluster: ClusterIndex,
  subscription: JsonObject,
): InstalledSubscription | { error: string } {
  const namespace = getNamespace(subscription);
  const name = getText(subscription, 'status', 'installedCSV');
  if (name === '') return { error: 'subscription has no installedCSV' };
  const csv = cluster.find(kinds.csv, name, namespace);
  if (csv === undefined) {
    return {
      error: `failed to get CSV ${name}: ${notFoundMessage('clusterserviceversions.operators.coreos.com', name)}`,
    };
  }
  const plan = planReference(subscription);
  const installPlan = plan && cluster.find(kinds.installPlan, plan.name, plan.namespace);
  if (plan !== undefined && installPlan === undefined) {
    const missing = notFoundMessage('installplans.operators.coreos.com', plan.name);
    return { error: `failed to get InstallPlan ${plan.name}: ${missing}` };
  }
  const lookup = getObjects(installPlan, 'status', 'bundleLookups').find(
    ({ identifier }) => identifier === getName(csv),
  );
  const source = getValue(lookup, 'catalogSourceRef') ?? {
    name: getText(subscription, 'spec', 'source'),
    namespace: getText(subscription, 'spec', 'sourceNamespace'),
  };
  return {
    subscription,
    csv,
    installPlan,
    packageName: getText(subscription, 'spec', 'name'),
    version: getInstalledVersion(csv),
    channel: getText(subscription, 'spec', 'channel'),
    image: getText(lookup, 'path'),
    sourceFault: findSourceFault(cluster, subscription, {
      name: getText(source, 'name'),
      namespace: getText(source, 'namespace'),
    }),
  };
}

function planReference(subscription: JsonObject): { name: string; namespace: string } | undefined {
  const reference = getValue(subscription, 'status', 'installPlanRef');
  const own = getNamespace(subscription);
  // The field `install` is the older form.
  const [name, namespace] = isJsonObject(reference)
    ? [getText(reference, 'name'), getText(reference, 'namespace') || own]
    : [getText(getObject(subscription, 'status', 'install'), 'name'), own];
  return name === '' ? undefined : { name, namespace };
}
