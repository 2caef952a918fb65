import { isDeepStrictEqual } from 'node:util';
import { encodeGoJson } from '../../../document/go-json.js';
import { type JsonObject, type JsonValue, isJsonObject } from '../../../document/json.js';
import type { CertificateProvider } from './certificates.js';
import type { DeploymentConfig } from './config.js';
import type { StrategyDeployment } from '../../../kube/csv-types.js';
import { certificateName } from './generated-names.js';
import { type PlainObject, generated } from '../../../kube/object.js';
import type { RegistryV1 } from './registry-v1.js';
import { webhookDeployments } from './webhooks.js';

/** What deployments depend on. */
interface DeploymentOptions {
  installNamespace: string;
  targets: readonly string[];
  provider: CertificateProvider;
  config?: DeploymentConfig | undefined;
}

/** The deployments of an operator. */
export function deploymentObjects(bundle: RegistryV1, options: DeploymentOptions): PlainObject[] {
  const served = new Set(webhookDeployments(bundle));
  const deployments = bundle.csv.spec.install.spec?.deployments ?? [];
  return deployments.map((deployment) => {
    const object = deploymentObject(bundle, deployment, options);
    const pod = podSpecOf(object);
    if (options.provider !== 'none' && served.has(deployment.name)) mountCertificates(pod, deployment.name);
    if (options.config !== undefined) applyConfig(object, pod, options.config);
    return generated(object, 'spec.install.spec.deployments');
  });
}

function deploymentObject(
  bundle: RegistryV1,
  { name, label, spec }: StrategyDeployment,
  { installNamespace, targets }: DeploymentOptions,
): JsonObject {
  // The specification is changed below, and the bundle may be rendered again.
  const copy = structuredClone(spec);
  const template = copy['template'] as JsonObject;
  const metadata = template['metadata'] as JsonObject;
  metadata['annotations'] = {
    ...bundle.csv.metadata.annotations,
    ...(metadata['annotations'] as JsonObject | undefined),
    'olm.targetNamespaces': targets.join(','),
    'olm.operatorNamespace': installNamespace,
  };
  return {
    apiVersion: 'apps/v1',
    kind: 'Deployment',
    metadata: { name, namespace: installNamespace, ...(label !== undefined && { labels: label }) },
    spec: { ...copy, revisionHistoryLimit: 1 },
    status: {},
  };
}

function podSpecOf(deployment: JsonObject): JsonObject {
  const spec = deployment['spec'] as JsonObject;
  return (spec['template'] as JsonObject)['spec'] as JsonObject;
}

type Items = JsonObject[];

/** A list of objects in a pod or container; an empty one if missing. */
function itemsOf(object: JsonObject, field: string): Items {
  const items = object[field];
  return Array.isArray(items) ? (items as Items) : [];
}

function setItems(object: JsonObject, field: string, items: Items): void {
  if (items.length > 0) object[field] = items;
  else delete object[field];
}

/** Where deployments look for the certificate that they serve with, under its two names. */
const certificateVolumes = [
  {
    name: 'webhook-cert',
    mountPath: '/tmp/k8s-webhook-server/serving-certs',
    files: ['tls.crt', 'tls.key'],
  },
  {
    name: 'apiservice-cert',
    mountPath: '/apiserver.local.config/certificates',
    files: ['apiserver.crt', 'apiserver.key'],
  },
] as const;

/** Puts the secret with the certificate where it is looked for, in place of whatever is mounted there. */
function mountCertificates(pod: JsonObject, deployment: string): void {
  const names = new Set<JsonValue>(certificateVolumes.map(({ name }) => name));
  const paths = new Set<JsonValue>(certificateVolumes.map(({ mountPath }) => mountPath));
  const containers = itemsOf(pod, 'containers');
  for (const container of containers) {
    for (const mount of itemsOf(container, 'volumeMounts')) {
      if (paths.has(mount['mountPath'] as JsonValue)) names.add(mount['name'] as JsonValue);
    }
  }
  const volumes = certificateVolumes.map(({ name, files: [certificate, key] }) => ({
    name,
    secret: {
      secretName: certificateName(deployment),
      items: [
        { key: 'tls.crt', path: certificate },
        { key: 'tls.key', path: key },
      ],
    },
  }));
  const kept = itemsOf(pod, 'volumes').filter(({ name }) => !names.has(name as JsonValue));
  pod['volumes'] = [...kept, ...volumes];
  for (const container of containers) {
    const mounts = itemsOf(container, 'volumeMounts').filter(
      ({ name, mountPath }) => !names.has(name as JsonValue) && !paths.has(mountPath as JsonValue),
    );
    container['volumeMounts'] = [
      ...mounts,
      ...certificateVolumes.map(({ name, mountPath }) => ({ name, mountPath })),
    ];
  }
}

/** Changes a deployment as its user asks, in the order of operator-controller. */
function applyConfig(deployment: JsonObject, pod: JsonObject, config: DeploymentConfig): void {
  const containers = itemsOf(pod, 'containers');
  for (const container of containers) {
    if (config.env !== undefined) {
      setItems(container, 'env', overriddenByName(itemsOf(container, 'env'), config.env));
    }
    if (config.envFrom !== undefined) {
      setItems(container, 'envFrom', withMissing(itemsOf(container, 'envFrom'), config.envFrom));
    }
    if (config.volumeMounts !== undefined) {
      const mounts = overriddenByName(itemsOf(container, 'volumeMounts'), config.volumeMounts);
      setItems(container, 'volumeMounts', mounts);
    }
    if (config.resources !== undefined) container['resources'] = config.resources;
  }
  if (config.volumes !== undefined) {
    setItems(pod, 'volumes', overriddenByName(itemsOf(pod, 'volumes'), config.volumes));
  }
  if (config.tolerations !== undefined) {
    setItems(pod, 'tolerations', withMissing(itemsOf(pod, 'tolerations'), config.tolerations));
  }
  if (config.nodeSelector !== undefined) {
    pod['nodeSelector'] = config.nodeSelector;
    if (Object.keys(config.nodeSelector).length === 0) delete pod['nodeSelector'];
  }
  if (config.affinity !== undefined) applyAffinity(pod, config.affinity);
  if (config.annotations !== undefined) {
    const template = (deployment['spec'] as JsonObject)['template'] as JsonObject;
    for (const object of [deployment, template]) {
      const metadata = object['metadata'] as JsonObject;
      const given = metadata['annotations'] as JsonObject | undefined;
      metadata['annotations'] = { ...config.annotations, ...given };
    }
  }
}

function overriddenByName(items: Items, others: readonly JsonObject[]): Items {
  const result = [...items];
  for (const other of others) {
    const at = result.findIndex(({ name }) => name === other['name']);
    if (at < 0) result.push(other);
    else result[at] = other;
  }
  return result;
}

function withMissing(items: Items, others: readonly JsonObject[]): Items {
  const result = [...items];
  for (const other of others) {
    if (!result.some((item) => isDeepStrictEqual(item, other))) result.push(other);
  }
  return result;
}

/** What is empty erases, what is not there keeps, all else replaces. */
function applyAffinity(pod: JsonObject, given: JsonObject): void {
  const affinity = isJsonObject(pod['affinity']) ? { ...pod['affinity'] } : {};
  if (Object.keys(given).length === 0) {
    delete pod['affinity'];
    return;
  }
  for (const [field, value] of Object.entries(given)) {
    if (isJsonObject(value) && encodeGoJson(value) === '{}') delete affinity[field];
    else affinity[field] = value;
  }
  if (Object.keys(affinity).length > 0) pod['affinity'] = affinity;
  else delete pod['affinity'];
}
