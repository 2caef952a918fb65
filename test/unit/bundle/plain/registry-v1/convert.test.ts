import { describe, expect, it } from 'vitest';
import {
  type InstallOptions,
  convertRegistryV1,
} from '../../../../../src/bundle/plain/registry-v1/convert.js';
import { formatDiagnostic, formatMessage } from '../../../../../src/core/diagnostic.js';
import type { JsonObject } from '../../../../../src/document/json.js';
import { type SmallOperator, deployment, smallCrd, smallOperator } from '../small-operator.js';

type Given = Partial<InstallOptions> & { keepBelow?: number };

function convert(operator: SmallOperator, options: Given = {}) {
  return convertRegistryV1(smallOperator(operator), { installNamespace: 'here', ...options });
}

/** The objects, by kind and name. */
function objectsOf(operator: SmallOperator, options: Given = {}): Record<string, JsonObject> {
  const { objects, findings } = convert(operator, options);
  expect(findings).toEqual([]);
  return Object.fromEntries(objects.map((one) => [`${one.kind}/${one.name}`, one.load()]));
}

function findingsOf(operator: SmallOperator, options: Given = {}): string[] {
  const { findings, objects } = convert(operator, options);
  expect(objects).toEqual([]);
  return findings.map(formatDiagnostic);
}

const webhook = {
  type: 'ValidatingAdmissionWebhook',
  generateName: 'check.example.com',
  deploymentName: 'widget',
  containerPort: 9443,
  admissionReviewVersions: ['v1'],
  sideEffects: 'None',
  webhookPath: '/check',
  rules: [
    { apiGroups: ['example.com'], apiVersions: ['v1'], operations: ['CREATE'], resources: ['widgets'] },
  ],
};
const conversion = {
  type: 'ConversionWebhook',
  generateName: 'convert.example.com',
  deploymentName: 'widget',
  admissionReviewVersions: ['v1'],
  sideEffects: 'None',
  conversionCRDs: ['widgets.example.com'],
};
const owned = { owned: [{ name: 'widgets.example.com', kind: 'Widget', version: 'v1' }] };

const noSubdomain =
  'not a DNS-1123 subdomain: lower case letters, digits, - and ., with a letter or digit at both ends';

describe('bundle/plain/registry-v1/convert', () => {
  it('promotes permissions to the cluster when all namespaces are watched', () => {
    const objects = objectsOf({});
    const role = Object.values(objects).find(({ kind }) => kind === 'ClusterRole');
    expect(Object.values(objects).map(({ kind }) => kind)).toEqual([
      'ClusterRole',
      'ClusterRoleBinding',
      'Deployment',
      'ServiceAccount',
    ]);
    expect(role?.['rules']).toEqual([
      { apiGroups: [''], resources: ['secrets'], verbs: ['get'] },
      { apiGroups: [''], resources: ['namespaces'], verbs: ['get', 'list', 'watch'] },
    ]);
  });

  it('grants permissions in each watched namespace to the account of the install namespace', () => {
    const operator = { modes: ['MultiNamespace', 'OwnNamespace'] };
    const { objects } = convert(operator, { watchNamespaces: ['there', 'here'] });
    const bindings = objects.filter(({ kind }) => kind === 'RoleBinding');
    expect(bindings.map(({ namespace }) => namespace)).toEqual(['here', 'there']);
    for (const binding of bindings) {
      expect(binding.load()['subjects']).toEqual([
        { kind: 'ServiceAccount', name: 'widget', namespace: 'here' },
      ]);
    }
  });

  it('adds annotations of the bundle to pods, between those of OLM and of the deployment', () => {
    const annotations = { mine: 'lost', other: 'there', 'olm.targetNamespaces': 'lost' };
    const objects = objectsOf({ annotations }, { watchNamespaces: ['there'] });
    expect(objects['Deployment/widget']).toMatchObject({
      metadata: { labels: { app: 'widget' }, namespace: 'here' },
      spec: {
        revisionHistoryLimit: 1,
        template: {
          metadata: {
            annotations: {
              mine: 'kept',
              other: 'there',
              'olm.targetNamespaces': 'there',
              'olm.operatorNamespace': 'here',
            },
          },
        },
      },
    });
  });

  it('appends properties of the bundle to those of the annotation', () => {
    const objects = objectsOf({
      annotations: { 'olm.properties': '[{"type":"a","value":1}]' },
      metadata: { 'properties.yaml': 'properties:\n- type: b\n  value: {z: 1, a: "<"}\n' },
    });
    expect(objects['Deployment/widget']).toHaveProperty(
      ['spec', 'template', 'metadata', 'annotations', 'olm.properties'],
      '[{"type":"a","value":1},{"type":"b","value":{"a":"\\u003c","z":1}}]',
    );
  });

  it('creates service, configuration and certificate of a webhook', () => {
    const objects = objectsOf(
      {
        spec: {
          webhookdefinitions: [
            { ...webhook, targetPort: 'https' },
            {
              ...webhook,
              type: 'MutatingAdmissionWebhook',
              generateName: 'set.example.com',
              containerPort: undefined,
            },
          ],
        },
      },
      { provider: 'cert-manager', watchNamespaces: ['there'] },
    );
    expect(Object.keys(objects)).toEqual(
      expect.arrayContaining([
        'Certificate/widget-service-cert',
        'Issuer/widget-service-cert-selfsigned-issuer',
        'MutatingWebhookConfiguration/set.example.com',
      ]),
    );
    expect(objects['Service/widget-service']?.['spec']).toEqual({
      selector: { app: 'widget' },
      ports: [
        { name: '443', port: 443, targetPort: 443 },
        { name: '9443', port: 9443, targetPort: 'https' },
      ],
    });
    expect(objects['ValidatingWebhookConfiguration/check.example.com']).toMatchObject({
      metadata: {
        namespace: 'here',
        annotations: { 'cert-manager.io/inject-ca-from': 'here/widget-service-cert' },
      },
      webhooks: [
        {
          name: 'check.example.com',
          clientConfig: {
            service: { name: 'widget-service', namespace: 'here', path: '/check', port: 9443 },
          },
          namespaceSelector: {
            matchExpressions: [{ key: 'kubernetes.io/metadata.name', operator: 'In', values: ['there'] }],
          },
        },
      ],
    });
    const mutating = objects['MutatingWebhookConfiguration/set.example.com']?.['webhooks'] as JsonObject[];
    expect(mutating[0]).toHaveProperty('clientConfig.service.port', 443);
  });

  it('mounts certificates in place of other volumes', () => {
    const volumes = [
      { name: 'own-cert', secret: { secretName: 'mine' } },
      { name: 'webhook-cert', emptyDir: {} },
      { name: 'config', configMap: { name: 'config' } },
    ];
    const containers = [
      {
        name: 'manager',
        volumeMounts: [
          { name: 'own-cert', mountPath: '/tmp/k8s-webhook-server/serving-certs' },
          { name: 'config', mountPath: '/etc/widget' },
        ],
      },
      { name: 'proxy' },
    ];
    const spec = { ...deployment.spec, template: { spec: { containers, volumes } } };
    const operator = {
      install: { deployments: [{ ...deployment, spec }] },
      spec: { webhookdefinitions: [webhook] },
    };
    const podOf = (provider: 'service-ca' | 'none'): JsonObject =>
      (objectsOf(operator, { provider })['Deployment/widget'] as { spec: { template: { spec: JsonObject } } })
        .spec.template.spec;
    const mounted = podOf('service-ca');
    expect((mounted['volumes'] as JsonObject[]).map(({ name }) => name)).toEqual([
      'config',
      'webhook-cert',
      'apiservice-cert',
    ]);
    expect(mounted['containers']).toMatchObject([
      {
        volumeMounts: [
          { name: 'config', mountPath: '/etc/widget' },
          { name: 'webhook-cert', mountPath: '/tmp/k8s-webhook-server/serving-certs' },
          { name: 'apiservice-cert', mountPath: '/apiserver.local.config/certificates' },
        ],
      },
      { volumeMounts: [{ name: 'webhook-cert' }, { name: 'apiservice-cert' }] },
    ]);
    expect(podOf('none')['volumes']).toEqual(volumes);
  });

  it('configures a webhook as converter of a definition', () => {
    const objects = objectsOf(
      {
        modes: ['AllNamespaces'],
        manifests: { 'crd.yaml': smallCrd('widgets') },
        spec: { webhookdefinitions: [conversion], customresourcedefinitions: owned },
      },
      { provider: 'service-ca' },
    );
    expect(objects['CustomResourceDefinition/widgets.example.com']).toMatchObject({
      metadata: { annotations: { 'service.beta.openshift.io/inject-cabundle': 'true' } },
      spec: {
        conversion: {
          strategy: 'Webhook',
          webhook: {
            clientConfig: { service: { name: 'widget-service', namespace: 'here', path: '/', port: 443 } },
            conversionReviewVersions: ['v1'],
          },
        },
      },
      status: { acceptedNames: { kind: '', plural: '' }, conditions: null, storedVersions: null },
    });
    expect(objects['Service/widget-service']).toHaveProperty(
      ['metadata', 'annotations', 'service.beta.openshift.io/serving-cert-secret-name'],
      'widget-service-cert',
    );
  });

  it('moves objects of the bundle to the install namespace, each document and each item of a list', () => {
    const items = ['a', 'b'].map((name) => ({ apiVersion: 'v1', kind: 'ConfigMap', metadata: { name } }));
    const objects = objectsOf({
      manifests: {
        'list.json': { apiVersion: 'v1', kind: 'List', items },
        'two.yaml':
          '# first\n---\napiVersion: v1\nkind: Secret\nmetadata: {name: s, namespace: away}\n---\n\n---\napiVersion: rbac.authorization.k8s.io/v1\nkind: ClusterRole\nmetadata: {name: r, namespace: odd}\n',
      },
    });
    expect(objects['ConfigMap/a']).toHaveProperty('metadata.namespace', 'here');
    expect(objects['ConfigMap/b']).toHaveProperty('metadata.namespace', 'here');
    expect(objects['Secret/s']).toHaveProperty('metadata.namespace', 'here');
    expect(objects['ClusterRole/r']).toHaveProperty('metadata.namespace', 'odd');
  });

  it('converts a large bundle, which is read twice, to the same objects', () => {
    const operator = { manifests: { 'crd.yaml': smallCrd('widgets') } };
    expect(objectsOf(operator, { keepBelow: 0 })).toEqual(objectsOf(operator));
  });

  it('reports all faults, with file and line', () => {
    const spec = {
      webhookdefinitions: [
        { ...webhook, deploymentName: 'gone', generateName: 'check-' },
        {
          ...webhook,
          rules: [
            { apiGroups: ['*'] },
            { apiGroups: ['admissionregistration.k8s.io'], resources: ['ValidatingWebhookConfigurations'] },
          ],
        },
        webhook,
        conversion,
        { ...conversion, generateName: 'again' },
      ],
      customresourcedefinitions: { owned: [{ name: 'gadgets.example.com', kind: 'Gadget', version: 'v1' }] },
      apiservicedefinitions: {
        owned: [{ name: 'things', group: 'example.com', version: 'v1', kind: 'Thing' }],
      },
    };
    const found = findingsOf({
      spec,
      install: { deployments: [deployment, deployment, { ...deployment, name: 'Upper' }] },
      manifests: {
        'a.yaml': 'kind: Job\napiVersion: batch/v1\nmetadata:\n  name: run\n',
        'b.yaml': 'just text\n',
        'c.yaml': 'a: [\n',
        'd.yaml': 'metadata: {}\n',
        'crd.yaml': smallCrd('widgets'),
        'crd2.yaml': smallCrd('widgets'),
        'old.yaml': { ...smallCrd('old'), apiVersion: 'apiextensions.k8s.io/v1beta1' },
      },
    });
    const has = (part: string | RegExp): void => {
      expect(
        found.filter((line) => (typeof part === 'string' ? line.includes(part) : part.test(line))),
      ).toHaveLength(1);
    };
    has('manifests/a.yaml:1:1: Job "run": bundles must not hold objects of this kind');
    has('manifests/b.yaml:1:1: expected an object, got a string');
    has(/^manifests\/c\.yaml:\d+: yaml: /);
    has('manifests/d.yaml:1:1: kind: missing');
    has(
      'CustomResourceDefinition "old.example.com": apiVersion apiextensions.k8s.io/v1beta1 is not supported',
    );
    has('CustomResourceDefinition "widgets.example.com": the bundle has this definition twice');
    has('owned definition "gadgets.example.com" is not in the bundle');
    has('owned API service "things": not supported');
    has('deployment "widget": another deployment has this name');
    has('deployment "Upper": its name is not a DNS-1123 subdomain');
    has('"check-": deployment "gone" not found');
    has('"check-": its generateName is not a DNS-1123 subdomain');
    has('"check.example.com": its rules must not cover all API groups');
    has('its rules must not cover ValidatingWebhookConfigurations of admissionregistration.k8s.io');
    has('"check.example.com": another webhook of this type has this generateName');
    has('"widgets.example.com" is converted by several webhooks: again, convert.example.com');
    expect(found.filter((line) => line.includes('which the bundle does not own'))).toHaveLength(2);
    expect(found.filter((line) => line.includes('a conversion webhook needs AllNamespaces'))).toHaveLength(2);
    for (const line of found) expect(line).toMatch(/^manifests\/[\w.]+:\d+(?::\d+)?: /);
  });

  it('reports wrong types in the ClusterServiceVersion together with other faults', () => {
    const found = findingsOf({
      install: { deployments: 5, permissions: [{ serviceAccountName: [], rules: [] }] },
      manifests: { 'a.yaml': 'kind: Job\napiVersion: batch/v1\nmetadata: {name: run}\n' },
    });
    expect(found).toHaveLength(3);
    expect(found[1]).toMatch(
      /^manifests\/csv\.yaml:\d+:\d+: ClusterServiceVersion "widget.v1.0.0": spec.install.spec.deployments: expected a list, got the number 5$/,
    );
  });

  it('refuses content of another format', () => {
    const files = { manifests: [], metadata: [] };
    const { findings } = convertRegistryV1(files, { installNamespace: 'here' });
    expect(findings.map(formatMessage)).toEqual([
      'metadata/annotations.yaml is missing',
      'no ClusterServiceVersion in manifests/',
    ]);
    const content = Buffer.from('annotations:\n  a: \xff\n', 'latin1');
    const latin = { manifests: [], metadata: [{ name: 'annotations.yaml', content }] };
    const [fault] = convertRegistryV1(latin, { installNamespace: 'here' }).findings;
    expect(fault && formatDiagnostic(fault)).toBe('metadata/annotations.yaml:2: invalid UTF-8');
    const two = {
      'csv2.yaml': {
        apiVersion: 'operators.coreos.com/v1alpha1',
        kind: 'ClusterServiceVersion',
        metadata: { name: 'b' },
      },
    };
    expect(findingsOf({ manifests: two })).toEqual([
      'manifests/csv2.yaml:1:1: ClusterServiceVersion "b": another ClusterServiceVersion; manifests/csv.yaml has one already',
    ]);
    expect(findingsOf({ metadata: { 'annotations.yaml': 'annotations: {}\n' } })).toEqual([
      'metadata/annotations.yaml:1:1: package name is empty',
    ]);
  });

  it('refuses directories among the manifests', () => {
    const files = { ...smallOperator(), folders: ['old'] };
    const { findings } = convertRegistryV1(files, { installNamespace: 'here' });
    expect(findings.map(formatDiagnostic)).toEqual(['manifests/old: is a directory']);
  });

  it('refuses duplicate objects, and invalid namespaces', () => {
    const configMap = (text: string) =>
      `apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\ndata: {a: ${text}}\n`;
    expect(findingsOf({ manifests: { 'a.yaml': configMap('x'), 'b.yaml': configMap('y') } })).toEqual([
      'ConfigMap "a" in namespace "here": duplicate, from manifests/a.yaml and from manifests/b.yaml',
    ]);
    expect(convert({ manifests: { 'a.yaml': configMap('x'), 'b.yaml': configMap('x') } }).findings).toEqual(
      [],
    );
    expect(findingsOf({}, { installNamespace: 'No' })).toEqual([
      expect.stringContaining('namespace "No": not a DNS-1123 label'),
    ]);
  });

  it('refuses invalid names of objects and accounts, with their lines', () => {
    const named = (kind: string, name: unknown, apiVersion = 'v1') => ({
      apiVersion,
      kind,
      metadata: { name },
    });
    const rbac = 'rbac.authorization.k8s.io/v1';
    const manifests = {
      'a.yaml': named('ConfigMap', 'Not_Good'),
      'b.yaml': named('Service', 'x'.repeat(64)),
      'c.yaml': named('Secret', 'x'.repeat(254)),
      'd.yaml': named('ClusterRole', 'a/b', rbac),
      'e.yaml': named('ServiceAccount', 5),
      'good.yaml': named('ClusterRole', 'system:Widget_reader', rbac),
    };
    const install = { permissions: [{ serviceAccountName: 'Widget!', rules: [] }] };
    const long = 'x'.repeat(64);
    expect(findingsOf({ manifests, install })).toEqual([
      'manifests/e.yaml:5:3: ServiceAccount: metadata.name: expected a string, got the number 5',
      `manifests/a.yaml:5:3: ConfigMap "Not_Good": its name is ${noSubdomain}`,
      `manifests/b.yaml:5:3: Service "${long}": its name is longer than 63 characters`,
      `manifests/c.yaml:5:3: Secret "${'x'.repeat(254)}": its name is longer than 253 characters`,
      'manifests/d.yaml:5:3: ClusterRole "a/b": its name is not one that fits into a path',
      expect.stringMatching(/csv.*: service account "Widget!": its name is not a DNS-1123 subdomain/),
    ]);
  });

  it('reports duplicate objects together with other faults', () => {
    const config = (data: object) => ({ apiVersion: 'v1', kind: 'ConfigMap', metadata: { name: 'c' }, data });
    const manifests = {
      'a.yaml': config({ a: '1' }),
      'b.yaml': config({ a: '2' }),
      'pod.yaml': { apiVersion: 'v1', kind: 'Pod', metadata: { name: 'p' } },
    };
    expect(findingsOf({ manifests })).toEqual([
      'manifests/pod.yaml:3:2: Pod "p": bundles must not hold objects of this kind',
      'ConfigMap "c" in namespace "here": duplicate, from manifests/a.yaml and from manifests/b.yaml',
    ]);
  });

  it('warns of dropped fields, and of missing service accounts', () => {
    const spec = structuredClone(deployment.spec) as unknown as { template: { spec: JsonObject } };
    spec.template.spec['serviceAccountName'] = 'gone';
    spec.template.spec['secretName'] = 'odd';
    const { warnings, findings } = convert({ install: { deployments: [{ ...deployment, spec }] } });
    expect(findings).toEqual([]);
    expect(warnings.map(formatMessage)).toEqual([
      'spec.install.spec.deployments[0].spec.template.spec.secretName: unknown field, ignored',
      'deployment "widget": its service account "gone" is neither in the bundle nor among its permissions',
    ]);
    for (const { line } of warnings) expect(line).toBeGreaterThan(1);
  });
});
