import type { JsonObject } from '../../../document/json.js';
import { certificateName, issuerName, webhookServiceName } from './generated-names.js';
import { type PlainObject, generated } from '../../../kube/object.js';

/** Who makes the certificates that webhooks are served with. */
export const certificateProviders = ['none', 'cert-manager', 'service-ca'] as const;
export type CertificateProvider = (typeof certificateProviders)[number];

const inject: Readonly<Record<Exclude<CertificateProvider, 'none'>, string>> = {
  'cert-manager': 'cert-manager.io/inject-ca-from',
  'service-ca': 'service.beta.openshift.io/inject-cabundle',
};

/** Lets the provider write its authority into an object that names the service of a deployment; changes it. */
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

/** Lets the provider make the secret of a service; changes the object. */
export function requestSecret(service: JsonObject, provider: CertificateProvider, deployment: string): void {
  if (provider !== 'service-ca') return;
  annotate(service, 'service.beta.openshift.io/serving-cert-secret-name', certificateName(deployment));
}

function annotate(object: JsonObject, key: string, value: string): void {
  const metadata = object['metadata'] as JsonObject;
  metadata['annotations'] = { ...(metadata['annotations'] as JsonObject | undefined), [key]: value };
}

/** What a provider needs in addition: with cert-manager, an issuer and a certificate for each deployment. */
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
