import { describe, expect, it } from 'vitest';
import { type ProgressionProbe, probeObject } from '../../../../src/bundle/object-set/probes.js';
import type { JsonObject } from '../../../../src/document/json.js';

function deployment(status: JsonObject, generation = 1): JsonObject {
  return { apiVersion: 'apps/v1', kind: 'Deployment', metadata: { name: 'x', generation }, status };
}

const available = [{ type: 'Available', status: 'True' }];

describe('probes of a ClusterObjectSet', () => {
  it('pass for a Deployment with all replicas updated and available', () => {
    const status = { replicas: 2, updatedReplicas: 2, conditions: available };
    expect(probeObject(deployment(status))).toEqual({ status: 'True', messages: [] });
  });

  it('fail for a Deployment without replicas, as in operator-controller', () => {
    expect(probeObject(deployment({ conditions: available }))).toEqual({
      status: 'False',
      messages: ['"status.updatedReplicas" missing'],
    });
  });

  it('prefer unknown results over failed ones, with their messages only', () => {
    expect(probeObject(deployment({ replicas: 1, updatedReplicas: 0 }))).toEqual({
      status: 'Unknown',
      messages: ['missing .status.conditions'],
    });
  });

  it('wait for the observed generation, once per probe and even for kinds without a probe', () => {
    const service = {
      apiVersion: 'v1',
      kind: 'Service',
      metadata: { name: 'x', generation: 3 },
      status: { observedGeneration: 2 },
    };
    expect(probeObject(service)).toEqual({
      status: 'Unknown',
      messages: Array.from({ length: 7 }, () => '.status outdated'),
    });
    expect(probeObject(service, [])).toEqual({ status: 'True', messages: [] });
  });

  it('compare a field with text only, and name parents that are no objects', () => {
    const probe: ProgressionProbe = {
      selector: { type: 'Label', label: { matchLabels: { app: 'a' } } },
      assertions: [
        { type: 'FieldValue', fieldValue: { fieldPath: 'status.count', value: '3' } },
        { type: 'FieldValue', fieldValue: { fieldPath: 'status.count.deep', value: '3' } },
      ],
    };
    const object = { metadata: { labels: { app: 'a' } }, status: { count: 3 } };
    expect(probeObject(object, [probe]).messages).toEqual([
      'value at key "status.count" != "3"; expected: "3" got: 3',
      'error locating key "status.count.deep"; .status.count.deep accessor error: 3 is of the type int64, expected map[string]interface{}',
    ]);
    expect(probeObject({ metadata: { labels: { app: 'b' } } }, [probe]).status).toBe('True');
  });

  it('refuse unknown operators of label selectors', () => {
    const label = { matchExpressions: [{ key: 'a', operator: 'Near', values: ['b'] }] };
    const probe: ProgressionProbe = { selector: { type: 'Label', label }, assertions: [] };
    expect(() => probeObject({}, [probe])).toThrow('"Near" is not a valid label selector operator');
  });
});
