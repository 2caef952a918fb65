import { quoteGo } from '../../document/go-json.js';
import { getObjects, getText, getValue } from '../../document/json-fields.js';
import type { JsonObject } from '../../document/json.js';
import { getName } from '../../kube/object.js';
import { type ClusterIndex, kinds } from './cluster-index.js';

/** A package of a catalog. */
export interface OfferedPackage {
  /** Empty if it has none. */
  defaultChannel: string;
  channels: ReadonlySet<string>;
  versions: ReadonlySet<string>;
}

/** Returns a package of a ClusterCatalog; undefined if the catalog is unknown or lacks it. */
export type FindOffer = (catalog: string, packageName: string) => OfferedPackage | undefined;

/** An installed package to look for. */
interface WantedPackage {
  packageName: string;
  version: string;
  /** Empty for any. */
  channel: string;
}

/**
 * Returns the ClusterCatalog that serves an installed package: available, serving, with its version and channel, of the
 * highest priority, the first by name of equal ones. Without one, `error` has the reason in the words of the migration
 * library.
 */
export function findClusterCatalog(
  cluster: ClusterIndex,
  wanted: WantedPackage,
  findOffer: FindOffer,
): { name: string } | { error: string } {
  const { packageName, version, channel } = wanted;
  const queried = cluster.list(kinds.clusterCatalog).filter(isServing);
  const candidates = queried.filter((catalog) => {
    const offer = findOffer(getName(catalog), packageName);
    return (
      offer !== undefined && offer.versions.has(version) && (channel === '' || offer.channels.has(channel))
    );
  });
  const [best] = candidates.sort((a, b) => getPriority(b) - getPriority(a));
  if (best !== undefined) return { name: getName(best) };
  const inChannel = channel === '' ? '' : ` in channel ${quoteGo(channel)}`;
  const names = queried.length === 0 ? '' : ` (queried: [${queried.map(getName).join(' ')}])`;
  const what = `package ${quoteGo(packageName)} at version ${quoteGo(version)}${inChannel}`;
  return { error: `${what} not found in any serving ClusterCatalog${names}` };
}

function isServing(catalog: JsonObject): boolean {
  if (getText(catalog, 'spec', 'availabilityMode') === 'Unavailable') return false;
  return getObjects(catalog, 'status', 'conditions').some(
    (condition) => condition['type'] === 'Serving' && condition['status'] === 'True',
  );
}

function getPriority(catalog: JsonObject): number {
  const priority = getValue(catalog, 'spec', 'priority');
  return typeof priority === 'number' ? priority : 0;
}
