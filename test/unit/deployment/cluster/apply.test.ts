import { tmpdir } from 'node:os';
import path from 'node:path';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { generated } from '../../../../src/bundle/plain/object.js';
import { writeObjects } from '../../../../src/bundle/plain/write.js';
import { digestOf } from '../../../../src/core/digest.js';
import type { JsonObject } from '../../../../src/core/json.js';
import { type LogLevel, silentLogger } from '../../../../src/core/log.js';
import {
  type Applicable,
  type ApplyOptions,
  type ApplyReport,
  applyPlan,
  planApply,
} from '../../../../src/deployment/cluster/apply.js';
import { readInventory } from '../../../../src/deployment/cluster/inventory.js';
import { Kubectl } from '../../../../src/deployment/cluster/kubectl.js';
import { type ApiServer, hasKubectl, startApiServer } from '../../../support/api-server.js';

let server: ApiServer;
let directory: string;
let logged: string[];
let cancel: AbortController;

beforeEach(async () => {
  server = await startApiServer();
  server.put({ apiVersion: 'v1', kind: 'Namespace', metadata: { name: 'here' } });
  directory = await mkdtemp(path.join(tmpdir(), 'opmate-test-'));
  await writeFile(path.join(directory, 'config'), server.kubeconfig);
  logged = [];
  cancel = new AbortController();
});

afterEach(async () => {
  await server.close();
  await rm(directory, { recursive: true, force: true });
});

const log = (level: LogLevel, message: string): void => void logged.push(`${level}: ${message}`);

function kubectl(): Kubectl {
  return new Kubectl({
    program: process.env['OPMATE_TEST_KUBECTL'] ?? 'kubectl',
    kubeconfig: path.join(directory, 'config'),
    environment: { PATH: process.env['PATH'], HOME: directory },
    workingDirectory: directory,
    logger: { ...silentLogger, log },
    signal: cancel.signal,
  });
}

function options(more: Partial<ApplyOptions> = {}): ApplyOptions {
  return {
    now: () => new Date('2026-01-02T03:04:05Z'),
    sleep: () => Promise.resolve(),
    logger: { ...silentLogger, log },
    signal: cancel.signal,
    ...more,
  };
}

async function deploymentOf(values: JsonObject[], name = 'widget'): Promise<Applicable> {
  const objects = values.map((value) => generated(value, 'test'));
  let text = '';
  for await (const part of writeObjects(objects, 'yaml')) text += part;
  return { name, installNamespace: 'here', version: '1.0.0', objects, pins: [], hash: digestOf(text) };
}

async function apply(values: JsonObject[], more: Partial<ApplyOptions> = {}): Promise<ApplyReport> {
  const client = kubectl();
  const plan = await planApply(client, await deploymentOf(values), options(more));
  expect(plan.findings).toEqual([]);
  return applyPlan(client, plan, options(more));
}

const configMap = (name: string, value: string, namespace = 'here'): JsonObject => ({
  apiVersion: 'v1',
  kind: 'ConfigMap',
  metadata: { name, namespace },
  data: { value },
});
const deployment = (image: string): JsonObject => ({
  apiVersion: 'apps/v1',
  kind: 'Deployment',
  metadata: { name: 'widget', namespace: 'here' },
  spec: { replicas: 1, template: { spec: { containers: [{ name: 'widget', image }] } } },
});
const definition: JsonObject = {
  apiVersion: 'apiextensions.k8s.io/v1',
  kind: 'CustomResourceDefinition',
  metadata: { name: 'widgets.example.com' },
  spec: {
    group: 'example.com',
    scope: 'Namespaced',
    names: { kind: 'Widget', plural: 'widgets' },
    versions: [{ name: 'v1', served: true, storage: true }],
  },
};
const widget: JsonObject = {
  apiVersion: 'example.com/v1',
  kind: 'Widget',
  metadata: { name: 'first' },
  spec: { size: 1 },
};
const role: JsonObject = {
  apiVersion: 'rbac.authorization.k8s.io/v1',
  kind: 'ClusterRole',
  metadata: { name: 'widget' },
  rules: [{ apiGroups: [''], resources: ['pods'], verbs: ['get'] }],
};
const webhook: JsonObject = {
  apiVersion: 'admissionregistration.k8s.io/v1',
  kind: 'ValidatingWebhookConfiguration',
  metadata: { name: 'widget', namespace: 'here' },
  webhooks: [],
};

describe.skipIf(!hasKubectl)('deployment/cluster/apply (needs kubectl)', { timeout: 30_000 }, () => {
  it('applies everything in phases and records it', async () => {
    const report = await apply([webhook, deployment('a'), widget, configMap('one', '1'), role, definition]);
    expect(report).toMatchObject({ revision: 1, removed: [], unchanged: 0 });
    expect(report.created).toHaveLength(6);
    expect(server.changes().filter((line) => !line.includes('secrets'))).toEqual([
      'PATCH customresourcedefinitions widgets.example.com',
      'PATCH clusterroles widget',
      'PATCH configmaps one',
      'PATCH widgets first',
      'PATCH deployments widget',
      'PATCH validatingwebhookconfigurations widget',
    ]);
    const { inventory } = await readInventory(kubectl(), { name: 'widget', namespace: 'here' });
    expect(inventory.objects.map(({ kind }) => kind)).toEqual([
      'CustomResourceDefinition',
      'ClusterRole',
      'ConfigMap',
      'Widget',
      'Deployment',
      'ValidatingWebhookConfiguration',
    ]);
    expect(inventory.unfinished).toBeUndefined();
    expect(inventory.revisions).toMatchObject([{ revision: 1, result: 'applied', version: '1.0.0' }]);
  });
});
