import { describe, expect, it } from 'vitest';
import { readInstallConfig } from '../../../../../src/bundle/plain/registry-v1/config.js';
import { convertRegistryV1 } from '../../../../../src/bundle/plain/registry-v1/convert.js';
import { formatDiagnostic } from '../../../../../src/core/diagnostic.js';
import type { JsonObject } from '../../../../../src/document/json.js';
import { deployment, smallOperator } from '../small-operator.js';

const A = 'AllNamespaces';
const O = 'OwnNamespace';
const S = 'SingleNamespace';
const M = 'MultiNamespace';

function read(text: string, modes: string[], hasTargets = false) {
  const read = readInstallConfig(text, 'c.yaml', {
    modes,
    installNamespace: 'here',
    hasTargets,
  });
  return { ...read, said: read.findings.map(formatDiagnostic) };
}

/** The pod of the deployment when it is installed with this configuration. */
function podWith(config: object, podFields: object = {}): JsonObject {
  const template = { spec: { ...deployment.spec.template.spec, ...podFields } };
  const deployments = [{ ...deployment, spec: { ...deployment.spec, template } }];
  const { objects, findings } = convertRegistryV1(smallOperator({ install: { deployments } }), {
    installNamespace: 'here',
    config: { text: JSON.stringify({ deploymentConfig: config }), file: 'c.yaml' },
  });
  expect(findings).toEqual([]);
  const object = objects.find(({ kind }) => kind === 'Deployment')?.load();
  return (object as { spec: { template: { spec: JsonObject } } }).spec.template.spec;
}

describe('bundle/plain/registry-v1/config', () => {
  it.each([
    { modes: [A], namespace: 'here', said: ['c.yaml:1:1: watchNamespace: unknown field'] },
    { modes: [M], namespace: 'here', said: ['c.yaml:1:1: watchNamespace: unknown field'] },
    { modes: [O], namespace: 'here', said: [] },
    { modes: [O], namespace: 'there', said: ['must be the install namespace "here"'] },
    { modes: [O], namespace: 'null', said: ['c.yaml:1:1: watchNamespace: missing'] },
    { modes: [S], namespace: 'there', said: [] },
    { modes: [S], namespace: 'here', said: ['must not be the install namespace'] },
    { modes: [O, S], namespace: 'here', said: [] },
    { modes: [O, S], namespace: 'there', said: [] },
    { modes: [A, O], namespace: 'null', said: [] },
    { modes: [A, O], namespace: 'there', said: ['must be the install namespace'] },
    { modes: [A, S], namespace: 'here', said: ['must not be the install namespace'] },
    { modes: [A, O, S], namespace: 'here', said: [] },
    { modes: [A, O, S], namespace: '5', said: ['expected a string, got the number 5'] },
    { modes: [A, O, S], namespace: '""', said: ['watchNamespace: invalid namespace "": empty'] },
    {
      modes: [A, O, S],
      namespace: 'a.b',
      said: ['watchNamespace: invalid namespace "a.b": not a DNS-1123 label'],
    },
  ])('checks watchNamespace $namespace against $modes', ({ modes, namespace, said }) => {
    const result = read(`watchNamespace: ${namespace}\n`, modes);
    expect(result.said).toHaveLength(said.length);
    said.forEach((part, index) => expect(result.said[index]).toContain(part));
  });

  it('requires watchNamespace unless all namespaces or other settings apply', () => {
    expect(read('{}', [O, S]).said).toEqual(['c.yaml:1:1: watchNamespace: missing']);
    expect(read('', [O, S], true).said).toEqual([]);
    expect(read('', [A, O]).said).toEqual([]);
  });

  it('reports all mistakes with their places', () => {
    const text =
      'watch: a\ndeploymentConfig:\n  selector: {}\n  env:\n  - name: A\n    value: 5\n  resources:\n    limits:\n      cpu: much\n      cpu: 1\nwatch: b\n';
    expect(read(text, [A]).said).toEqual([
      'c.yaml:3:3: deploymentConfig.selector: unknown field',
      'c.yaml:6:5: deploymentConfig.env[0].value: expected a string, got the number 5',
      'c.yaml:10:7: deploymentConfig.resources.limits.cpu: duplicate key, first defined on line 9',
      'c.yaml:11:1: watch: duplicate key, first defined on line 1',
      'c.yaml:11:1: watch: unknown field',
    ]);
    expect(read('- a\n', [A]).said).toEqual(['c.yaml:1:1: expected an object, got a list']);
    expect(read('a: [', [A]).said[0]).toMatch(/^c\.yaml:\d+: yaml: /);
    expect(read('{}\n---\n{}\n', [A]).said).toEqual(['c.yaml:2:1: unexpected second document']);
  });

  it('warns about unknown fields of nested objects', () => {
    const { said, warnings } = read('deploymentConfig:\n  env:\n  - name: A\n    vlaue: b\n', [A]);
    expect(said).toEqual([]);
    expect(warnings.map(formatDiagnostic)).toEqual([
      'c.yaml:4:5: deploymentConfig.env[0].vlaue: unknown field, ignored',
    ]);
  });

  it('refuses a configuration that contradicts the command', () => {
    const { findings } = convertRegistryV1(smallOperator(), {
      installNamespace: 'here',
      watchNamespaces: ['there'],
      config: { text: 'watchNamespace: elsewhere\n', file: 'c.yaml' },
    });
    expect(findings.map(formatDiagnostic)).toEqual([
      'c.yaml: watchNamespace "elsewhere": conflicts with options.watchNamespace',
    ]);
  });

  it('overrides by name, appends what is missing, replaces the rest', () => {
    const container = {
      name: 'a',
      env: [
        { name: 'A', value: '1' },
        { name: 'B', value: '2' },
      ],
      envFrom: [{ configMapRef: { name: 'x' } }],
      volumeMounts: [{ name: 'v', mountPath: '/old' }],
      resources: { limits: { cpu: '1' } },
    };
    const pod = podWith(
      {
        env: [
          { name: 'A', value: '9' },
          { name: 'C', value: '3' },
        ],
        envFrom: [{ configMapRef: { name: 'x' } }, { secretRef: { name: 'y' } }],
        volumes: [{ name: 'v', emptyDir: {} }],
        volumeMounts: [{ name: 'v', mountPath: '/new' }],
        resources: { requests: { memory: '1024Mi' } },
        tolerations: [{ key: 'k' }, { key: 'old' }],
        nodeSelector: { b: 'c' },
      },
      {
        containers: [container],
        volumes: [{ name: 'v', hostPath: { path: '/' } }],
        tolerations: [{ key: 'old' }],
        nodeSelector: { a: 'b' },
      },
    );
    expect(pod).toMatchObject({
      containers: [
        {
          env: [
            { name: 'A', value: '9' },
            { name: 'B', value: '2' },
            { name: 'C', value: '3' },
          ],
          envFrom: [{ configMapRef: { name: 'x' } }, { secretRef: { name: 'y' } }],
          volumeMounts: [{ name: 'v', mountPath: '/new' }],
          resources: { requests: { memory: '1Gi' } },
        },
      ],
      volumes: [{ name: 'v', emptyDir: {} }],
      tolerations: [{ key: 'old' }, { key: 'k' }],
    });
    expect(pod['nodeSelector']).toEqual({ b: 'c' });
  });

  it('keeps, erases and replaces parts of an affinity', () => {
    const term = { labelSelector: { matchLabels: { a: 'b' } }, topologyKey: 'host' };
    const podAffinity = { requiredDuringSchedulingIgnoredDuringExecution: [term] };
    const affinity = { podAffinity, podAntiAffinity: podAffinity };
    expect(podWith({ affinity: { podAffinity: {} } }, { affinity })['affinity']).toEqual({
      podAntiAffinity: podAffinity,
    });
    expect(podWith({ affinity: {} }, { affinity })).not.toHaveProperty('affinity');
    expect(podWith({ affinity: { podAffinity: {}, podAntiAffinity: {} } }, { affinity })).not.toHaveProperty(
      'affinity',
    );
    expect(podWith({ affinity }, {})['affinity']).toEqual(affinity);
    expect(podWith({ env: [] }, { affinity })['affinity']).toEqual(affinity);
  });
});
