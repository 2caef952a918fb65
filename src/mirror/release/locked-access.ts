import { ErrorList } from '../../core/diagnostics-error.js';
import { OpmateError } from '../../core/errors.js';
import { formatReference, parseReference } from '../../core/reference.js';
import { notInArchive } from '../../oci/archive-set/archive-set-reader.js';
import type { OpenedReference } from '../../oci/image/open.js';
import type { DigestReference } from '../../release/digest-reference.js';
import { verifyReleaseSignature } from '../../release/release-signature.js';
import { parseUpdateGraph } from '../../release/update-graph.js';
import type { ImageSetLock } from '../lock/lock.js';
import type { LockedRelease, LockedReleases } from '../lock/locked-releases.js';
import { type LiveReleaseOptions, createKeyReader, createLiveAccess } from './live-releases.js';
import type { GraphImage, ReleaseAccess } from './open-releases.js';

/** Opens a release image in an archive. */
type OpenArchived = (image: DigestReference) => Promise<OpenedReference>;

/**
 * Returns access to releases of a lock, without update service and signature store; signatures are verified again. Images
 * are opened at their sources, and the graph image is rebuilt; `openArchived` opens images of an archive.
 */
export function createLockedAccess(
  { releases, graphs, graphImage }: LockedReleases,
  live: LiveReleaseOptions,
  openArchived?: OpenArchived,
): ReleaseAccess {
  const { session } = live;
  const readKeys = createKeyReader(session);
  const source = createLiveAccess({ ...live, graphBase: graphImage?.base ?? live.graphBase });
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
      return verifyLocked(locked, image, { keyring: await readKeys(type), now: session.now(), version });
    },
    async resolve(release) {
      // Only a configured release has no channel.
      const locked = releases.find(({ channel }) => channel === undefined);
      if (locked === undefined) throw notLocked(formatReference(release), openArchived);
      return { ...release, digest: locked.image.digest };
    },
    open: (image) => (openArchived === undefined ? source.open(image) : openArchived(image)),
    graphImage: () => (openArchived === undefined ? source.graphImage() : archivedGraphImage),
  };
}

/** Placeholder: the archive opens its graph image as other images. */
const archivedGraphImage: GraphImage = {
  open: () => Promise.reject(new OpmateError('INTERNAL', 'the graph image is in the archive')),
  made: () => undefined,
  close: () => Promise.resolve(),
};

function notLocked(subject: string, openArchived: OpenArchived | undefined): OpmateError {
  if (openArchived !== undefined) return notInArchive(subject);
  return new OpmateError('NOT_FOUND', 'not in the lock', {
    subject,
    hint: 'mirror without mirror.locked to create a new lock',
  });
}

function verifyLocked(
  { signature }: LockedRelease,
  image: DigestReference,
  options: Parameters<typeof verifyReleaseSignature>[2],
) {
  if (signature !== undefined) return verifyReleaseSignature(signature, image, options);
  throw new OpmateError('NOT_FOUND', 'no release signature in the lock', {
    subject: formatReference(image),
    hint: 'add mirror.ignoreReleaseSignature for a build without signature',
  });
}

/**
 * Throws OpmateError with all release images of a lock without a valid signature, unless accepted: only the lock of an
 * archive identifies its releases.
 */
export async function requireSignedReleases(
  { images, releases: locked }: Pick<ImageSetLock, 'images' | 'releases'>,
  live: LiveReleaseOptions & { ignoreReleaseSignature?: boolean | undefined },
): Promise<void> {
  const known = locked ?? { releases: [], graphs: [] };
  const access = createLockedAccess(known, live);
  const errors = new ErrorList();
  for (const { kind, contents, reference: text } of images) {
    if (kind !== 'release') continue;
    const reference = parseReference(text);
    const release = known.releases.find(({ image }) => image.digest === contents.root.digest);
    const graph = known.graphs.find(
      (lockedGraph) =>
        lockedGraph.architecture === release?.architecture && lockedGraph.channel === release.channel,
    );
    const isNamed = release?.channel === undefined;
    if (isNamed && release?.signature === undefined && live.ignoreReleaseSignature === true) continue;
    const image = { ...reference, digest: contents.root.digest } as DigestReference;
    const version = isNamed ? undefined : release.version;
    await errors.try(() => access.readSignature(image, version, graph?.type ?? 'ocp'));
  }
  errors.throwIfAny();
}
