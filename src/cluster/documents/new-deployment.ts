import { OpmateError } from '../../core/errors.js';
import { getText, getValue } from '../../document/json-fields.js';
import { isJsonObject, type JsonObject, type JsonValue } from '../../document/json.js';
import { encodeDocuments, encodeYamlDocument } from '../../document/yaml/present.js';

/** Kinds of documents that install an operator. */
export type DeploymentKind = 'ClusterExtension' | 'Subscription' | 'BundleDeployment';

/** An operator to install, as resolution chose it. */
export interface NewDeployment {
  kind: DeploymentKind;
  name: string;
  namespace: string;
  packageName: string;
  /** Of the chosen bundle. */
  bundle: { name: string; version: string; image: string };
  /** Channels to stay in; empty for all, which a Subscription cannot. */
  channels: readonly string[];
  /** Catalog of the cluster; empty for any, which a Subscription cannot. */
  catalog: { name: string; namespace: string };
  /** `watchNamespace` and `deploymentConfig`. */
  config: JsonObject;
  /** Deadline of the rollout of a ClusterExtension, in minutes. */
  progressDeadlineMinutes?: number | undefined;
}

/** Returns the documents that install an operator, pinned to its version. Throws OpmateError USAGE. */
export function createDocuments(deployment: NewDeployment): JsonObject[] {
  if (deployment.kind === 'ClusterExtension') return [createExtension(deployment)];
  return deployment.kind === 'Subscription'
    ? createSubscription(deployment)
    : [createBundleDeployment(deployment)];
}

function createExtension(deployment: NewDeployment): JsonObject {
  const { name, namespace, packageName, bundle, channels, catalog, config } = deployment;
  const { progressDeadlineMinutes } = deployment;
  const selector = { matchLabels: { 'olm.operatorframework.io/metadata.name': catalog.name } };
  return {
    apiVersion: 'olm.operatorframework.io/v1',
    kind: 'ClusterExtension',
    metadata: { name },
    spec: {
      namespace,
      source: {
        sourceType: 'Catalog',
        catalog: {
          packageName,
          version: bundle.version,
          ...(channels.length > 0 && { channels: [...channels] }),
          ...(catalog.name !== '' && { selector }),
        },
      },
      ...(Object.keys(config).length > 0 && { config: { configType: 'Inline', inline: config } }),
      ...(progressDeadlineMinutes !== undefined && { progressDeadlineMinutes }),
    },
  };
}

function createSubscription(deployment: NewDeployment): JsonObject[] {
  const { name, namespace, packageName, bundle, channels, catalog, config } = deployment;
  const [channel = ''] = channels;
  if (catalog.name === '') {
    throw new OpmateError('USAGE', 'a Subscription needs the name of its CatalogSource', {
      hint: 'specify the name of the catalog: NAME=REF',
    });
  }
  const watched = getText(config, 'watchNamespace');
  const deploymentConfig = getValue(config, 'deploymentConfig');
  const group: JsonObject = {
    apiVersion: 'operators.coreos.com/v1',
    kind: 'OperatorGroup',
    metadata: { name, namespace },
    spec: { ...(watched !== '' && { targetNamespaces: [watched] }), upgradeStrategy: 'Default' },
  };
  const subscription: JsonObject = {
    apiVersion: 'operators.coreos.com/v1alpha1',
    kind: 'Subscription',
    metadata: { name, namespace },
    spec: {
      name: packageName,
      ...(channel !== '' && { channel }),
      source: catalog.name,
      sourceNamespace: catalog.namespace,
      startingCSV: bundle.name,
      installPlanApproval: 'Manual',
      ...(isJsonObject(deploymentConfig) && { config: deploymentConfig }),
    },
  };
  return [group, subscription];
}

function createBundleDeployment({ name, namespace, bundle, config }: NewDeployment): JsonObject {
  return {
    apiVersion: 'core.rukpak.io/v1alpha2',
    kind: 'BundleDeployment',
    metadata: { name },
    spec: {
      installNamespace: namespace,
      format: 'registry-v1',
      sources: [{ kind: 'image', image: { ref: bundle.image } }],
      ...(Object.keys(config).length > 0 && { config }),
    },
  };
}

/** Returns the files of a kustomization by name. */
export function createKustomization(
  documents: readonly JsonObject[],
  comments: readonly string[],
): Map<string, string> {
  const file = 'deployment.yaml';
  const kustomization = {
    apiVersion: 'kustomize.config.k8s.io/v1beta1',
    kind: 'Kustomization',
    resources: [file],
  };
  return new Map([
    ['kustomization.yaml', encodeYamlDocument(kustomization)],
    [file, encodeDocuments(documents, comments)],
  ]);
}

/** Text that stands for a value of the chart until the document is encoded. */
const marks = { namespace: 'opmate-mark-namespace', watch: 'opmate-mark-watch' };
const configMark = 'opmateMarkConfig';

/**
 * Returns the files of a Helm chart by name: the same documents, with namespaces, version and `deploymentConfig` as
 * values.
 */
export function createChart(deployment: NewDeployment, comments: readonly string[]): Map<string, string> {
  const { name, namespace, bundle, config } = deployment;
  const values: JsonObject = {
    namespace,
    watchNamespace: getText(config, 'watchNamespace'),
    deploymentConfig: getValue(config, 'deploymentConfig') ?? {},
    version: bundle.version,
  };
  const marked = { watchNamespace: marks.watch, deploymentConfig: { [configMark]: '' } };
  const documents = createDocuments({ ...deployment, namespace: marks.namespace, config: marked });
  const chart = {
    apiVersion: 'v2',
    name,
    version: '0.1.0',
    appVersion: bundle.version,
    description: `Installs ${deployment.packageName} ${bundle.version}`,
  };
  const template = documents
    .map((document) => `---\n${insertValues(encodeYamlDocument(markVersion(document)))}`)
    .join('');
  const heading = comments.map((comment) => `# ${comment.replaceAll(/[\r\n]+/g, ' ')}\n`).join('');
  return new Map([
    ['Chart.yaml', encodeYamlDocument(chart)],
    ['values.yaml', `${heading}${encodeYamlDocument(values)}`],
    ['templates/deployment.yaml', template],
  ]);
}

const versionMark = 'opmate-mark-version';

/** Replaces the version of a ClusterExtension. */
function markVersion(document: JsonObject): JsonValue {
  const catalog = getValue(document, 'spec', 'source', 'catalog');
  if (document['kind'] !== 'ClusterExtension' || !isJsonObject(catalog)) return document;
  const copy = structuredClone(document);
  const copied = getValue(copy, 'spec', 'source', 'catalog');
  if (isJsonObject(copied)) copied['version'] = versionMark;
  return copy;
}

/** Puts template actions in the place of marks. */
function insertValues(yaml: string): string {
  const lines: string[] = [];
  for (const line of yaml.split('\n')) {
    const indent = /^ */.exec(line)?.[0] ?? '';
    if (line.trim().startsWith('deploymentConfig:') || line.trim() === 'config:') lines.push(line);
    else if (line.includes(configMark))
      lines.push(`${indent}{{- toYaml .Values.deploymentConfig | nindent ${indent.length} }}`);
    else if (line.includes(marks.watch)) {
      const item = line.replace(marks.watch, '{{ . | quote }}');
      lines.push(`${indent}{{- with .Values.watchNamespace }}`, item, `${indent}{{- end }}`);
    } else {
      lines.push(
        line
          .replace(marks.namespace, '{{ .Values.namespace | quote }}')
          .replace(versionMark, '{{ .Values.version | quote }}'),
      );
    }
  }
  return lines.join('\n');
}
