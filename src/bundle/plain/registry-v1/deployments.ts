import { isDeepStrictEqual } from 'node:util';
import { encodeGoJson } from '../../../document/go-json.js';
import type { JsonObject } from '../../../document/json.js';
import type { CertificateProvider } from './certificates.js';
import type { DeploymentConfig } from './config.js';
import type { Container, PodSpec } from '../../../kube/pod-types.js';
import { certificateName } from './generated-names.js';
import { type PlainObject, generated } from '../../../kube/object.js';
import type { RegistryV1 } from './registry-v1.js';
import { webhookDeployments } from './webhooks.js';

interface DeploymentOptions {
  installNamespace: string;
  targets: readonly string[];
  provider: CertificateProvider;
  config?: DeploymentConfig | undefined;
}

/** Returns the deployments of an operator. */
export function deploymentObjects(bundle: RegistryV1, options: DeploymentOptions): PlainObject[] {
  const served = new Set(webhookDeployments(bundle));
  const deployments = bundle.csv.spec.install.spec?.deployments ?? [];
  const { installNamespace, targets, provider, config } = options;
  return deployments.map(({ name, label, spec: { ...deployment } }) => {
    // The template is modified below, and the bundle may be rendered again.
    const template = structuredClone(deployment.template);
    const { metadata: templateMetadata, spec: pod } = template;
    templateMetadata.annotations = {
      ...bundle.csv.metadata.annotations,
      ...templateMetadata.annotations,
      'olm.targetNamespaces': targets.join(','),
      'olm.operatorNamespace': installNamespace,
    };
    if (provider !== 'none' && served.has(name)) mountCertificates(pod, name);
    if (config !== undefined) applyConfig(pod, config);
    let added: JsonObject = {};
    if (config?.annotations !== undefined) {
      templateMetadata.annotations = { ...config.annotations, ...templateMetadata.annotations };
      added = { annotations: config.annotations };
    }
    const labels = label !== undefined && { labels: label };
    const object = {
      apiVersion: 'apps/v1',
      kind: 'Deployment',
      metadata: { name, namespace: installNamespace, ...labels, ...added },
      spec: { ...deployment, template, revisionHistoryLimit: 1 },
      status: {},
    };
    return generated(object, 'spec.install.spec.deployments');
  });
}

/** Sets a list, or removes it if it is empty. */
function setItems<O extends object, K extends keyof O>(
  object: O,
  field: K,
  items: NonNullable<O[K]> & unknown[],
): void {
  if (items.length > 0) object[field] = items;
  else delete object[field];
}

/** Mount paths and file names of serving certificates. */
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

/** Mounts the secret with the certificate, in place of other volumes at these paths. */
function mountCertificates(pod: PodSpec, deployment: string): void {
  const names = new Set<string>(certificateVolumes.map(({ name }) => name));
  const paths = new Set<string>(certificateVolumes.map(({ mountPath }) => mountPath));
  const containers = pod.containers ?? [];
  for (const { volumeMounts = [] } of containers) {
    for (const { name, mountPath } of volumeMounts) if (paths.has(mountPath)) names.add(name);
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
  pod.volumes = [...(pod.volumes ?? []).filter(({ name }) => !names.has(name)), ...volumes];
  for (const container of containers) {
    const mounts = (container.volumeMounts ?? []).filter(
      ({ name, mountPath }) => !names.has(name) && !paths.has(mountPath),
    );
    container.volumeMounts = [
      ...mounts,
      ...certificateVolumes.map(({ name, mountPath }) => ({ name, mountPath })),
    ];
  }
}

/** Applies the configuration to a pod, in the order of operator-controller. */
function applyConfig(pod: PodSpec, config: DeploymentConfig): void {
  for (const container of pod.containers ?? []) configureContainer(container, config);
  if (config.volumes !== undefined) setItems(pod, 'volumes', overriddenByName(pod.volumes, config.volumes));
  if (config.tolerations !== undefined) {
    setItems(pod, 'tolerations', withMissing(pod.tolerations, config.tolerations));
  }
  if (config.nodeSelector !== undefined) {
    pod.nodeSelector = config.nodeSelector;
    if (Object.keys(config.nodeSelector).length === 0) delete pod.nodeSelector;
  }
  if (config.affinity !== undefined) applyAffinity(pod, config.affinity);
}

function configureContainer(container: Container, config: DeploymentConfig): void {
  const { env, envFrom, volumeMounts } = container;
  if (config.env !== undefined) setItems(container, 'env', overriddenByName(env, config.env));
  if (config.envFrom !== undefined) setItems(container, 'envFrom', withMissing(envFrom, config.envFrom));
  if (config.volumeMounts !== undefined) {
    setItems(container, 'volumeMounts', overriddenByName(volumeMounts, config.volumeMounts));
  }
  if (config.resources !== undefined) container.resources = config.resources;
}

function overriddenByName<T extends { name: string }>(items: readonly T[] = [], others: readonly T[]): T[] {
  const result = [...items];
  for (const other of others) {
    const index = result.findIndex(({ name }) => name === other.name);
    if (index < 0) result.push(other);
    else result[index] = other;
  }
  return result;
}

function withMissing<T>(items: readonly T[] = [], others: readonly T[]): T[] {
  const result = [...items];
  for (const other of others) {
    if (!result.some((item) => isDeepStrictEqual(item, other))) result.push(other);
  }
  return result;
}

/** Removes parts that are configured as empty, and replaces other configured parts. */
function applyAffinity(pod: PodSpec, configured: NonNullable<PodSpec['affinity']>): void {
  const affinity: JsonObject = { ...pod.affinity };
  for (const [field, value] of Object.entries(configured)) {
    if (encodeGoJson(value) === '{}') delete affinity[field];
    else affinity[field] = value;
  }
  if (Object.keys(configured).length > 0 && Object.keys(affinity).length > 0) pod.affinity = affinity;
  else delete pod.affinity;
}
