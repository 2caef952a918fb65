import { getValue } from '../../document/json-fields.js';
import type { LinkOptions } from '../../files/directory-root.js';
import { readBundleDirectory } from '../read.js';
import { getClouds } from './rights/cloud-permissions.js';
import { placeInNamespace } from './cluster-scope.js';
import { convertRegistryV1 } from './registry-v1/convert.js';
import { checkDuplicates } from './duplicates.js';
import { type ProgramOptions, type ProgramSession, renderExternal } from './external-format.js';
import { Report } from '../report.js';
import { renderHelm } from './helm.js';
import { sortObjects } from '../../kube/object.js';
import { objectWarnings } from './object-warnings.js';
import { type PlainManifests, readPlainDirectory } from './plain-directory.js';
import { readRegistryV1 } from './registry-v1/registry-v1.js';

/** The part of a session that rendering needs. */
type RenderSession = ProgramSession & LinkOptions;

export interface RenderContentOptions extends ProgramOptions {
  /** Empty for the namespace that the content suggests. */
  installNamespace: string;
  /** Directories of several sources; see `readPlainDirectory`. */
  destinations?: readonly string[] | undefined;
}

export interface RenderedContent extends PlainManifests {
  packageName?: string;
  version?: string;
  /** Name of the ClusterServiceVersion. */
  bundleName?: string;
  /** Clouds of which the operator requests credentials. */
  clouds?: readonly string[];
  /** Empty if objects keep their own namespaces. */
  installNamespace: string;
}

/** Formats that opmate renders itself or with helm; others are programs. */
export const knownFormats = ['registry-v1', 'plain', 'helm'] as const;

/**
 * Renders a directory to the objects that installing it applies: a registry-v1 bundle, manifests (`plain`), a chart
 * (`helm`), or the input of a program `opmate-format-NAME`. Throws OpmateError if it cannot be read or a program fails.
 */
export async function renderContent(
  directory: string,
  format: string,
  session: RenderSession,
  options: RenderContentOptions,
): Promise<RenderedContent> {
  const rendered = await render(directory, format, session, options);
  if (rendered.findings.length > 0) return { ...rendered, objects: [] };
  return { ...rendered, warnings: [...rendered.warnings, ...objectWarnings(rendered.objects)] };
}

async function render(
  directory: string,
  format: string,
  session: RenderSession,
  options: RenderContentOptions,
): Promise<RenderedContent> {
  const { signal, followLinks } = session;
  switch (format) {
    case 'registry-v1':
      return renderRegistryV1(directory, session, options);
    case 'plain':
      return placed(
        await readPlainDirectory(directory, { signal, followLinks, destinations: options.destinations }),
        options.installNamespace,
      );
    case 'helm': {
      const { chartName, version, ...chart } = await renderHelm(directory, session, options);
      return {
        ...placed(chart, chart.installNamespace),
        ...(chartName !== undefined && { packageName: chartName }),
        ...(version !== undefined && { version }),
      };
    }
    default:
      return placed(await renderExternal(directory, format, session, options), options.installNamespace);
  }
}

function placed(
  { objects, findings, warnings }: PlainManifests,
  installNamespace: string,
): Omit<RenderedContent, 'packageName' | 'version'> {
  if (installNamespace === '') return { objects, findings, warnings, installNamespace };
  const inPlace = sortObjects(placeInNamespace(objects, installNamespace));
  const report = new Report();
  if (findings.length === 0) checkDuplicates(inPlace, report);
  return { objects: inPlace, findings: [...findings, ...report.findings], warnings, installNamespace };
}

async function renderRegistryV1(
  directory: string,
  { signal, followLinks }: RenderSession,
  options: RenderContentOptions,
): Promise<RenderedContent> {
  const files = await readBundleDirectory(directory, { signal, followLinks });
  let { installNamespace } = options;
  if (installNamespace === '') {
    const { bundle, report } = readRegistryV1(files);
    if (bundle === undefined) return { ...report, objects: [], installNamespace };
    // Source: rukpak.
    const suggested = bundle.csv.metadata.annotations?.['operatorframework.io/suggested-namespace'];
    installNamespace = suggested || `${bundle.packageName}-system`;
  }
  const converted = convertRegistryV1(files, { ...options, installNamespace });
  const { objects, findings, warnings, bundle } = converted;
  const version = getValue(bundle?.csvManifest.load(), 'spec', 'version');
  const clouds = bundle === undefined ? [] : getClouds(bundle);
  return {
    objects,
    findings,
    warnings,
    installNamespace,
    ...(clouds.length > 0 && { clouds }),
    ...(bundle !== undefined && { packageName: bundle.packageName, bundleName: bundle.csvManifest.name }),
    ...(typeof version === 'string' && version !== '' && { version }),
  };
}
