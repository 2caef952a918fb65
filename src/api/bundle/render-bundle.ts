import { renameDirectory } from '../../core/diagnostics-error.js';
import { type InstallOptions, convertRegistryV1 } from '../../bundle/plain/registry-v1/convert.js';
import { objectWarnings } from '../../bundle/plain/object-warnings.js';
import { renderContent } from '../../bundle/plain/render-content.js';
import type { Diagnostic } from '../../core/diagnostic.js';
import { OpmateError, redactUrls } from '../../core/errors.js';
import type { PlainObject } from '../../kube/object.js';
import type { Session } from '../../source/session.js';
import { type BundleSourceOptions, type SourceOpener, useSources } from './bundle-sources.js';

/** Options of `renderBundle`. */
export interface RenderObjectsOptions extends InstallOptions, BundleSourceOptions {
  /** `registry-v1` (default), `plain`, `helm`, or NAME of a program `opmate-format-NAME`. */
  format?: string | undefined;
  /** Release name of a Helm chart; default the name of the chart. */
  releaseName?: string | undefined;
}

/** Objects that installing a bundle applies. */
export interface RenderedBundle {
  /** Sorted by kind, namespace and name; empty if there are findings. `writeObjects` prints them. */
  objects: PlainObject[];
  /** Reasons why the bundle cannot be installed. */
  findings: Diagnostic[];
  warnings: Diagnostic[];
  /** True for a directory that was read in place: findings name its paths. */
  isInPlace: boolean;
}

/**
 * Renders the manifests that installing a bundle applies, as OLM v1 makes them. Problems that prevent it are
 * returned as findings. Throws OpmateError for sources that cannot be read.
 */
export async function renderBundle(
  reference: string,
  session: Session,
  options: RenderObjectsOptions,
): Promise<RenderedBundle> {
  return useSources(
    session,
    options,
    (sources) =>
      (options.format ?? 'registry-v1') === 'registry-v1'
        ? renderRegistryV1(reference, sources, options)
        : renderOther(reference, sources, options, session),
    ({ findings }) => findings.length > 0,
  );
}

async function renderRegistryV1(
  reference: string,
  sources: SourceOpener,
  options: RenderObjectsOptions,
): Promise<RenderedBundle> {
  const { files, isInPlace } = await sources.readBundle(reference);
  const { objects, findings, warnings } = convertRegistryV1(files, options);
  return { objects, findings, warnings: [...warnings, ...objectWarnings(objects)], isInPlace };
}

async function renderOther(
  reference: string,
  sources: SourceOpener,
  { format = '', releaseName: name, provider = 'none', ...options }: RenderObjectsOptions,
  session: Session,
): Promise<RenderedBundle> {
  const { directory, isInPlace } = await sources.open(reference);
  try {
    const rendered = await renderContent(directory, format, session, { ...options, name, provider });
    return { ...rendered, isInPlace };
  } catch (error) {
    throw error instanceof OpmateError && !isInPlace
      ? renameDirectory(error, directory, redactUrls(reference))
      : error;
  }
}
