import type { JsonObject } from '../../../document/json.js';
import { certificateName, issuerName, webhookServiceName } from './generated-names.js';
import { type PlainObject, generated } from '../../../kube/object.js';

/** Providers of the serving certificates of webhooks. */
export type CertificateProvider = 'none' | 'cert-manager' | 'service-ca';

const inject: Readonly<Record<Exclude<CertificateProvider, 'none'>, string>> = {
  'cert-manager': 'cert-manager.io/inject-ca-from',
  'service-ca': 'service.beta.openshift.io/inject-cabundle',
};

/** Annotates an object that refers to the service of a deployment so that the provider injects its authority. */
export function injectAuthority(
  object: JsonObject,
  provider: CertificateProvider,
  deployment: string,
  installNamespace: string,
): void {
  if (provider === 'none') return;
  const value = provider === 'cert-manager' ? `${installNamespace}/${certificateName(deployment)}` : 'true';
  annotate(object, inject[provider], value);
}

/** Annotates a service so that the provider creates its secret. */
export function requestSecret(service: JsonObject, provider: CertificateProvider, deployment: string): void {
  if (provider !== 'service-ca') return;
  annotate(service, 'service.beta.openshift.io/serving-cert-secret-name', certificateName(deployment));
}

function annotate(object: JsonObject, key: string, value: string): void {
  const metadata = object['metadata'] as JsonObject;
  metadata['annotations'] = { ...(metadata['annotations'] as JsonObject | undefined), [key]: value };
}

/** Returns the further objects of a provider: with cert-manager, an issuer and a certificate per deployment. */
export function certificateObjects(
  provider: CertificateProvider,
  deployment: string,
  installNamespace: string,
): PlainObject[] {
  if (provider !== 'cert-manager') return [];
  const apiVersion = 'cert-manager.io/v1';
  const host = `${webhookServiceName(deployment)}.${installNamespace}`;
  const name = certificateName(deployment);
  const issuer = issuerName(deployment);
  const origin = 'spec.webhookdefinitions';
  return [
    generated(
      {
        apiVersion,
        kind: 'Issuer',
        metadata: { name: issuer, namespace: installNamespace },
        spec: { selfSigned: {} },
        status: {},
      },
      origin,
    ),
    generated(
      {
        apiVersion,
        kind: 'Certificate',
        metadata: { name, namespace: installNamespace },
        spec: {
          commonName: host,
          dnsNames: [host, `${host}.svc`, `${host}.svc.cluster.local`],
          duration: '17520h0m0s',
          issuerRef: { name: issuer },
          renewBefore: '24h0m0s',
          secretName: name,
          usages: ['server auth'],
        },
        status: {},
      },
      origin,
    ),
  ];
}
