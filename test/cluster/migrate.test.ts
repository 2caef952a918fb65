import { readFile } from 'node:fs/promises';
import path from 'node:path';
import { loadAll } from 'js-yaml';
import { describe, expect, it } from 'vitest';
import { findOlmV1Schema } from '../../src/kube/definitions/olm-v1.js';
import { useSandbox } from '../support/command-line.js';
import { useOperatorRegistry } from '../support/operator-registry.js';
import { deploymentIn } from './deployments.js';
import { useCluster } from './world.js';

const sandbox = useSandbox();
useOperatorRegistry(sandbox);
const { kubectl, get, newNamespace } = useCluster();

interface Rendered {
  apiVersion: string;
  kind: string;
  metadata: { name: string; namespace?: string; labels?: Record<string, string> };
}

const olm = 'operators.coreos.com';
const csvName = 'widget.v1.0.0';

function define(
  kind: string,
  names: { group: string; version: string; scope: string },
  openAPIV3Schema: object,
): void {
  const plural = `${kind.toLowerCase()}s`;
  const { group, version, scope } = names;
  kubectl(['apply', '--server-side', '-f', '-'], {
    apiVersion: 'apiextensions.k8s.io/v1',
    kind: 'CustomResourceDefinition',
    metadata: { name: `${plural}.${group}`, annotations: { 'api-approved.kubernetes.io': 'unapproved' } },
    spec: {
      group,
      scope,
      names: { kind, plural, singular: kind.toLowerCase(), listKind: `${kind}List` },
      versions: [
        {
          name: version,
          served: true,
          storage: true,
          schema: { openAPIV3Schema },
          subresources: { status: {} },
        },
      ],
    },
  });
  kubectl(['wait', '--for=condition=Established', `crd/${plural}.${group}`, '--timeout=30s']);
}

/** Defines the kinds of OLM v0, without a schema, and those of OLM v1, with their rules. */
function defineOlm(): void {
  const open = { type: 'object', 'x-kubernetes-preserve-unknown-fields': true };
  const v1alpha1 = { group: olm, version: 'v1alpha1', scope: 'Namespaced' };
  for (const kind of ['Subscription', 'ClusterServiceVersion', 'CatalogSource']) define(kind, v1alpha1, open);
  define('OperatorGroup', { ...v1alpha1, version: 'v1' }, open);
  for (const kind of ['ClusterCatalog', 'ClusterExtension', 'ClusterObjectSet']) {
    const names = { group: 'olm.operatorframework.io', version: 'v1', scope: 'Cluster' };
    define(kind, names, findOlmV1Schema(kind, 'experimental') ?? open);
  }
}

/** Creates a namespaced object of OLM v0 with its status. */
function create(
  kind: string,
  name: string,
  namespace: string,
  fields: { spec?: object; status?: object },
): void {
  const version = kind === 'OperatorGroup' ? 'v1' : 'v1alpha1';
  const object = { apiVersion: `${olm}/${version}`, kind, metadata: { name, namespace }, ...fields };
  kubectl(['apply', '-f', '-'], object);
  kubectl([
    ...['patch', `${kind.toLowerCase()}s.${olm}`, name, '-n', namespace, '--subresource=status'],
    ...['--type=merge', '-p', JSON.stringify({ status: fields.status ?? {} })],
  ]);
}

describe('opmate cluster migrate on a cluster', () => {
  it(
    'writes documents that deployment verbs apply and roll back, without another UID',
    { timeout: 300_000 },
    async () => {
      defineOlm();
      const namespace = newNamespace();
      const { run } = deploymentIn(sandbox, namespace);
      const package_ = ['widget', '--catalog=src=operators', '--version=1.0.0', '-n', namespace];
      const rendered = await sandbox.run(['deployment', 'render', ...package_]);
      expect(rendered.code).toBe(0);
      const objects = loadAll(rendered.stdout) as Rendered[];

      // What OLM v0 has on a cluster.
      create('CatalogSource', 'src', namespace, {
        spec: { sourceType: 'grpc', image: 'registry.example.com/operators/catalog:v1' },
      });
      create('OperatorGroup', 'group', namespace, { spec: {}, status: { namespaces: [''] } });
      create('ClusterServiceVersion', csvName, namespace, {
        spec: { version: '1.0.0', installModes: [{ type: 'AllNamespaces', supported: true }] },
        status: { phase: 'Succeeded', reason: 'InstallSucceeded' },
      });
      create('Subscription', 'widget', namespace, {
        spec: {
          name: 'widget',
          channel: 'stable',
          source: 'src',
          sourceNamespace: namespace,
          installPlanApproval: 'Manual',
        },
        status: { state: 'AtLatestKnown', installedCSV: csvName },
      });
      const labels = {
        'olm.owner': csvName,
        'olm.owner.kind': 'ClusterServiceVersion',
        'olm.owner.namespace': namespace,
        'olm.managed': 'true',
        [`${olm}/widget.${namespace}`]: '',
      };
      // Pods need their service account.
      const isAccount = ({ kind }: Rendered): number => Number(kind === 'ServiceAccount');
      for (const object of [...objects].sort((a, b) => isAccount(b) - isAccount(a))) {
        kubectl(['create', '--field-manager=olm', '-f', '-'], {
          ...object,
          metadata: { ...object.metadata, labels: { ...object.metadata.labels, ...labels } },
        });
      }
      const uids = (): (string | undefined)[] =>
        objects.map(({ kind, metadata }) => get(kind, metadata.name, metadata.namespace)?.metadata.uid);
      const before = uids();
      expect(before).not.toContain(undefined);
      const listPods = (): string =>
        kubectl(['get', 'pods', '-n', namespace, '-o', 'jsonpath={.items[*].metadata.uid}']);
      await expect.poll(listPods, { timeout: 30_000 }).not.toBe('');
      const pods = listPods();

      const kinds = ['subscriptions', 'clusterserviceversions', 'operatorgroups', 'catalogsources'];
      const snapshot = [
        ...kinds.map((kind) => ['get', `${kind}.${olm}`, '-n', namespace]),
        ['get', 'deployments,serviceaccounts,roles,rolebindings', '-n', namespace],
        ['get', 'customresourcedefinitions,clusterroles,clusterrolebindings'],
      ].map((args, index) => [`snapshot/${index}.json`, kubectl([...args, '-o', 'json'])] as const);
      await sandbox.write(Object.fromEntries(snapshot));
      const migrated = await sandbox.run([
        ...['cluster', 'migrate', 'snapshot', '--catalog', 'src=operators', '--to', 'migration'],
      ]);
      expect([migrated.code, migrated.stderr]).toEqual([0, '']);
      expect(migrated.stdout).toContain(`${namespace}/widget: widget 1.0.0: ready`);
      const file = `migration/${namespace}_widget.yaml`;
      for (const name of [file, 'migration/00-catalogs.yaml']) {
        // The rules of the definitions are those of OLM v1.
        kubectl(
          ['apply', '--server-side', '--dry-run=server', '-f', '-'],
          await readFile(path.join(sandbox.work, name), 'utf8'),
        );
      }

      const adopted = await run(
        ...(['adopt', '-f', file, '-f', 'migration/00-catalogs.yaml', '--catalog=src=operators'] as const),
        ...['--from', `olm:${namespace}/${csvName}`, '--yes', '--timeout=60s'],
      );
      expect([adopted.code, adopted.stderr.replace(/^(?:info|warn): .*\n/gm, '')]).toEqual([0, '']);
      expect([uids(), listPods()]).toEqual([before, pods]);
      expect(get(`subscriptions.${olm}`, 'widget', namespace)).toBeUndefined();
      expect(get(`clusterserviceversions.${olm}`, csvName, namespace)).toBeUndefined();
      expect((await run('status', 'widget', '-n', namespace)).code).toBe(0);

      const ended = await run('delete', 'widget', '-n', namespace, '--cascade', 'orphan', '--yes');
      expect([ended.code, ended.stderr]).toEqual([0, '']);
      expect(ended.stdout).toContain(`widget: deleted: 0 removed, ${objects.length} released`);
      kubectl(
        ['apply', '-f', '-'],
        await readFile(path.join(sandbox.work, `migration/rollback/${namespace}_widget.yaml`), 'utf8'),
      );
      expect([uids(), listPods()]).toEqual([before, pods]);
      expect(get(`subscriptions.${olm}`, 'widget', namespace)?.spec).toMatchObject({ name: 'widget' });
      expect(get('deployment', 'widget-manager', namespace)?.metadata.annotations).not.toHaveProperty([
        'opmate.dev/deployment',
      ]);
      expect((await run('status', 'widget', '-n', namespace)).stderr).toContain('no deployment of this name');
    },
  );
});
