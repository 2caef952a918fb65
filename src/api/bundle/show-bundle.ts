import { type BundleSummary, summarizeBundle } from '../../bundle/summary.js';
import { redactUrls } from '../../core/errors.js';
import type { Pin } from '../../source/content/content-types.js';
import { withImage } from '../../source/drivers/image.js';
import type { Session } from '../../source/session.js';
import { type BundleSourceOptions, useSources } from './bundle-sources.js';

/** Image that a bundle was read from. */
export interface BundleImage {
  /** Digest of the manifest or image index. */
  digest: string;
  /** Layers of the image; sizes are in bytes, compressed. */
  layers: { digest: string; size: number }[];
}

/** Bundle at a glance. */
export interface ShownBundle {
  /** Versions, APIs, install modes, images, sizes and permissions in brief. */
  summary: BundleSummary;
  /** Undefined if the bundle was not read from a single image. */
  image: BundleImage | undefined;
  /** Sources of the bundle, pinned. */
  pins: readonly Pin[];
}

/** Summarizes a bundle from any source. Throws OpmateError. */
export async function showBundle(
  reference: string,
  session: Session,
  options: BundleSourceOptions = {},
): Promise<ShownBundle> {
  const { files, image, pins } = await useSources(session, options, async (sources) => {
    const read = await sources.readBundle(reference);
    return { ...read, image: await lookAtImage(read.pins, options, session) };
  });
  return { summary: summarizeBundle(files, { subject: redactUrls(reference) }), image, pins };
}

/** Returns the image that a bundle was read from; undefined if it was not read from a single one. */
async function lookAtImage(
  pins: readonly Pin[],
  options: BundleSourceOptions,
  session: Session,
): Promise<BundleImage | undefined> {
  const [pin] = pins;
  // Credentials of a Secret are for reading the files alone.
  if (pin?.type !== 'image' || options.secret !== undefined) return undefined;
  return withImage(pin.ref, session, ({ root, manifest }) =>
    Promise.resolve({
      digest: root.digest,
      layers: manifest.layers.map(({ digest, size }) => ({ digest, size })),
    }),
  );
}
