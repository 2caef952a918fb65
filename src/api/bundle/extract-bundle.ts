import { type ExtractedConfigMap, extractConfigMaps } from '../../bundle/config-map-extract.js';
import { parseReference, withoutCredentials } from '../../core/reference.js';
import type { Pin } from '../../source/content/content-types.js';
import type { Session } from '../../source/session.js';
import { type BundleSourceOptions, useSources } from './bundle-sources.js';
import type { RenderedBundle } from './render-bundle.js';

/** Options of `extractBundle`. */
export interface ExtractBundleOptions extends BundleSourceOptions {
  /** Name of the ConfigMap. */
  name: string;
  /** Default `openshift-operator-lifecycle-manager`. */
  namespace?: string | undefined;
  /** Maximum size of the files in a ConfigMap, in bytes; default 1 MiB. */
  limit?: number | undefined;
  /** Compress the files; default false. */
  gzip?: boolean | undefined;
  /** Split a bundle that is too large into several ConfigMaps; default false. */
  split?: boolean | undefined;
  /** Image to record as the source; default the image that the bundle is read from. */
  sourceImage?: string | undefined;
}

/** ConfigMaps with the files of a bundle. */
export interface ExtractedBundle extends Omit<RenderedBundle, 'objects' | 'omitted'> {
  /** Each is made by its `load`; empty with findings. */
  configMaps: readonly ExtractedConfigMap[];
}

/** Packs a bundle into a ConfigMap as OLM reads it, or into several. Throws OpmateError. */
export async function extractBundle(
  reference: string,
  session: Session,
  options: ExtractBundleOptions,
): Promise<ExtractedBundle> {
  const { files, isInPlace, pins } = await useSources(session, options, (sources) =>
    sources.readBundle(reference),
  );
  const { namespace = 'openshift-operator-lifecycle-manager' } = options;
  const sourceImage = options.sourceImage ?? findImage(reference, pins);
  const { signal } = session;
  const extracted = await extractConfigMaps(files, { ...options, namespace, sourceImage, signal });
  return { ...extracted, isInPlace };
}

/** Returns the image in a registry that a bundle was read from, as its reference names it. */
function findImage(reference: string, [pin]: readonly Pin[]): string | undefined {
  if (pin?.type !== 'image' || parseReference(reference).transport !== 'docker') return undefined;
  return withoutCredentials(reference.replace(/^docker:\/\//, ''));
}
