import { renameDirectory } from '../../core/diagnostics-error.js';
import { type InstallOptions, convertRegistryV1 } from '../../bundle/plain/registry-v1/convert.js';
import { objectWarnings } from '../../bundle/plain/object-warnings.js';
import { parseAvailableApis, withAvailableApis } from '../../bundle/plain/available-apis.js';
import { isFormatName } from '../../bundle/plain/external-format.js';
import { knownFormats, renderContent } from '../../bundle/plain/render-content.js';
import type { Diagnostic } from '../../core/diagnostic.js';
import { OpmateError, UsageError, redactUrls } from '../../core/errors.js';
import { quoteGo } from '../../document/go-json.js';
import { readInputFile } from '../../files/read-file.js';
import type { PlainObject } from '../../kube/object.js';
import type { Session } from '../../source/session.js';
import { type BundleSourceOptions, type SourceOpener, useSources } from './bundle-sources.js';

/** Options of `renderBundle`. */
export interface RenderObjectsOptions extends InstallOptions, BundleSourceOptions {
  /** `registry-v1` (default), `plain`, `helm`, or NAME of a program `opmate-format-NAME`. */
  format?: string | undefined;
  /** Release name of a Helm chart; default the name of the chart. */
  releaseName?: string | undefined;
  /** File with the kinds of a cluster, as `kubectl api-resources` prints them; others are findings. */
  availableApis?: string | undefined;
  /** With `availableApis`, kinds whose objects are omitted instead; true for all. */
  optionalKinds?: readonly string[] | true | undefined;
}

/** Objects that installing a bundle applies. */
export interface RenderedBundle {
  /** Sorted by kind, namespace and name; empty if there are findings. `writeObjects` prints them. */
  objects: PlainObject[];
  /** Reasons why the bundle cannot be installed. */
  findings: Diagnostic[];
  warnings: Diagnostic[];
  /** Objects that were omitted, as the cluster does not have their kinds. */
  omitted: PlainObject[];
  /** True for a directory that was read in place: findings name its paths. */
  isInPlace: boolean;
}

/**
 * Renders the manifests that installing a bundle applies, as OLM v1 makes them. Problems that prevent it are
 * returned as findings. Throws OpmateError for sources that cannot be read, and USAGE for an invalid format.
 */
export async function renderBundle(
  reference: string,
  session: Session,
  options: RenderObjectsOptions,
): Promise<RenderedBundle> {
  const { format = 'registry-v1', availableApis: file } = options;
  checkFormat(format);
  const apis =
    file === undefined
      ? undefined
      : parseAvailableApis((await readInputFile(file, session)).toString('utf8'), file);
  const rendered = await useSources(
    session,
    options,
    (sources) =>
      format === 'registry-v1'
        ? renderRegistryV1(reference, sources, options)
        : renderOther(reference, sources, options, session),
    ({ findings }) => findings.length > 0,
  );
  if (apis === undefined || rendered.findings.length > 0) return { ...rendered, omitted: [] };
  const optional = options.optionalKinds === true ? 'all' : new Set(options.optionalKinds);
  const { skipped, ...available } = withAvailableApis(rendered.objects, apis, optional);
  return { ...rendered, ...available, omitted: skipped };
}

function checkFormat(format: string): void {
  if (isFormatName(format)) return;
  const problem = `invalid options.format value ${quoteGo(format)}, expected (${knownFormats.join('|')})`;
  throw new UsageError(problem, {
    hint: 'use one of these, or NAME of a program opmate-format-NAME: lower-case letters, digits and dashes',
  });
}

async function renderRegistryV1(
  reference: string,
  sources: SourceOpener,
  options: RenderObjectsOptions,
): Promise<Omit<RenderedBundle, 'omitted'>> {
  const { files, isInPlace } = await sources.readBundle(reference);
  const { objects, findings, warnings } = convertRegistryV1(files, options);
  return { objects, findings, warnings: [...warnings, ...objectWarnings(objects)], isInPlace };
}

async function renderOther(
  reference: string,
  sources: SourceOpener,
  { format = '', releaseName: name, provider = 'none', ...options }: RenderObjectsOptions,
  session: Session,
): Promise<Omit<RenderedBundle, 'omitted'>> {
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
