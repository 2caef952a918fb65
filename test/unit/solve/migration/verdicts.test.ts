import { describe, expect, it } from 'vitest';
import { ClusterIndex } from '../../../../src/solve/migration/cluster-index.js';
import type { Acknowledgment } from '../../../../src/solve/migration/options.js';
import { judgeMigration } from '../../../../src/solve/migration/verdicts.js';
import { type Changes, findOffer, smallCluster } from './small-cluster.js';

function judge(
  changes: Changes = {},
  acknowledged: Acknowledgment[] = [],
  further: Parameters<typeof smallCluster>[1] = [],
) {
  const cluster = new ClusterIndex(smallCluster(changes, further));
  return judgeMigration(cluster, findOffer, new Set(acknowledged));
}

function failedChecks(...given: Parameters<typeof judge>): string[] {
  return judge(...given).flatMap(({ checks }) =>
    checks.filter(({ passed }) => !passed).map(({ message }) => message),
  );
}

describe('verdicts on the migration to OLM v1', () => {
  it('find an operator eligible that passes all checks', () => {
    const [verdict] = judge();
    expect(verdict).toMatchObject({ status: 'Eligible', version: '1.0.0', warnings: [] });
    expect(verdict?.checks.at(-1)?.message).toBe('package available in ClusterCatalog src');
  });

  it('leave the catalog unchecked while another check fails', () => {
    const [verdict] = judge({
      Subscription: { status: { state: 'UpgradeAvailable' } },
      ClusterCatalog: null,
    });
    expect(verdict).toMatchObject({ status: 'Ineligible', reason: '1 check(s) failed' });
    expect(verdict?.checks.some(({ name }) => name === 'Catalog availability')).toBe(false);
  });

  it('accept what is acknowledged, but no install mode that the bundle lacks', () => {
    const changes: Changes = {
      OperatorGroup: { spec: { targetNamespaces: ['a'] }, status: { namespaces: ['a'] } },
      ClusterServiceVersion: { spec: { installModes: [{ type: 'OwnNamespace', supported: true }] } },
    };
    expect(failedChecks(changes)).toHaveLength(3);
    expect(failedChecks(changes, ['watch-scope-change'])).toEqual([
      'CSV does not declare AllNamespaces install mode as supported; --acknowledge-watch-scope-change cannot override bundle capabilities',
    ]);
  });

  it('quote dependencies as the bundle writes them', () => {
    const properties = '[{"type":"olm.gvk.required","value":{"kind": "K",  "group":"g"}}]';
    const annotations = { 'operatorframework.io/properties': properties };
    expect(failedChecks({ ClusterServiceVersion: { metadata: { annotations } } })).toEqual([
      'bundle declares olm.gvk.required dependency: {"kind": "K",  "group":"g"}',
    ]);
  });

  it('report properties that cannot be read, and a missing InstallPlan', () => {
    const annotations = { 'operatorframework.io/properties': '{"properties": [1]}' };
    expect(failedChecks({ ClusterServiceVersion: { metadata: { annotations } } })[0]).toMatch(
      /^failed to parse bundle properties: /,
    );
    expect(judge({ Subscription: { status: { installPlanRef: { name: 'install-x' } } } })[0]?.reason).toBe(
      'failed to get CSV: failed to get InstallPlan install-x: installplans.operators.coreos.com "install-x" not found',
    );
  });

  it('tell a conflict and an operator that is migrated already from others', () => {
    const extension = (name: string, reference: string) => ({
      apiVersion: 'olm.operatorframework.io/v1',
      kind: 'ClusterExtension',
      metadata: {
        name,
        annotations: { 'olm.operatorframework.io/migrated-from-subscription': reference },
      },
    });
    const verdicts = judge({}, [], [extension('demo', 'op/demo'), extension('gone', 'op/gone')]);
    expect(verdicts.map(({ subscription, status }) => [subscription, status])).toEqual([
      ['demo', 'Conflict'],
      ['gone', 'AlreadyMigrated'],
    ]);
  });
});
