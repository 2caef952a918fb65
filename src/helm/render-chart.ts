import { compareBytes } from '../core/order.js';
import type { JsonObject } from '../document/json.js';
import { encodeYaml } from '../document/yaml.js';
import { getList, getObjects } from '../document/json-fields.js';
import type { EnabledChart, PreparedChart } from './chart-values.js';
import type { EvaluationLimits } from './template/budget.js';
import { createTemplateSet } from './template/evaluate.js';
import { TemplateFault } from './template/fault.js';
import { helmFunctions } from './template/functions/index.js';
import {
  type GoMap,
  type GoMethod,
  type GoValue,
  GoStruct,
  getMapValue,
  isGoMap,
  setKey,
  toText,
} from './template/go-values.js';
import { runWithin } from '../kube/time-limit.js';

/** A rendered file of a chart. */
interface RenderedFile {
  /** Path from the root chart, starting with its name. */
  path: string;
  text: string;
}

/** A template that was not rendered, with its data. */
export interface FaultyTemplate {
  path: string;
  text: string;
  fault: TemplateFault;
  /** Evaluates an expression of the template; undefined on failure. */
  evaluate: (text: string) => string | undefined;
}

interface RenderedChart {
  files: RenderedFile[];
  faulty: FaultyTemplate[];
}

export interface RenderChartOptions {
  limits?: Partial<EvaluationLimits> | undefined;
  /** Time limit for all templates of the chart; default: 20 seconds. */
  maxMilliseconds?: number | undefined;
}

/**
 * Renders a chart with its default values, as oc-mirror does: no release name, no namespace, Kubernetes v1.20.0, and
 * the API versions that Helm assumes without a cluster. Templates are rendered one by one; failures are reported per
 * template. Omits notes; includes hooks and tests.
 */
export function renderChart(
  { root, values }: PreparedChart,
  { limits, maxMilliseconds = 20_000 }: RenderChartOptions = {},
): RenderedChart {
  const set = createTemplateSet({ functions: helmFunctions, limits });
  const templates: Template[] = [];
  collectTemplates(templates, root, root.name, values, true);
  // Deeper ones first, so that a chart can redefine templates of its sub-charts.
  templates.sort((a, b) => getDepth(b) - getDepth(a) || compareBytes(b.path, a.path));
  const files: RenderedFile[] = [];
  const faulty: FaultyTemplate[] = [];

  const addFaulty = ({ path, text, data }: Template, fault: TemplateFault): void => {
    const evaluate = (piece: string): string | undefined => {
      if (fault.kind === 'limit') return undefined;
      try {
        return set.renderText(piece, data);
      } catch (error) {
        if (error instanceof TemplateFault) return undefined;
        throw error;
      }
    };
    faulty.push({ path, text, fault, evaluate });
  };

  /** Does `work` for a template, which is faulty if it fails. */
  const attempt = (template: Template, work: () => void): void => {
    try {
      work();
    } catch (error) {
      const fault = error instanceof RangeError ? new TemplateFault('limit', 'nested too deeply') : error;
      if (!(fault instanceof TemplateFault)) throw error;
      addFaulty(template, fault.at(template.path, 1));
    }
  };

  const isDone = runWithin(maxMilliseconds, () => {
    for (const template of templates) attempt(template, () => set.add(template.path, template.text));
    const failed = new Set(faulty.map(({ path }) => path));
    for (const template of templates.filter(({ path }) => isRendered(path) && !failed.has(path))) {
      attempt(template, () => {
        const { path, data, basePath } = template;
        // Templates of a chart share their data: some change it for later ones.
        data['Template'] = { Name: path, BasePath: basePath };
        files.push({ path, text: set.render(path, data) });
      });
    }
    files.sort((a, b) => compareBytes(a.path, b.path));
  });
  if (!isDone) {
    const fault = new TemplateFault('limit', `rendering timed out after ${maxMilliseconds} ms`);
    const done = new Set([...files, ...faulty].map(({ path }) => path));
    for (const template of templates)
      if (isRendered(template.path) && !done.has(template.path)) addFaulty(template, fault);
  }
  return { files, faulty };
}

interface Template {
  path: string;
  text: string;
  data: GoMap;
  basePath: string;
}

/** Adds the templates of a chart and its sub-charts, and returns their data. */
function collectTemplates(
  templates: Template[],
  enabled: EnabledChart,
  prefix: string,
  values: GoMap,
  isRoot: boolean,
): GoMap {
  const { chart, charts } = enabled;
  const subcharts: GoMap = {};
  const data: GoMap = {
    Values: values,
    Chart: chartStruct(enabled, isRoot),
    Files: getFiles(chart.files),
    Release: { Name: '', Namespace: '', Service: 'Helm', IsInstall: false, IsUpgrade: false, Revision: 0n },
    Capabilities: capabilities,
    Subcharts: subcharts,
  };
  for (const inner of charts) {
    const own = getMapValue(values, inner.name);
    const innerPrefix = `${prefix}/charts/${inner.name}`;
    const made = collectTemplates(templates, inner, innerPrefix, isGoMap(own) ? own : {}, false);
    setKey(subcharts, inner.name, made);
  }
  for (const [path, text] of chart.templates) {
    if (chart.isLibrary && !isPartial(path)) continue;
    templates.push({ path: `${prefix}/${path}`, text, data, basePath: `${prefix}/templates` });
  }
  return data;
}

const getDepth = ({ path }: Template): number => path.split('/').length;

function isPartial(path: string): boolean {
  return path.slice(path.lastIndexOf('/') + 1).startsWith('_');
}

function isRendered(path: string): boolean {
  return !isPartial(path) && !path.endsWith('.txt');
}

const metadataFields: Readonly<Record<string, string>> = {
  Name: 'name',
  Home: 'home',
  Sources: 'sources',
  Version: 'version',
  Description: 'description',
  Keywords: 'keywords',
  Icon: 'icon',
  APIVersion: 'apiVersion',
  Condition: 'condition',
  Tags: 'tags',
  AppVersion: 'appVersion',
  Annotations: 'annotations',
  KubeVersion: 'kubeVersion',
  Type: 'type',
};
const lists = new Set(['sources', 'keywords']);

function chartStruct({ chart, name, dependencies }: EnabledChart, isRoot: boolean): GoStruct {
  const { metadata, version } = chart;
  const members: Record<string, GoValue | GoMethod> = {};
  for (const [field, key] of Object.entries(metadataFields)) {
    const value = metadata[key] ?? null;
    if (lists.has(key)) members[field] = getList(value);
    else if (key === 'annotations') members[field] = isGoMap(value) ? value : {};
    else members[field] = value === null ? '' : toText(value);
  }
  members['Name'] = name;
  members['Version'] = version;
  members['Deprecated'] = metadata['deprecated'] === true;
  members['IsRoot'] = isRoot;
  members['Maintainers'] = getObjects(metadata, 'maintainers').map((value) => {
    const text = (key: string): string => toText(value[key] ?? '');
    const fields = { Name: text('name'), Email: text('email'), URL: text('url') };
    return new GoStruct('*chart.Maintainer', fields, value);
  });
  members['Dependencies'] = dependencies.map(
    ({ alias = '', name, version, repository, conditions }) =>
      new GoStruct('*chart.Dependency', {
        Name: name,
        Version: version,
        Repository: repository,
        Alias: alias,
        Condition: conditions.join(','),
        Enabled: true,
      }),
  );
  return new GoStruct('chart.Metadata', members, { ...metadata, name } as JsonObject);
}

/** Returns the other files of a chart as templates see them. */
function getFiles(files: ReadonlyMap<string, Buffer>): GoStruct {
  const read = (name: GoValue | undefined): string => files.get(toText(name ?? ''))?.toString() ?? '';
  const content: GoMap = {};
  for (const [name, bytes] of files) setKey(content, name, bytes.toString());
  const byName = (encode: (bytes: Buffer) => string): GoMap => {
    const made: GoMap = {};
    for (const [name, bytes] of files) setKey(made, name.slice(name.lastIndexOf('/') + 1), encode(bytes));
    return made;
  };
  const asYaml = (value: GoMap): string => encodeYaml(value as JsonObject).replace(/\n$/, '');
  return new GoStruct(
    'engine.files',
    {
      Get: ([name]) => read(name),
      GetBytes: ([name]) => read(name),
      Lines: ([name]) => (read(name) === '' ? [] : read(name).replace(/\n$/, '').split('\n')),
      Glob: ([pattern]) => {
        const matcher = globPattern(toText(pattern ?? ''));
        return getFiles(new Map([...files].filter(([name]) => matcher.test(name))));
      },
      AsConfig: () => asYaml(byName((bytes) => bytes.toString())),
      AsSecrets: () => asYaml(byName((bytes) => bytes.toString('base64'))),
    },
    content,
  );
}

/**
 * Translates a glob of the library that Helm matches files with: `*` within a directory, `**` across directories,
 * `{a,b}`.
 */
function globPattern(glob: string): RegExp {
  let source = '';
  let depth = 0;
  for (let i = 0; i < glob.length; i++) {
    const name = glob[i] as string;
    if (name === '*') {
      const crossesDirectories = glob[i + 1] === '*';
      if (crossesDirectories) i++;
      source += crossesDirectories ? '.*' : '[^/]*';
    } else if (name === '?') source += '[^/]';
    else if (name === '{') source += (depth++, '(?:');
    else if (name === '}' && depth > 0) source += (depth--, ')');
    else if (name === ',' && depth > 0) source += '|';
    else if (name === '[' && glob.includes(']', i)) {
      const end = glob.indexOf(']', i);
      source += `[${glob
        .slice(i + 1, end)
        .replace(/^!/, '^')
        .replaceAll('\\', '\\\\')}]`;
      i = end;
    } else source += name.replace(/[.+^$()|\\\]}]/, '\\$&');
  }
  try {
    return new RegExp(`^${source}${')'.repeat(depth)}$`, 's');
  } catch {
    return /(?!)/;
  }
}

/** Capabilities that Helm assumes without a cluster. (Source: chartutil.DefaultCapabilities.) */
const apiVersions = new Set(
  [
    'v1 admissionregistration.k8s.io/v1 admissionregistration.k8s.io/v1alpha1 admissionregistration.k8s.io/v1beta1',
    'internal.apiserver.k8s.io/v1alpha1 apps/v1 apps/v1beta1 apps/v1beta2 authentication.k8s.io/v1',
    'authentication.k8s.io/v1alpha1 authentication.k8s.io/v1beta1 authorization.k8s.io/v1',
    'authorization.k8s.io/v1beta1 autoscaling/v1 autoscaling/v2 autoscaling/v2beta1 autoscaling/v2beta2 batch/v1',
    'batch/v1beta1 certificates.k8s.io/v1 certificates.k8s.io/v1beta1 certificates.k8s.io/v1alpha1',
    'coordination.k8s.io/v1alpha2 coordination.k8s.io/v1beta1 coordination.k8s.io/v1 discovery.k8s.io/v1',
    'discovery.k8s.io/v1beta1 events.k8s.io/v1 events.k8s.io/v1beta1 extensions/v1beta1',
    'flowcontrol.apiserver.k8s.io/v1 flowcontrol.apiserver.k8s.io/v1beta1 flowcontrol.apiserver.k8s.io/v1beta2',
    'flowcontrol.apiserver.k8s.io/v1beta3 networking.k8s.io/v1 networking.k8s.io/v1alpha1',
    'networking.k8s.io/v1beta1 node.k8s.io/v1 node.k8s.io/v1alpha1 node.k8s.io/v1beta1 policy/v1 policy/v1beta1',
    'rbac.authorization.k8s.io/v1 rbac.authorization.k8s.io/v1beta1 rbac.authorization.k8s.io/v1alpha1',
    'resource.k8s.io/v1beta1 resource.k8s.io/v1alpha3 scheduling.k8s.io/v1alpha1 scheduling.k8s.io/v1beta1',
    'scheduling.k8s.io/v1 storage.k8s.io/v1beta1 storage.k8s.io/v1 storage.k8s.io/v1alpha1',
    'storagemigration.k8s.io/v1alpha1 apiextensions.k8s.io/v1beta1 apiextensions.k8s.io/v1',
  ].flatMap((line) => line.split(' ')),
);

const kubeVersion = 'v1.20.0';
const helmVersion = 'v3.21.4';

const capabilities: GoValue = new GoStruct('*chartutil.Capabilities', {
  KubeVersion: new GoStruct('chartutil.KubeVersion', {
    Version: kubeVersion,
    Major: '1',
    Minor: '20',
    GitVersion: () => kubeVersion,
    String: () => kubeVersion,
  }),
  APIVersions: new GoStruct(
    'chartutil.VersionSet',
    { Has: ([version]) => apiVersions.has(toText(version ?? '')) },
    [...apiVersions],
  ),
  HelmVersion: new GoStruct('version.BuildInfo', {
    Version: helmVersion,
    GitCommit: '',
    GitTreeState: '',
    GoVersion: '',
  }),
});
