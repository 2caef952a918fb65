import type { JsonObject } from '../../../document/json.js';
import { compareBytes } from '../../../core/order.js';
import { type CertificateProvider, injectAuthority, requestSecret } from './certificates.js';
import type { WebhookDescription } from '../../../kube/csv-types.js';
import { webhookServiceName } from './generated-names.js';
import { type PlainObject, generated, setFields } from '../../../kube/object.js';
import type { RegistryV1 } from './registry-v1.js';

interface WebhookOptions {
  installNamespace: string;
  targets: readonly string[];
  provider: CertificateProvider;
}

/** Port of a webhook without one. */
const defaultPort = 443;

function parsePort({ containerPort }: WebhookDescription): number {
  return containerPort === undefined || containerPort === 0 ? defaultPort : containerPort;
}

function getWebhooks({ csv }: RegistryV1): WebhookDescription[] {
  return csv.spec.webhookdefinitions ?? [];
}

/** Returns the names of the deployments that serve webhooks, in order. */
export function webhookDeployments(bundle: RegistryV1): string[] {
  const used = new Set(getWebhooks(bundle).map(({ deploymentName }) => deploymentName));
  const deployments = bundle.csv.spec.install.spec?.deployments ?? [];
  return deployments.map(({ name }) => name).filter((name) => used.has(name));
}

const configurations: Readonly<Record<string, string>> = {
  ValidatingAdmissionWebhook: 'ValidatingWebhookConfiguration',
  MutatingAdmissionWebhook: 'MutatingWebhookConfiguration',
};

/** Returns one configuration per admission webhook. */
export function webhookConfigurations(bundle: RegistryV1, options: WebhookOptions): PlainObject[] {
  return getWebhooks(bundle).flatMap((webhook) => {
    const kind = configurations[webhook.type];
    if (kind === undefined) return [];
    const name = webhook.generateName.replace(/-+$/, '');
    const deployment = webhook.deploymentName ?? '';
    const object: JsonObject = {
      apiVersion: 'admissionregistration.k8s.io/v1',
      kind,
      metadata: { name, namespace: options.installNamespace },
      webhooks: [admissionWebhook(webhook, name, options)],
    };
    injectAuthority(object, options.provider, deployment, options.installNamespace);
    return [generated(object, 'spec.webhookdefinitions')];
  });
}

function admissionWebhook(webhook: WebhookDescription, name: string, options: WebhookOptions): JsonObject {
  const { targets, installNamespace } = options;
  const isForAll = targets.length === 1 && targets[0] === '';
  const requirement = { key: 'kubernetes.io/metadata.name', operator: 'In', values: [...targets] };
  return {
    name,
    clientConfig: { service: serviceReference(webhook, installNamespace) },
    ...setFields(webhook, ['rules', 'failurePolicy', 'matchPolicy']),
    ...(!isForAll && { namespaceSelector: { matchExpressions: [requirement] } }),
    ...setFields(webhook, ['objectSelector']),
    sideEffects: webhook.sideEffects ?? null,
    ...setFields(webhook, ['timeoutSeconds']),
    admissionReviewVersions: webhook.admissionReviewVersions,
    ...(webhook.type === 'MutatingAdmissionWebhook' && setFields(webhook, ['reinvocationPolicy'])),
  };
}

function serviceReference(webhook: WebhookDescription, namespace: string): JsonObject {
  return {
    name: webhookServiceName(webhook.deploymentName ?? ''),
    namespace,
    ...(webhook.webhookPath !== undefined && { path: webhook.webhookPath }),
    port: parsePort(webhook),
  };
}

/** Returns the services of the deployments that serve webhooks. */
export function webhookServices(bundle: RegistryV1, options: WebhookOptions): PlainObject[] {
  const deployments = bundle.csv.spec.install.spec?.deployments ?? [];
  return webhookDeployments(bundle).map((deployment) => {
    const ports = new Map<string, { name: string; port: number; targetPort: number | string }>();
    for (const webhook of getWebhooks(bundle)) {
      if (webhook.deploymentName !== deployment) continue;
      const port = parsePort(webhook);
      const targetPort = webhook.targetPort ?? port;
      ports.set(`${port}\0${targetPort}`, { name: String(port), port, targetPort });
    }
    const sorted = [...ports.values()].sort(
      (a, b) => a.port - b.port || comparePorts(a.targetPort, b.targetPort),
    );
    const spec = deployments.find(({ name }) => name === deployment)?.spec;
    const labels = spec?.selector?.matchLabels;
    const object: JsonObject = {
      apiVersion: 'v1',
      kind: 'Service',
      metadata: { name: webhookServiceName(deployment), namespace: options.installNamespace },
      spec: { ports: sorted, ...(labels !== undefined && { selector: labels }) },
      status: { loadBalancer: {} },
    };
    requestSecret(object, options.provider, deployment);
    return generated(object, 'spec.webhookdefinitions');
  });
}

/** Compares ports: numbers before names. */
function comparePorts(a: number | string, b: number | string): number {
  if (typeof a === 'number' && typeof b === 'number') return a - b;
  return compareBytes(String(a), String(b));
}

/** Returns the conversion of a definition by a webhook of the bundle. */
export function findConversion(
  bundle: RegistryV1,
  crd: string,
  installNamespace: string,
): { conversion: JsonObject; deployment: string } | undefined {
  const webhook = getWebhooks(bundle).find(
    ({ type, conversionCRDs }) => type === 'ConversionWebhook' && conversionCRDs?.includes(crd),
  );
  if (webhook === undefined) return undefined;
  const service = { path: '/', ...serviceReference(webhook, installNamespace) };
  const { admissionReviewVersions: conversionReviewVersions } = webhook;
  const conversion = {
    strategy: 'Webhook',
    webhook: { clientConfig: { service }, conversionReviewVersions },
  };
  return { conversion, deployment: webhook.deploymentName ?? '' };
}
