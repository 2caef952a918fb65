import { collectFacts } from '../catalog/facts.js';
import type { Diagnostic } from '../core/diagnostic.js';
import { OpmateError } from '../core/errors.js';
import { quoteGo } from '../core/go-json-quote.js';
import { findReference } from '../core/reference.js';
import { captureCluster } from '../mirror/capture/capture-cluster.js';
import type { FindSource } from '../mirror/capture/mirror-sources.js';
import { encodeCapture } from '../mirror/capture/capture-config.js';
import { type ClusterText, readClusterFiles } from '../cluster/snapshot-files.js';
import { addClusterObjects, clusterKinds, emptyClusterObjects } from '../mirror/capture/cluster-objects.js';
import { findLockedSource } from '../mirror/lock/locked-source.js';
import type { ImageSetLock } from '../mirror/lock/lock.js';
import type { CatalogFacts } from '../model/facts.js';
import type { Session } from '../source/session.js';
import { readNamedLock } from './mirror/find-lock.js';
import { withCatalog } from './open-catalog.js';

/** Options of capturing a cluster. */
export interface CaptureImageSetOptions {
  /**
   * Catalogs to check against: images as the cluster names them, each with the reference that is read. A reference to
   * another image is the source that the image was mirrored from, and takes its place.
   */
  catalogs?: readonly { image: string; reference: string }[] | undefined;
  /** Locks of mirror runs, or directories with one, that map mirrored catalogs to their sources. */
  locks?: readonly string[] | undefined;
}

/** An image set that was captured from a cluster. */
export interface CapturedImageSet {
  /** An `ImageSetConfiguration` as YAML, with the reason of each item as a comment. */
  configuration: string;
  /** Objects without a counterpart, and content that the catalogs lack. */
  warnings: Diagnostic[];
}

/**
 * Captures what is installed in a cluster as an image set: catalogs, packages, channels, and the installed versions as
 * minimum. Reads files and directories of objects as `kubectl get -o yaml` and must-gather write them; only `catalogs`
 * need a network. Throws OpmateError: NOT_FOUND if nothing is installed, and LIMIT.
 */
export async function captureImageSet(
  places: readonly (string | ClusterText)[],
  session: Session,
  { catalogs = [], locks = [] }: CaptureImageSetOptions = {},
): Promise<CapturedImageSet> {
  const { workingDirectory, signal } = session;
  const objects = emptyClusterObjects();
  await readClusterFiles(places, clusterKinds, { workingDirectory, signal }, (file) => {
    addClusterObjects(objects, file);
  });
  const images = [...objects.catalogSources.values(), ...objects.clusterCatalogs.values()].flatMap(
    ({ image }) => image ?? [],
  );
  const facts = new Map<string, CatalogFacts>();
  for (const { image, reference } of catalogs) {
    if (!images.includes(image)) {
      const [first] = images;
      throw new OpmateError('NOT_FOUND', `${quoteGo(image)}: no catalog of the cluster has this image`, {
        hint:
          first === undefined ? 'add its CatalogSources and ClusterCatalogs' : `use ${first}=${reference}`,
      });
    }
    facts.set(
      image,
      await withCatalog(reference, session, ({ catalog }) => collectFacts(catalog, { signal })),
    );
  }
  const capture = captureCluster(objects, facts, await createSourceFinder(catalogs, locks, session));
  return { configuration: encodeCapture(capture), warnings: capture.warnings };
}

/** Returns the finder of sources: those of `catalogs`, then those of locks. */
async function createSourceFinder(
  catalogs: NonNullable<CaptureImageSetOptions['catalogs']>,
  files: readonly string[],
  session: Session,
): Promise<FindSource> {
  const locks: ImageSetLock[] = [];
  for (const file of files) locks.push(await readNamedLock(file, session));
  const sources = new Map(
    catalogs
      .filter(({ image, reference }) => image !== reference && isRemoteImage(reference))
      .map(({ image, reference }) => [image, reference]),
  );
  return (image) => sources.get(image) ?? findLockedSource(image, locks);
}

function isRemoteImage(text: string): boolean {
  const reference = findReference(text);
  if (reference?.transport !== 'docker' || text.startsWith('docker://')) return false;
  const hasVersion = reference.tag !== undefined || reference.digest !== undefined;
  return hasVersion && text.startsWith(`${reference.registry}/`);
}
