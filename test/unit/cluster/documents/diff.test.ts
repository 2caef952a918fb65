import { describe, expect, it } from 'vitest';
import { generated } from '../../../../src/kube/object.js';
import type { JsonObject } from '../../../../src/document/json.js';
import { diffObjects } from '../../../../src/cluster/documents/diff.js';

const object = (kind: string, name: string, more: JsonObject = {}, apiVersion = 'v1') =>
  generated({ apiVersion, kind, metadata: { name }, ...more }, 'test');

describe('deployment/diff', () => {
  it('lists additions, removals and changes in order, and marks removed definitions', () => {
    const older = [
      object('ConfigMap', 'same'),
      object('ConfigMap', 'b', { data: { x: '1', y: '2' } }),
      object('CustomResourceDefinition', 'w.example.com'),
    ];
    const newer = [
      object('Secret', 'new'),
      object('ConfigMap', 'b', { data: { x: '3', z: '4' } }),
      object('ConfigMap', 'same'),
    ];
    const changes = diffObjects(older, newer);
    expect(
      changes.map(({ action, kind, name, removesDefinition }) => [action, kind, name, removesDefinition]),
    ).toEqual([
      ['changed', 'ConfigMap', 'b', false],
      ['removed', 'CustomResourceDefinition', 'w.example.com', true],
      ['added', 'Secret', 'new', false],
    ]);
    expect(changes[0]?.fields).toEqual([
      { path: 'data.x', old: '1', new: '3' },
      { path: 'data.y', old: '2' },
      { path: 'data.z', new: '4' },
    ]);
    expect(changes[0]?.diff).toBe(
      '@@ -1,7 +1,7 @@\n apiVersion: v1\n data:\n-  x: "1"\n-  "y": "2"\n+  x: "3"\n+  z: "4"\n kind: ConfigMap\n metadata:\n   name: b\n',
    );
    expect(diffObjects(newer, newer)).toEqual([]);
  });

  it('masks the values of Secrets as kubectl diff does, and shows which changed', () => {
    const annotations = { 'kubectl.kubernetes.io/last-applied-configuration': '{"data":{"a":"b2xk"}}' };
    const older = [
      object('Secret', 's', { data: { a: 'b2xk', same: 'c2FtZQ==', gone: 'Z29uZQ==' } }),
      object('Secret', 'removed', { stringData: { p: 'hunter2' } }),
    ];
    const newer = [
      generated(
        {
          apiVersion: 'v1',
          kind: 'Secret',
          metadata: { name: 's', annotations },
          data: { a: 'bmV3', same: 'c2FtZQ==' },
        },
        'test',
      ),
      object('Secret', 'added', { stringData: { p: 'hunter2' } }),
    ];
    const changes = diffObjects(older, newer);
    expect(JSON.stringify(changes)).not.toMatch(/b2xk|bmV3|c2FtZ|Z29uZ|hunter2/);
    const changed = changes.find(({ name }) => name === 's');
    expect(changed?.fields.filter(({ path }) => path.startsWith('data'))).toEqual([
      { path: 'data.a', old: '*** (before)', new: '*** (after)' },
      { path: 'data.gone', old: '***' },
    ]);
    expect(changes).toHaveLength(3);
  });

  it('matches list items by name, and objects regardless of their API version', () => {
    const older = [
      object('CronJob', 'a', { list: [{ name: 'x', v: 1 }, { name: 'y' }], n: [1, 2] }, 'batch/v1beta1'),
    ];
    const newer = [
      object('CronJob', 'a', { list: [{ name: 'y' }, { name: 'x', v: 2 }], n: [1] }, 'batch/v1'),
    ];
    const [change, ...others] = diffObjects(older, newer);
    expect(others).toEqual([]);
    expect(change?.fields.map((field) => field.path)).toEqual(['apiVersion', 'list[name=x].v', 'n[1]']);
    const swapped = diffObjects(
      [object('Pod', 'a', { list: [{ name: 'x' }, { name: 'y' }] })],
      [object('Pod', 'a', { list: [{ name: 'y' }, { name: 'x' }] })],
    );
    expect(swapped[0]?.fields.map((field) => field.path)).toEqual(['list']);
  });

  it('ignores the order of keys', () => {
    const one = [object('ConfigMap', 'a', { data: { x: '1', y: '2' } })];
    expect(diffObjects(one, [object('ConfigMap', 'a', { data: { y: '2', x: '1' } })])).toEqual([]);
  });
});
