import { combineErrors } from '../../core/diagnostics-error.js';
import { OpmateError } from '../../core/errors.js';
import { getOrAdd } from '../../core/groups.js';
import { formatReference, parseReference } from '../../core/reference.js';
import type { OpenedReference } from '../../oci/image/open.js';
import type { DigestReference } from '../../release/digest-reference.js';
import { verifyReleaseSignature } from '../../release/release-signature.js';
import type { ReleaseType } from '../../release/select-releases.js';
import { parseUpdateGraph } from '../../release/update-graph.js';
import type { OpenPgpKeyring } from '../../trust/openpgp-keyring.js';
import type { ImageSetLock } from '../lock/lock.js';
import type { LockedRelease, LockedReleases } from '../lock/locked-releases.js';
import { type LiveReleaseOptions, liveReleases, readReleaseKeys } from './live-releases.js';
import type { GraphImage, ReleaseAccess } from './open-releases.js';

/** Opens a release image that an archive holds. */
type OpenArchived = (image: DigestReference) => Promise<OpenedReference>;

/**
 * Reaches releases as a lock has them: no update service and no signature store is asked, and signatures are verified
 * again. Images are opened at their sources, the graph image is built anew; of an archive `openArchived` opens both.
 */
export function lockedReleases(
  { releases, graphs, graphImage }: LockedReleases,
  live: LiveReleaseOptions,
  openArchived?: OpenArchived,
): ReleaseAccess {
  const { session } = live;
  const keyrings = new Map<ReleaseType, Promise<OpenPgpKeyring>>();
  const source = liveReleases({ ...live, graphBase: graphImage?.base ?? live.graphBase });
  return {
    async readGraph(type, architecture, channel) {
      const label = `channel ${channel} (${architecture})`;
      const locked = graphs.find(
        (graph) => graph.type === type && graph.architecture === architecture && graph.channel === channel,
      );
      if (locked === undefined) throw notLocked(label, openArchived);
      return { graph: parseUpdateGraph(JSON.stringify(locked.graph), label), digest: locked.digest };
    },
    async readSignature(image, version, type) {
      const locked = releases.find((release) => release.image.digest === image.digest);
      if (locked === undefined) throw notLocked(formatReference(image), openArchived);
      const keyring = await getOrAdd(keyrings, type, () => readReleaseKeys(type, live));
      return verifyLocked(locked, image, { keyring, now: session.now(), version });
    },
    async resolve(release) {
      // The only one that was not found in a channel.
      const locked = releases.find(({ channel }) => channel === undefined);
      if (locked === undefined) throw notLocked(formatReference(release), openArchived);
      return { ...release, digest: locked.image.digest };
    },
    open: (image) => (openArchived === undefined ? source.open(image) : openArchived(image)),
    graphImage: () => (openArchived === undefined ? source.graphImage() : archivedGraphImage),
  };
}

/** Named, but opened as all images of an archive are. */
const archivedGraphImage: GraphImage = {
  open: () => Promise.reject(new OpmateError('INTERNAL', 'the graph image is in the archive')),
  made: () => undefined,
  close: () => Promise.resolve(),
};

function notLocked(subject: string, openArchived: OpenArchived | undefined): OpmateError {
  const where = openArchived === undefined ? 'lock' : 'archive';
  const hint =
    where === 'lock'
      ? 'mirror without --locked to create a new lock'
      : 'mirror to disk with this configuration';
  return new OpmateError('NOT_FOUND', `not in the ${where}`, { subject, hint });
}

function verifyLocked(
  { signature }: LockedRelease,
  image: DigestReference,
  options: Parameters<typeof verifyReleaseSignature>[2],
) {
  if (signature !== undefined) return verifyReleaseSignature(signature, image, options);
  throw new OpmateError('NOT_FOUND', 'no release signature in the lock', {
    subject: formatReference(image),
    hint: 'add --ignore-release-signature for a build without signature',
  });
}

/**
 * Throws OpmateError for every release image of a lock that its signature does not prove, unless it may have none:
 * the lock of an archive is all that says which release it is.
 */
export async function requireSignedReleases(
  { images, releases: locked }: Pick<ImageSetLock, 'images' | 'releases'>,
  live: LiveReleaseOptions & { ignoreReleaseSignature: boolean },
): Promise<void> {
  const known = locked ?? { releases: [], graphs: [] };
  const access = lockedReleases(known, live);
  const faults: OpmateError[] = [];
  for (const { kind, contents, reference: text } of images) {
    if (kind !== 'release') continue;
    const reference = parseReference(text);
    const release = known.releases.find(({ image }) => image.digest === contents.root.digest);
    const graph = known.graphs.find(
      (lockedGraph) =>
        lockedGraph.architecture === release?.architecture && lockedGraph.channel === release.channel,
    );
    const isNamed = release?.channel === undefined;
    if (isNamed && release?.signature === undefined && live.ignoreReleaseSignature) continue;
    try {
      const image = { ...reference, digest: contents.root.digest } as DigestReference;
      await access.readSignature(image, isNamed ? undefined : release.version, graph?.type ?? 'ocp');
    } catch (error) {
      if (!(error instanceof OpmateError)) throw error;
      faults.push(error);
    }
  }
  if (faults.length > 0) throw combineErrors(faults);
}
