import { describe, expect, it } from 'vitest';
import {
  createObjectSetSimulation,
  type SimulatedState,
} from '../../../../src/solve/object-sets/simulation.js';
import type { JsonObject } from '../../../../src/document/json.js';

const configMap = (name: string, value: string): JsonObject => ({
  apiVersion: 'v1',
  kind: 'ConfigMap',
  metadata: { name, namespace: 'demo' },
  data: { value },
});

function objectSet(revision: number, objects: readonly JsonObject[], spec: JsonObject = {}): JsonObject {
  return {
    apiVersion: 'olm.operatorframework.io/v1',
    kind: 'ClusterObjectSet',
    metadata: {
      name: `demo-${revision}`,
      labels: { 'olm.operatorframework.io/owner-name': 'demo' },
      annotations: { 'olm.operatorframework.io/bundle-version': `1.${revision}.0` },
    },
    spec: {
      ...{ lifecycleState: 'Active', revision, collisionProtection: 'Prevent', ...spec },
      phases: [{ name: 'configuration', objects: objects.map((object) => ({ object })) }],
    },
  };
}

/** `TYPE=STATUS REASON` of the conditions of a set, and the names of the ConfigMaps with their values. */
function describeState({ objects }: SimulatedState, set: string): [string[], string[]] {
  const found = objects.find((object) => object['kind'] === 'ClusterObjectSet' && nameOf(object) === set);
  const { conditions = [] } = (found?.['status'] ?? {}) as { conditions?: Record<string, string>[] };
  return [
    conditions.map(({ type, status, reason }) => `${type}=${status} ${reason}`),
    objects
      .filter(({ kind }) => kind === 'ConfigMap')
      .map((object) => `${nameOf(object)}=${(object['data'] as { value: string }).value}`),
  ];
}

function nameOf(object: JsonObject): string {
  return (object['metadata'] as { name: string }).name;
}

const available = [
  'Available=True ProbesSucceeded',
  'Progressing=True Succeeded',
  'Succeeded=True Succeeded',
];

describe('createObjectSetSimulation', () => {
  it('hands objects over to the next revision, archives the one before, and deletes what it lacks', () => {
    const simulate = createObjectSetSimulation();
    const first = simulate({
      do: 'create',
      object: objectSet(1, [configMap('a', '1'), configMap('gone', '1')]),
    });
    expect(describeState(first, 'demo-1')).toEqual([available, ['a=1', 'gone=1']]);
    const second = simulate({ do: 'create', object: objectSet(2, [configMap('a', '2')]) });
    expect(describeState(second, 'demo-2')).toEqual([available, ['a=2']]);
    expect(describeState(second, 'demo-1')[0]).toContain('Available=Unknown Archived');
    const id = { kind: 'ClusterObjectSet', namespace: '', name: 'demo-2' };
    expect(describeState(simulate({ do: 'delete', id }), 'demo-2')[1]).toEqual([]);
  });

  it('leaves an object of somebody else, and applies the other objects of the phase', () => {
    const simulate = createObjectSetSimulation();
    simulate({ do: 'create', object: configMap('a', 'theirs') });
    const state = simulate({
      do: 'create',
      object: objectSet(1, [configMap('a', '1'), configMap('b', '1')]),
    });
    expect(describeState(state, 'demo-1')).toEqual([['Progressing=True Retrying'], ['a=theirs', 'b=1']]);
  });

  it('reports an exceeded deadline, and a set that the API server refuses', () => {
    const simulate = createObjectSetSimulation();
    const probe = {
      selector: { type: 'GroupKind', groupKind: { group: '', kind: 'ConfigMap' } },
      assertions: [{ type: 'FieldValue', fieldValue: { fieldPath: 'data.value', value: 'ready' } }],
    };
    const spec = { progressDeadlineMinutes: 10, progressionProbes: [probe] };
    const state = simulate({ do: 'create', object: objectSet(1, [configMap('a', '1')], spec) });
    expect(describeState(state, 'demo-1')[0]).toContain('Progressing=True RollingOut');
    const later = simulate({ do: 'wait', seconds: 600 });
    expect(describeState(later, 'demo-1')[0]).toContain('Progressing=False ProgressDeadlineExceeded');
    const refused = simulate({ do: 'create', object: objectSet(2, [], { progressDeadlineMinutes: 1 }) });
    expect(refused.refusal?.causes.map(({ field }) => field)).toContain('spec.progressDeadlineMinutes');
  });
});
