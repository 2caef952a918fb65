import path from 'node:path';
import { pathToFileURL } from 'node:url';
import { mapConcurrent } from '../../core/concurrency.js';
import { OpmateError } from '../../core/errors.js';
import {
  type OpenShiftVersion,
  compareOpenShift,
  formatOpenShift,
  readOpenShiftVersion,
} from '../../core/openshift-version.js';
import { formatReference } from '../../core/reference.js';
import type { JsonObject } from '../../document/json.js';
import { getText } from '../../document/json-fields.js';
import { createLiveAccess } from '../../mirror/release/live-releases.js';
import { type ReleaseChannel, type ReleaseUpdate, findClusterPath } from '../../release/cluster-path.js';
import { note } from '../../solve/upgrade/operator-notes.js';
import type { HopReleases } from '../../solve/upgrade/plan-upgrade.js';
import type { Session } from '../../source/session.js';

/** Source of releases of OpenShift and their updates. */
export interface UpdateGraphRequest {
  /** URL of an update service, or file or directory of its responses. */
  graph: string;
  /** Prefix of its channels, such as `stable`; default that of the cluster. */
  channel?: string | undefined;
  /** Default that of the cluster, else `amd64`. */
  architecture?: string | undefined;
}

/** The way of a cluster through releases. */
interface ReleaseRoute {
  release: string;
  to: { version: OpenShiftVersion; release: string | undefined };
  hops: readonly OpenShiftVersion[];
}

const maxParallel = 3;

/**
 * Returns the releases of each update of a cluster, by the version that it leads to, from the graphs of the channels of all
 * versions on the way. Throws OpmateError, except for a channel that the update service does not have.
 */
export async function readReleasePath(
  { graph, channel, architecture }: UpdateGraphRequest,
  { release, to, hops }: ReleaseRoute,
  objects: readonly JsonObject[],
  session: Session,
): Promise<Map<string, HopReleases>> {
  const cluster = objects.find((object) => object['kind'] === 'ClusterVersion');
  const prefix = channel ?? (/^(.+)-\d+\.\d+$/.exec(getText(cluster, 'spec', 'channel'))?.[1] || 'stable');
  const isMulti = getText(cluster, 'status', 'desired', 'architecture') === 'Multi';
  const wanted = architecture ?? (isMulti ? 'multi' : 'amd64');
  const access = createLiveAccess({ session, updateService: toUrl(graph, session) });
  const names = hops.map((version) => `${prefix}-${formatOpenShift(version)}`);
  const graphs = await mapConcurrent(names, maxParallel, async (name): Promise<ReleaseChannel[]> => {
    try {
      const read = await access.readGraph('ocp', wanted, name);
      return read.graph.nodes.length === 0 ? [] : [{ channel: name, graph: read.graph }];
    } catch (error) {
      if (error instanceof OpmateError && error.code === 'NOT_FOUND') return [];
      throw error;
    }
  });
  const found = graphs.flat();
  const { updates, problem } =
    found.length === 0
      ? { updates: [], problem: `no releases in ${names.join(', ')}` }
      : findClusterPath(found, release, to);
  return splitPath(updates, hops, { architecture: wanted, problem });
}

function toUrl(graph: string, { workingDirectory }: Session): URL {
  if (/^(?:https?|file):/.test(graph) && URL.canParse(graph)) return new URL(graph);
  return pathToFileURL(path.resolve(workingDirectory, graph));
}

/** Assigns updates to the hops of a path; a problem is noted where the path ends. */
function splitPath(
  updates: readonly ReleaseUpdate[],
  hops: readonly OpenShiftVersion[],
  { architecture, problem }: { architecture: string; problem: string | undefined },
): Map<string, HopReleases> {
  const parts: HopReleases[] = hops.map(() => ({ releases: [], notes: [] }));
  let index = 0;
  for (const { from, node, channel, risks } of updates) {
    const part = parts[Math.min(index, parts.length - 1)] as HopReleases;
    part.releases.push({
      from,
      version: node.version,
      channel,
      architecture,
      image: formatReference(node.payload),
      risks,
    });
    if (risks.length > 0) {
      const names = risks.map(({ name, url }) => (url === '' ? name : `${name}, ${url}`)).join('; ');
      const text = `the update from ${from} to ${node.version} is conditional (${names})`;
      part.notes.push(note('warning', 'conditional-update', text));
    }
    const reached = readOpenShiftVersion(node.version);
    while (index < hops.length && isAtLeast(reached, hops[index])) index++;
  }
  if (problem !== undefined)
    parts[Math.min(index, parts.length - 1)]?.notes.push(note('error', 'no-update-path', problem));
  return new Map(hops.map((version, place) => [formatOpenShift(version), parts[place] as HopReleases]));
}

function isAtLeast(reached: OpenShiftVersion | undefined, hop: OpenShiftVersion | undefined): boolean {
  return reached !== undefined && hop !== undefined && compareOpenShift(reached, hop) >= 0;
}
