import { collectFacts } from '../catalog/facts.js';
import type { Diagnostic } from '../core/diagnostic.js';
import { OpmateError } from '../core/errors.js';
import { quoteGo } from '../core/go-json-quote.js';
import { captureCluster } from '../mirror/capture/capture-cluster.js';
import { encodeCapture } from '../mirror/capture/capture-config.js';
import { type ClusterText, readClusterFiles } from '../cluster/snapshot-files.js';
import { addClusterObjects, clusterKinds, emptyClusterObjects } from '../mirror/capture/cluster-objects.js';
import type { CatalogFacts } from '../model/facts.js';
import type { Session } from '../source/session.js';
import { withCatalog } from './open-catalog.js';

/** Options of capturing a cluster. */
export interface CaptureImageSetOptions {
  /** Catalogs to check against: images as the cluster names them, each with the reference that is read. */
  catalogs?: readonly { image: string; reference: string }[] | undefined;
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
  { catalogs = [] }: CaptureImageSetOptions = {},
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
  const capture = captureCluster(objects, facts);
  return { configuration: encodeCapture(capture), warnings: capture.warnings };
}
