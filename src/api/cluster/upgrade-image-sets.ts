import { getOrAdd, groupBy } from '../../core/groups.js';
import { compareBytes } from '../../core/order.js';
import { compareVersions, parseTolerantVersion, tryParse } from '../../core/semver.js';
import type { JsonObject } from '../../document/json.js';
import { encodeYamlDocument } from '../../document/yaml/present.js';
import { readImageSetConfiguration } from '../../mirror/image-set/image-set-config.js';
import type { ChannelPosition, HopInstall, UpgradeHop } from '../../solve/upgrade/upgrade-types.js';
import type { ClusterUpgradePlan } from './plan-cluster-upgrade.js';

/** An image set with the bundles that one update needs. */
export interface UpgradeImageSet {
  /** Version of OpenShift that the update leads to. */
  version: string;
  /** An `ImageSetConfiguration` as YAML. */
  configuration: string;
}

/** Lowest and highest version of a channel that an update needs. */
interface ChannelBounds {
  min: string;
  max: string;
}

/**
 * Returns an image set per update of a plan: the releases of its path, and what its catalogs need to bring the operators
 * where the plan has them, with the packages that stay. Updates that need none are left out. Throws DiagnosticsError for
 * catalogs that an image set cannot name.
 */
export function createUpgradeImageSets({ hops }: ClusterUpgradePlan): UpgradeImageSet[] {
  return hops.flatMap((hop) => {
    const operators = listCatalogs(hop);
    const platform = createPlatform(hop);
    if (operators.length === 0 && platform === undefined) return [];
    const configuration = encodeYamlDocument({
      kind: 'ImageSetConfiguration',
      apiVersion: 'mirror.openshift.io/v2alpha1',
      mirror: { ...(platform !== undefined && { platform }), ...(operators.length > 0 && { operators }) },
    });
    readImageSetConfiguration(configuration, `the image set of ${hop.to}`);
    return [{ version: hop.to, configuration }];
  });
}

function createPlatform({ releases }: UpgradeHop): JsonObject | undefined {
  const [first] = releases;
  if (first === undefined) return undefined;
  const channels = [...groupBy(releases, ({ channel }) => channel)].map(([name, list]) => ({
    name,
    type: 'ocp',
    minVersion: list[0]?.version ?? '',
    maxVersion: list.at(-1)?.version ?? '',
    shortestPath: true,
  }));
  return { architectures: [first.architecture], channels };
}

/** Lists all packages of a catalog that an update uses: one that a mirrored catalog lacks stops its namespace. */
function listCatalogs({ operators }: UpgradeHop): JsonObject[] {
  const catalogs = new Map<string, Map<string, Map<string, ChannelBounds>>>();
  const add = (name: string, { catalog, channel }: ChannelPosition, versions: readonly string[]): void => {
    if (catalog === '' || channel === '') return;
    const packages = getOrAdd(catalogs, catalog, () => new Map<string, Map<string, ChannelBounds>>());
    const channels = getOrAdd(packages, name, () => new Map<string, ChannelBounds>());
    const known = channels.get(channel);
    const all = [...(known === undefined ? [] : [known.min, known.max]), ...versions].sort(compareTexts);
    channels.set(channel, { min: all[0] ?? '', max: all.at(-1) ?? '' });
  };
  const isPrepared = operators.some(({ steps }) => steps.length > 0);
  for (const { package: name, before, after, installs } of operators) {
    const list = (phase: HopInstall['phase']): string[] =>
      installs.filter((item) => item.phase === phase).map(({ version }) => version);
    if (isPrepared && before !== undefined) add(name, before, [...list('before'), before.version]);
    const start = before === undefined ? [] : [before.version];
    if (after !== undefined) add(name, after, [...start, ...list('after'), after.version]);
  }
  return [...catalogs].map(([catalog, packages]) => ({
    catalog,
    packages: [...packages].map(([name, channels]) => ({
      name,
      channels: [...channels].map(([channel, { min, max }]) => ({
        name: channel,
        minVersion: min,
        maxVersion: max,
      })),
    })),
  }));
}

function compareTexts(a: string, b: string): number {
  const [x, y] = [tryParse(parseTolerantVersion, a), tryParse(parseTolerantVersion, b)];
  return x === undefined || y === undefined ? compareBytes(a, b) : compareVersions(x, y);
}
