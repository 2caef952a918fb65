import { decodeFile, readDocument } from '../../document/document.js';
import { diagnosticsFrom } from '../../core/diagnostics-error.js';
import { readdir } from 'node:fs/promises';
import path from 'node:path';
import { makeDirectory } from '../../files/make-directory.js';
import { withTemporaryDirectory } from '../../files/temporary-directory.js';
import { LimitError, OpmateError } from '../../core/errors.js';
import { quoteGo } from '../../document/go-json.js';
import { getValue } from '../../document/json-fields.js';
import { listDirectory } from '../../files/file-status.js';
import {
  type ProgramOptions,
  type ProgramSession,
  printedManifests,
  variables,
  withConfig,
} from './external-format.js';
import { getTitle } from '../../kube/manifests.js';
import { type Diagnostic, createFault, createWarning } from '../../core/diagnostic.js';
import type { PlainManifests } from './plain-directory.js';
import { findProgram, runProgram } from '../../files/run-program.js';
import { readFileWithin } from '../../files/read-file.js';

/** Name and version of a chart; incomplete if there are findings. */
interface Chart {
  chartName: string | undefined;
  version: string | undefined;
  findings: Diagnostic[];
}

const maxChartFile = 1024 * 1024;
/** Helm's limit for names of releases. */
const maxReleaseName = 53;

/**
 * Renders a chart, at the root of a directory or in its only chart directory, with the program `helm`: with custom
 * resource definitions, without tests. Helm runs with private directories, without plugins and cluster, and downloads
 * nothing: dependencies must be in `charts/`. The namespace is derived from the name of the chart by default. Warns if the output varies. Throws OpmateError if helm is missing or
 * fails. (Source: rukpak, helm+v3.)
 */
export async function renderHelm(
  directory: string,
  session: ProgramSession,
  options: ProgramOptions,
): Promise<PlainManifests & Chart & { installNamespace: string }> {
  const located = await findChart(directory);
  const nothing = { objects: [], warnings: [], installNamespace: options.installNamespace };
  if (!('chart' in located)) {
    return { ...nothing, findings: [located], chartName: undefined, version: undefined };
  }
  const { chart, prefix } = located;
  const about = await readChart(path.join(chart, 'Chart.yaml'), `${prefix}Chart.yaml`);
  if (about.findings.length > 0) return { ...nothing, ...about };
  const file = await findProgram('helm', session.environment);
  if (file === undefined) {
    throw new OpmateError('UNSUPPORTED', 'helm: not installed', { hint: 'install helm 3 on PATH' });
  }
  const name = options.name ?? about.chartName ?? '';
  const installNamespace =
    options.installNamespace === '' ? `${about.chartName}-system` : options.installNamespace;
  if (name.length > maxReleaseName || !/^[a-z0-9](?:[a-z0-9.-]*[a-z0-9])?$/.test(name)) {
    const message = `name ${quoteGo(name)}: helm takes lower-case letters, digits, dashes and dots, ${maxReleaseName} at most`;
    return { ...nothing, ...about, findings: [createFault('invalid-name', message)] };
  }
  return withTemporaryDirectory(session, async (temporary) => {
    const args = ['template', name, chart, '--namespace', installNamespace, '--include-crds', '--skip-tests'];
    const values = path.join(temporary, 'values.yaml');
    if (options.config !== undefined) args.push('--values', values);
    const run = (): Promise<Buffer> =>
      withConfig(options.config, values, async () =>
        runProgram(file, args, {
          name: 'helm',
          environment: await privateEnvironment(temporary, session),
          workingDirectory: temporary,
          signal: session.signal,
          timeoutMs: options.timeoutMs,
          maxOutput: options.maxOutput,
        }),
      );
    const printed = await run();
    const warnings: Diagnostic[] = [];
    if (!printed.equals(await run())) {
      warnings.push(
        createWarning('chart-output-varies', 'the chart renders other manifests each time', {
          file: `${prefix}Chart.yaml`,
          hint: 'set generated data, such as passwords and certificates, in its values',
        }),
      );
    }
    const manifests = printedManifests('helm', printed);
    warnings.push(...manifests.warnings, ...hookWarnings(manifests));
    return { ...about, ...manifests, warnings, installNamespace };
  });
}

async function privateEnvironment(
  temporary: string,
  { environment }: ProgramSession,
): Promise<Record<string, string>> {
  const places = Object.fromEntries(
    ['home', 'cache', 'config', 'data', 'plugins', 'tmp'].map((name) => [name, path.join(temporary, name)]),
  );
  for (const place of Object.values(places)) await makeDirectory(place, 0o700);
  return {
    ...variables(environment, ['PATH']),
    LC_ALL: 'C',
    TZ: 'UTC',
    HOME: places['home'] as string,
    TMPDIR: places['tmp'] as string,
    HELM_CACHE_HOME: places['cache'] as string,
    HELM_CONFIG_HOME: places['config'] as string,
    HELM_DATA_HOME: places['data'] as string,
    HELM_PLUGINS: places['plugins'] as string,
    HELM_NO_PLUGINS: '1',
    KUBECONFIG: '/dev/null',
  };
}

/** Returns the directory of the chart, or the fault that there is not exactly one. */
async function findChart(directory: string): Promise<{ chart: string; prefix: string } | Diagnostic> {
  const entries = await listDirectory(directory);
  if (entries.some(({ name }) => name === 'Chart.yaml'))
    return { chart: path.resolve(directory), prefix: '' };
  const charts: string[] = [];
  for (const entry of entries) {
    if (!entry.isDirectory()) continue;
    const inner = await readdir(path.join(directory, entry.name)).catch((): string[] => []);
    if (inner.includes('Chart.yaml')) charts.push(entry.name);
  }
  const [only, ...further] = charts;
  if (only !== undefined && further.length === 0) {
    return { chart: path.resolve(directory, only), prefix: `${only}/` };
  }
  const hint = 'move Chart.yaml to the root, or to exactly one directory';
  if (only === undefined) return createFault('missing-chart', 'no Helm chart found', { hint });
  return createFault('several-charts', `several charts of helm are there: ${charts.join(', ')}`, { hint });
}

async function readChart(file: string, shown: string): Promise<Chart> {
  const content = readFileWithin(file, (size) => {
    if (size > maxChartFile) throw new LimitError(`more than ${maxChartFile} bytes`, { subject: shown });
  });
  try {
    const text = decodeFile(content ?? Buffer.alloc(0), shown);
    const { root, diagnostics } = readDocument(text, shown, { maxLength: maxChartFile, noun: 'chart' });
    const [chartName, version] = [root.field('name').text(), root.field('version').text()];
    return { findings: [...diagnostics.errors], chartName, version };
  } catch (error) {
    if (!(error instanceof OpmateError)) throw error;
    return { findings: [...diagnosticsFrom(error)], chartName: undefined, version: undefined };
  }
}

/** Warns of hooks, which helm would run at their time and delete. */
function hookWarnings({ objects }: PlainManifests): Diagnostic[] {
  return objects.flatMap((object) => {
    const hook = getValue(object.load(), 'metadata', 'annotations', 'helm.sh/hook');
    if (hook === undefined) return [];
    return [
      createWarning('chart-hook', `a hook of helm (${String(hook)}), applied as any other object`, {
        subject: getTitle(object),
      }),
    ];
  });
}
