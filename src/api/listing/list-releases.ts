import { mapConcurrent, withOpen } from '../../core/concurrency.js';
import { OpmateError, UsageError } from '../../core/errors.js';
import { quoteGo } from '../../core/go-json-quote.js';
import {
  compareOpenShiftNames,
  formatOpenShift,
  readOpenShiftVersion,
} from '../../core/openshift-version.js';
import { parseReference } from '../../core/reference.js';
import { releaseArchitectures } from '../../mirror/release/release-config.js';
import { createLiveAccess } from '../../mirror/release/live-releases.js';
import { openReference } from '../../oci/image/open.js';
import type { Session } from '../../source/session.js';

/** Releases of a channel for one architecture. */
export interface ChannelReleases {
  channel: string;
  architecture: string;
  /** Oldest first. */
  versions: string[];
}

/** Repository in which OpenShift releases are published. */
const releaseRepository = 'quay.io/openshift-release-dev/ocp-release';
const architecturesAtOnce = 3;

/**
 * Lists the minor versions that OpenShift releases are published for, oldest first, from the tags of
 * `quay.io/openshift-release-dev/ocp-release`. Throws OpmateError. (Source: oc-mirror v2.)
 */
export async function listReleaseVersions(session: Session): Promise<string[]> {
  return withOpen(openReference(parseReference(`${releaseRepository}:latest`), session), async (opened) => {
    const tags = await opened.repository.listTags(session);
    const released = tags.filter((tag) => /^\d+\.\d+\./.test(tag) && !tag.endsWith('.sig'));
    const versions = released.flatMap((tag) => readOpenShiftVersion(tag) ?? []);
    return [...new Set(versions.sort(compareOpenShiftNames).map(formatOpenShift))];
  });
}

/**
 * Lists the releases of a channel, per architecture. Throws OpmateError NOT_FOUND for a channel without releases, and
 * errors of the update service.
 */
export async function listChannelReleases(
  channel: string,
  architectures: readonly string[],
  session: Session,
): Promise<ChannelReleases[]> {
  const graphs = await readGraphs(channel, architectures, session);
  return graphs.map(({ architecture, graph: { nodes } }) => ({
    channel,
    architecture,
    versions: nodes.map(({ version }) => version),
  }));
}

/**
 * Lists the channels, sorted, that releases of a minor version such as `4.18` are in. Throws OpmateError as
 * `listChannelReleases` does.
 */
export async function listReleaseChannels(
  version: string,
  architectures: readonly string[],
  session: Session,
): Promise<string[]> {
  const graphs = await readGraphs(`stable-${version}`, architectures, session);
  const names = graphs.flatMap(({ graph }) => graph.nodes.flatMap(({ channels }) => channels));
  return [...new Set(names)].sort();
}

async function readGraphs(channel: string, architectures: readonly string[], session: Session) {
  if (!/^[\w.-]{1,200}$/.test(channel))
    throw new UsageError(`${quoteGo(channel)}: not the name of a channel`, {
      hint: 'use a channel name such as stable-4.18',
    });
  for (const architecture of architectures) {
    if ((releaseArchitectures as readonly string[]).includes(architecture)) continue;
    throw new UsageError(`unknown architecture ${quoteGo(architecture)}`, {
      hint: `use one of ${releaseArchitectures.join(', ')}`,
    });
  }
  const access = createLiveAccess({ session });
  return mapConcurrent(
    architectures,
    architecturesAtOnce,
    async (architecture) => {
      const { graph } = await access.readGraph('ocp', architecture, channel);
      if (graph.nodes.length > 0) return { architecture, graph };
      throw new OpmateError('NOT_FOUND', 'no releases', {
        subject: graph.label,
        hint: 'list the channels with api.listReleaseChannels',
      });
    },
    session,
  );
}
