import { randomBytes } from 'node:crypto';
import { tmpdir } from 'node:os';
import { gzipSync } from 'node:zlib';
import path from 'node:path';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { describe, expect, it } from 'vitest';
import { generated } from '../../../src/kube/object.js';
import { formatMessage } from '../../../src/core/diagnostic.js';
import { writeObjects } from '../../../src/bundle/plain/write.js';
import { OpmateError } from '../../../src/core/errors.js';
import { computeDigest } from '../../../src/core/digest.js';
import type { JsonObject } from '../../../src/document/json.js';
import { type LogLevel, silentLogger } from '../../../src/core/log.js';
import { type ApplyReport, applyPlan } from '../../../src/cluster/apply/apply.js';
import { ownerAnnotation } from '../../../src/cluster/live.js';
import { planApply } from '../../../src/cluster/apply/plan-apply.js';
import type { Applicable, ApplyOptions } from '../../../src/cluster/apply/plan-types.js';
import {
  type Revision,
  type StoredRender,
  loadRender,
  readInventory,
  storeRender,
  writeInventory,
} from '../../../src/cluster/inventory.js';
import { Kubectl } from '../../../src/cluster/kubectl.js';
import { type KubeObject, hasKubectl, startApiServer } from '../../support/api-server.js';

async function deploymentOf(values: JsonObject[], name = 'widget'): Promise<Applicable> {
  const objects = values.map((value) => generated(value, 'test'));
  let text = '';
  for await (const part of writeObjects(objects, 'yaml')) text += part;
  return { name, installNamespace: 'here', version: '1.0.0', objects, pins: [], hash: computeDigest(text) };
}

const place = { name: 'widget', namespace: 'here' };

/** An API server of its own, and what the tests do with it. */
async function startCluster() {
  const server = await startApiServer();
  server.put({ apiVersion: 'v1', kind: 'Namespace', metadata: { name: 'here' } });
  const directory = await mkdtemp(path.join(tmpdir(), 'opmate-test-'));
  await writeFile(path.join(directory, 'config'), server.kubeconfig);
  const logged: string[] = [];
  const log = (level: LogLevel, message: string): void => void logged.push(`${level}: ${message}`);
  const cancel = new AbortController();
  const newKubectl = (): Kubectl =>
    new Kubectl({
      program: process.env['OPMATE_TEST_KUBECTL'] ?? 'kubectl',
      kubeconfig: path.join(directory, 'config'),
      // Each call of kubectl ends before its garbage is worth collecting.
      environment: { PATH: process.env['PATH'], HOME: directory, GOGC: 'off' },
      workingDirectory: directory,
      logger: { ...silentLogger, log },
      signal: cancel.signal,
    });
  const kubectl = newKubectl();
  const options = (more: Partial<ApplyOptions> = {}): ApplyOptions => ({
    now: () => new Date('2026-01-02T03:04:05Z'),
    sleep: () => Promise.resolve(),
    logger: { ...silentLogger, log },
    signal: cancel.signal,
    ...more,
  });
  const apply = async (values: JsonObject[], more: Partial<ApplyOptions> = {}): Promise<ApplyReport> => {
    const plan = await planApply(kubectl, await deploymentOf(values), options(more));
    expect(plan.findings).toEqual([]);
    return applyPlan(kubectl, plan, options(more));
  };
  const held = async (): Promise<string[]> =>
    (await readInventory(kubectl, place)).inventory.objects.map(({ kind, name }) => `${kind} ${name}`);
  const refusalOf = async (
    values: JsonObject[],
    more: Partial<ApplyOptions> = {},
    name?: string,
  ): Promise<string[]> => {
    const before = server.changes().length;
    const plan = await planApply(kubectl, await deploymentOf(values, name), options(more));
    expect(server.changes().length).toBe(before);
    return plan.findings.map(formatMessage);
  };
  /** Fails requests with one of these methods: `PATCH|PUT`. */
  const failing = (method: string, ending: string): void => {
    server.refuse = (request) =>
      method.split('|').includes(request.method) && request.path.endsWith(ending) && !request.isDryRun
        ? { code: 500, reason: 'InternalError', message: 'the disk is full' }
        : undefined;
  };
  const close = async (): Promise<void> => {
    await server.close();
    await rm(directory, { recursive: true, force: true });
  };
  return { server, logged, cancel, newKubectl, kubectl, options, apply, held, refusalOf, failing, close };
}

type Cluster = Awaited<ReturnType<typeof startCluster>>;

async function withCluster(work: (cluster: Cluster) => Promise<void>): Promise<void> {
  const cluster = await startCluster();
  try {
    await work(cluster);
  } finally {
    await cluster.close();
  }
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
const changedByHand = (): JsonObject => ({
  ...deployment('by hand'),
  metadata: { name: 'widget', namespace: 'here', annotations: { [ownerAnnotation]: 'here/widget' } },
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

describe.skipIf(!hasKubectl).concurrent('cluster/apply (needs kubectl)', () => {
  it('applies objects in phases and records them', () =>
    withCluster(async ({ server, kubectl, apply }) => {
      const report = await apply([webhook, deployment('a'), widget, configMap('one', '1'), role, definition]);
      expect(report).toMatchObject({ revision: 1, removed: [], unchanged: 0 });
      expect(report.created).toHaveLength(6);
      expect(server.changes().filter((line) => !line.includes('secrets'))).toEqual([
        'PATCH configmaps one',
        'PATCH customresourcedefinitions widgets.example.com',
        'PATCH clusterroles widget',
        'PATCH deployments widget',
        'PATCH widgets first',
        'PATCH validatingwebhookconfigurations widget',
      ]);
      const { inventory } = await readInventory(kubectl, { name: 'widget', namespace: 'here' });
      expect(inventory.objects.map(({ kind }) => kind)).toEqual([
        'ConfigMap',
        'CustomResourceDefinition',
        'ClusterRole',
        'Deployment',
        'Widget',
        'ValidatingWebhookConfiguration',
      ]);
      expect(inventory.unfinished).toBeUndefined();
      expect(inventory.revisions).toMatchObject([{ revision: 1, result: 'applied', version: '1.0.0' }]);
    }));

  it('updates in place and removes orphans, definitions only with force', () =>
    withCluster(async ({ server, kubectl, options, apply, held }) => {
      await apply([definition, widget, configMap('one', '1'), configMap('two', '2'), deployment('a')]);
      const uid = server.get('ConfigMap', 'one', 'here')?.metadata.uid;
      const plan = await planApply(
        kubectl,
        await deploymentOf([configMap('one', 'new'), deployment('a')]),
        options(),
      );
      expect(plan.changes.map(({ id, change }) => `${change} ${id.name}`)).toEqual([
        'change one',
        'remove first',
        'keep widgets.example.com',
        'remove two',
      ]);
      const report = await applyPlan(kubectl, plan, options());
      expect(report).toMatchObject({ revision: 2, created: [], unchanged: 1 });
      expect(report.changed.map(({ name }) => name)).toEqual(['one']);
      expect(report.removed.map(({ name }) => name).sort()).toEqual(['first', 'two']);
      expect(server.get('ConfigMap', 'one', 'here')).toMatchObject({
        metadata: { uid },
        data: { value: 'new' },
      });
      expect(server.get('ConfigMap', 'two', 'here')).toBeUndefined();
      expect(server.get('CustomResourceDefinition', 'widgets.example.com')).toBeDefined();
      expect(await held()).toContain('CustomResourceDefinition widgets.example.com');

      // What is asked for would go with it.
      const used = await apply([configMap('one', 'new'), deployment('a'), widget], { force: true });
      expect([used.removed, used.kept.map(({ name }) => name)]).toEqual([[], ['widgets.example.com']]);
      expect(server.get('Widget', 'first', 'here')).toBeDefined();
      const forced = await apply([configMap('one', 'new'), deployment('a')], { force: true });
      expect(forced.removed.map(({ name }) => name)).toEqual(['first', 'widgets.example.com']);
      expect(await held()).toEqual(['ConfigMap one', 'Deployment widget']);
    }));

  it('changes nothing on the second run, and reverts drift', () =>
    withCluster(async ({ server, apply }) => {
      await apply([configMap('one', '1'), configMap('two', '2')]);
      const writes = server.changes().length;
      expect(await apply([configMap('one', '1'), configMap('two', '2')])).toMatchObject({
        revision: undefined,
        created: [],
        changed: [],
        unchanged: 2,
      });
      expect(server.changes().slice(writes)).toEqual(['PATCH configmaps one', 'PATCH configmaps two']);
      server.remove('ConfigMap', 'two', 'here');
      const again = await apply([configMap('one', '1'), configMap('two', '2')]);
      expect(again).toMatchObject({ revision: undefined, unchanged: 1 });
      expect(again.created.map(({ name }) => name)).toEqual(['two']);
    }));

  it('restores what was on the cluster, not what the inventory stores', () =>
    withCluster(async ({ server, kubectl, options, apply, failing }) => {
      await apply([configMap('one', '1')]);
      const { inventory } = await readInventory(kubectl, place);
      const forged = await deploymentOf([configMap('one', '1'), role]);
      // Somebody with write access to Secrets of the namespace replaces the stored render.
      const render = await storeRender(kubectl, place, forged.objects);
      const [revision] = inventory.revisions;
      const revisions = [{ ...(revision as Revision), render }];
      await writeInventory(kubectl, place, {
        ...(await readInventory(kubectl, place)),
        inventory: { ...inventory, revisions },
      });
      failing('PATCH', '/deployments/widget');
      const next = await deploymentOf([configMap('one', '2'), role, deployment('a')]);
      const plan = await planApply(kubectl, next, options());
      await expect(applyPlan(kubectl, plan, options())).rejects.toThrow('previous state restored');
      expect(server.get('ConfigMap', 'one', 'here')?.['data']).toEqual({ value: '1' });
      expect(server.get('ClusterRole', 'widget')).toBeUndefined();
    }));

  it('restores the previous state when an update fails', () =>
    withCluster(async ({ server, logged, kubectl, options, apply, failing }) => {
      await apply([configMap('one', '1'), deployment('a'), role]);
      server.put({ ...configMap('found', 'by hand'), data: { other: 'by hand' } } as never);
      failing('PATCH|PUT', '/deployments/widget');
      const next = [
        configMap('one', '2'),
        configMap('new', 'x'),
        configMap('found', 'ours'),
        deployment('b'),
        definition,
      ];
      expect((await planApply(kubectl, await deploymentOf(next), options())).findings).toMatchObject([
        { code: 'exists', subject: 'ConfigMap "found" in namespace "here"' },
      ]);
      const plan = await planApply(kubectl, await deploymentOf(next), options({ takeOver: true }));
      expect(plan.findings).toEqual([]);
      await expect(applyPlan(kubectl, plan, options())).rejects.toThrow(
        /^widget: .*restoring the previous state failed.*the disk is full/,
      );
      expect(server.get('CustomResourceDefinition', 'widgets.example.com')).toBeDefined();
      // The failing object itself cannot be put back; with the cluster sound again the next run mends it.
      server.refuse = () => undefined;
      expect((await readInventory(kubectl, place)).inventory.unfinished).toBeDefined();
      await apply([configMap('one', '1'), deployment('a'), role]);
      expect(logged.join('\n')).toContain('was interrupted: recovering');
      expect((await readInventory(kubectl, place)).inventory.unfinished).toBeUndefined();
      expect(server.get('ConfigMap', 'new', 'here')).toBeUndefined();

      // A failure that only the new state meets.
      server.refuse = ({ method, path: at, body, isDryRun }) =>
        method === 'PATCH' && at.endsWith('/deployments/widget') && body.includes('"image":"b"') && !isDryRun
          ? { code: 500, reason: 'InternalError', message: 'the disk is full' }
          : undefined;
      const again = await planApply(kubectl, await deploymentOf(next), options({ takeOver: true }));
      const error = await applyPlan(kubectl, again, options()).catch((thrown: unknown) => thrown);
      expect(String(error)).toContain('not applied, previous state restored');
      expect(server.get('ConfigMap', 'one', 'here')?.['data']).toEqual({ value: '1' });
      expect(server.get('ConfigMap', 'new', 'here')).toBeUndefined();
      expect(server.get('ConfigMap', 'found', 'here')?.['data']).toEqual({ other: 'by hand' });
      const { inventory } = await readInventory(kubectl, place);
      expect(inventory.revisions.map(({ result }) => result)).toEqual(['applied', 'applied', 'failed']);
      expect(inventory.unfinished).toBeUndefined();
    }));

  it('restores the previous state when interrupted', () =>
    withCluster(async ({ server, cancel, kubectl, options, apply }) => {
      await apply([configMap('one', '1')]);
      const plan = await planApply(
        kubectl,
        await deploymentOf([configMap('one', '2'), deployment('a')]),
        options(),
      );
      server.refuse = ({ path: at, method }) => {
        if (method === 'PATCH' && at.endsWith('/deployments/widget')) cancel.abort();
        return undefined;
      };
      await expect(applyPlan(kubectl, plan, options())).rejects.toMatchObject({ code: 'CANCELLED' });
      expect(server.get('ConfigMap', 'one', 'here')?.['data']).toEqual({ value: '1' });
      expect(server.get('Deployment', 'widget', 'here')).toBeUndefined();
    }));

  it('reports missing kinds and permissions before any change', () =>
    withCluster(async ({ server, refusalOf }) => {
      expect(await refusalOf([widget, { ...configMap('x', ''), metadata: { generateName: 'x-' } }])).toEqual([
        'Widget "first": kind example.com/v1 Widget not found in the cluster',
      ]);
      expect(await refusalOf([configMap('x', '1', 'nowhere')])).toEqual([
        expect.stringContaining('namespaces "nowhere" not found'),
      ]);
      server.denied.push(
        { verb: 'create', resource: 'clusterroles' },
        { verb: 'patch', resource: 'configmaps', namespace: 'here', except: ['one'] },
      );
      expect(await refusalOf([role, configMap('one', '1'), configMap('two', '2')])).toEqual([
        'you may not patch configmaps in namespace "here": two',
        'you may not create clusterroles.rbac.authorization.k8s.io: widget',
      ]);
    }));

  it('refuses objects of other deployments, and fields of other managers unless forced', () =>
    withCluster(async ({ server, apply, refusalOf }) => {
      await apply([configMap('one', '1'), deployment('ours')]);
      expect(await refusalOf([configMap('one', '2')], {}, 'other')).toEqual([
        'ConfigMap "one" in namespace "here": belongs to the deployment "here/widget"',
      ]);
      server.put(changedByHand() as never);
      const [conflict, ...more] = await refusalOf([deployment('new'), configMap('one', '1')]);
      expect(more).toEqual([]);
      expect(conflict).toMatch(
        /^Deployment "widget" in namespace "here": Apply failed with 1 conflict: .*"somebody"/,
      );
      await apply([deployment('new'), configMap('one', '1')], { heal: 'all' });
      expect(JSON.stringify(server.get('Deployment', 'widget', 'here'))).toContain('"image":"new"');
    }));

  it('restores other objects if one has fields of another manager', () =>
    withCluster(async ({ server, kubectl, options, apply, held }) => {
      const values = [deployment('ours'), configMap('one', '1')];
      await apply(values);
      server.put(changedByHand() as never);
      server.remove('ConfigMap', 'one', 'here');
      const plan = await planApply(kubectl, await deploymentOf(values), options());
      expect(plan.findings).toEqual([]);
      expect(plan.changes.map(({ id, change }) => `${change} ${id.name}`)).toEqual([
        'add one',
        'leave widget',
      ]);
      const report = await applyPlan(kubectl, plan, options());
      expect(report.left.map(({ name }) => name)).toEqual(['widget']);
      expect(report.created.map(({ name }) => name)).toEqual(['one']);
      expect(server.get('ConfigMap', 'one', 'here')).toBeDefined();
      expect(JSON.stringify(server.get('Deployment', 'widget', 'here'))).toContain('by hand');
      expect(await held()).toEqual(['ConfigMap one', 'Deployment widget']);
      // Nothing new is applied by halves.
      const other = await planApply(kubectl, await deploymentOf([deployment('new')]), options());
      expect(other.findings).toMatchObject([{ code: 'conflict' }]);
    }));

  it('repairs a killed run and removes objects that only it created', () =>
    withCluster(async ({ server, newKubectl, kubectl, options, apply }) => {
      await apply([configMap('one', '1')]);
      const secret = server.get('Secret', 'opmate-inventory-widget', 'here');
      const plan = await planApply(
        kubectl,
        await deploymentOf([configMap('one', '2'), configMap('new', '1')]),
        options(),
      );
      // Killed: nothing of it is called any more once the marker is written and the objects are there.
      server.refuse = ({ method, path: at }) =>
        method === 'PATCH' && at.endsWith('/new')
          ? { code: 500, reason: 'InternalError', message: 'gone' }
          : undefined;
      const died = newKubectl();
      const run = died.run.bind(died);
      let isDead = false;
      died.run = async (args, call) => {
        if (isDead) throw new OpmateError('NETWORK', 'dead');
        const answer = await run(args, call);
        if (args[0] === 'apply') isDead = true;
        return answer;
      };
      await expect(applyPlan(died, plan, options())).rejects.toThrow('dead');
      server.refuse = () => undefined;
      expect(server.get('Secret', 'opmate-inventory-widget', 'here')).not.toEqual(secret);
      expect(server.get('ConfigMap', 'one', 'here')?.['data']).toEqual({ value: '2' });
      server.put(
        {
          ...configMap('new', '1'),
          metadata: { name: 'new', namespace: 'here', annotations: { [ownerAnnotation]: 'here/widget' } },
        } as never,
        'opmate',
      );
      expect(await apply([configMap('one', '1')])).toMatchObject({
        revision: 2,
        removed: [{ name: 'new' }],
      });
      expect(server.get('ConfigMap', 'one', 'here')?.['data']).toEqual({ value: '1' });
    }));

  it('refuses to run concurrently', () =>
    withCluster(async ({ server, kubectl, options }) => {
      const first = await planApply(kubectl, await deploymentOf([configMap('one', '1')]), options());
      const second = await planApply(kubectl, await deploymentOf([configMap('one', '2')]), options());
      await applyPlan(kubectl, first, options());
      await expect(applyPlan(kubectl, second, options())).rejects.toThrow(
        'another process is changing this deployment',
      );
      expect(server.get('ConfigMap', 'one', 'here')?.['data']).toEqual({ value: '1' });
    }));

  it('stores renders larger than a Secret and detects changes to them', () =>
    withCluster(async ({ server, kubectl, apply }) => {
      const large = Array.from({ length: 4 }, (_, index) =>
        configMap(`large-${index}`, randomBytes(450_000).toString('base64')),
      );
      await apply(large);
      expect(server.objects('Secret').length).toBeGreaterThan(2);
      const { inventory } = await readInventory(kubectl, place);
      const render = inventory.revisions[0]?.render as StoredRender;
      expect(render.pieces).toBeGreaterThan(1);
      const loaded = await loadRender(kubectl, place, render);
      expect(loaded.map((object) => object.load())).toEqual(large);
      const piece = server
        .objects('Secret')
        .find(({ metadata }) => metadata.name.endsWith('-0')) as KubeObject;
      server.put({ ...piece, data: { render: gzipSync('kind: Other').toString('base64') } });
      await expect(loadRender(kubectl, place, render)).rejects.toThrow('stored render of "widget"');
    }));

  it('creates the namespace of the inventory, and logs warnings of the API server', () =>
    withCluster(async ({ server, logged, apply, held }) => {
      server.remove('Namespace', 'here');
      server.warn = ({ path: at }) =>
        at.endsWith('/configmaps/one') ? ['v1 ConfigMap is out of fashion'] : [];
      const namespace = { apiVersion: 'v1', kind: 'Namespace', metadata: { name: 'here' } };
      await apply([configMap('one', '1'), namespace]);
      expect(logged.filter((line) => line.startsWith('warn'))).toEqual([
        'warn: API server: v1 ConfigMap is out of fashion',
      ]);
      expect(await held()).toEqual(['Namespace here', 'ConfigMap one']);
      // Left over, it stays with the inventory in it even when forced.
      const left = await apply([configMap('one', '1', 'kube-system')], { force: true });
      expect([left.removed.map(({ name }) => name), left.kept.map(({ name }) => name)]).toEqual([
        ['one'],
        ['here'],
      ]);
      expect(server.get('Namespace', 'here')).toBeDefined();
    }));

  it('redacts secrets in messages', () =>
    withCluster(async ({ server, kubectl, options }) => {
      const secret = {
        apiVersion: 'v1',
        kind: 'Secret',
        metadata: { name: 's', namespace: 'here' },
        stringData: { p: 'hunter2' },
      };
      server.refuse = ({ path: at }) =>
        at.endsWith('/secrets/s') && !at.includes('inventory')
          ? { code: 422, reason: 'Invalid', message: 'p: Invalid value: "hunter2": is weak' }
          : undefined;
      const plan = await planApply(kubectl, await deploymentOf([secret]), options()).catch(
        (error: unknown) => error,
      );
      const said =
        plan instanceof Error ? plan.message : JSON.stringify((plan as { findings: unknown }).findings);
      expect(said).toContain('is weak');
      expect(said).not.toContain('hunter2');
    }));
});
