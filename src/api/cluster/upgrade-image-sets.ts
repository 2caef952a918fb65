import { getOrAdd } from '../../core/groups.js';
import type { JsonObject } from '../../document/json.js';
import { encodeYaml } from '../../document/yaml.js';
import { readImageSetConfiguration } from '../../mirror/image-set/image-set-config.js';
import type { ChannelPosition, UpgradeHop } from '../../solve/upgrade/upgrade-types.js';
import type { ClusterUpgradePlan } from './plan-cluster-upgrade.js';

/** An image set with the bundles that one update needs. */
export interface UpgradeImageSet {
  /** Version of OpenShift that the update leads to. */
  version: string;
  /** An `ImageSetConfiguration` as YAML. */
  configuration: string;
}

interface Channel {
  name: string;
  minVersion: string;
  maxVersion: string;
}

/**
 * Returns an image set per update of a plan, with the bundles that operators need before and after it. Updates that need
 * none are left out. Throws DiagnosticsError for catalogs that an image set cannot name.
 */
export function createUpgradeImageSets({ hops }: ClusterUpgradePlan): UpgradeImageSet[] {
  return hops.flatMap((hop) => {
    const operators = listCatalogs(hop);
    if (operators.length === 0) return [];
    const configuration = encodeYaml({
      kind: 'ImageSetConfiguration',
      apiVersion: 'mirror.openshift.io/v2alpha1',
      mirror: { operators },
    });
    readImageSetConfiguration(configuration, `the image set of ${hop.to}`);
    return [{ version: hop.to, configuration }];
  });
}

function listCatalogs({ operators }: UpgradeHop): JsonObject[] {
  const catalogs = new Map<string, Map<string, Channel[]>>();
  const add = (name: string, position: ChannelPosition, minVersion: string): void => {
    const { catalog, channel, version } = position;
    if (catalog === '' || channel === '') return;
    const packages = getOrAdd(catalogs, catalog, () => new Map<string, Channel[]>());
    const channels = getOrAdd(packages, name, () => []);
    if (!channels.some((known) => known.name === channel))
      channels.push({ name: channel, minVersion, maxVersion: version });
  };
  for (const { package: name, installed, before, after, steps } of operators) {
    if (steps.length > 0) add(name, before, installed.version);
    if (after !== undefined) add(name, after, before.version);
  }
  return [...catalogs].map(([catalog, packages]) => ({
    catalog,
    packages: [...packages].map(([name, channels]) => ({
      name,
      channels: channels.map((channel) => ({ ...channel })),
    })),
  }));
}
