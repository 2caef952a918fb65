import { describe, expect, it } from 'vitest';
import { formatMessage } from '../../../../src/core/diagnostic.js';
import { parseAvailableApis, withAvailableApis } from '../../../../src/bundle/plain/available-apis.js';
import { generated } from '../../../../src/kube/object.js';
import { OpmateError } from '../../../../src/core/errors.js';
import type { JsonObject } from '../../../../src/document/json.js';
import { smallCrd } from './small-operator.js';

const table = `NAME          SHORTNAMES   APIVERSION                          NAMESPACED   KIND
configmaps    cm           v1                                  true         ConfigMap
crds          crd,crds     apiextensions.k8s.io/v1             false        CustomResourceDefinition
`;

function object(apiVersion: string, kind: string, name: string) {
  return generated({ apiVersion, kind, metadata: { name } }, 'a.yaml');
}

describe('bundle/plain/available-apis', () => {
  it('reads the table, the wide table, lines and JSON', () => {
    const expected = ['/v1/ConfigMap', 'apiextensions.k8s.io/v1/CustomResourceDefinition'];
    expect([...parseAvailableApis(table, 'f')]).toEqual(expected);
    const wide = table
      .replace('KIND\n', 'KIND                       VERBS      CATEGORIES\n')
      .replace(/(\S+)\n(?=c|$)/g, (line) =>
        line.startsWith('CATEGORIES') ? line : `${line.trim().padEnd(26)} get,list   all\n`,
      );
    expect([...parseAvailableApis(wide, 'f')]).toEqual(expected);
    expect([
      ...parseAvailableApis(
        '# mine\nv1 ConfigMap\n\napiextensions.k8s.io/v1 CustomResourceDefinition\n',
        'f',
      ),
    ]).toEqual(expected);
    const resources = [
      { name: 'configmaps', group: '', version: 'v1', kind: 'ConfigMap' },
      { name: 'crds', group: 'apiextensions.k8s.io', version: 'v1', kind: 'CustomResourceDefinition' },
    ];
    expect([...parseAvailableApis(JSON.stringify({ kind: 'APIResourceList', resources }), 'f')]).toEqual(
      expected,
    );
  });

  it('refuses other input, with its line', () => {
    const failure = (text: string): unknown => {
      try {
        parseAvailableApis(text, 'f');
      } catch (error) {
        return error instanceof OpmateError ? [error.message, error.line] : error;
      }
      return undefined;
    };
    expect(failure(`${table}nonsense\n`)).toEqual(['f:4: expected a line of kubectl api-resources', 4]);
    expect(failure('one two three\n')).toEqual(['f:1: expected a line of kubectl api-resources', 1]);
    expect(failure('')).toEqual(['f: no kinds found', undefined]);
    expect(failure('kind: APIResourceList\n')).toEqual(['f: resources: expected a list', undefined]);
  });

  it('skips optional kinds, and reports other missing ones', () => {
    const apis = parseAvailableApis(table, 'f');
    const objects = [
      object('v1', 'ConfigMap', 'a'),
      object('monitoring.coreos.com/v1', 'ServiceMonitor', 'b'),
      object('example.com/v1', 'Widget', 'c'),
      object('example.com/v2', 'Widget', 'd'),
      generated(smallCrd('widgets') as JsonObject, 'crd.yaml'),
    ];
    const some = withAvailableApis(objects, apis, new Set(['ServiceMonitor']));
    expect(some.objects.map(({ name }) => name)).toEqual(['a', 'c', 'widgets.example.com']);
    expect(some.skipped.map(({ name }) => name)).toEqual(['b']);
    expect(some.findings.map(formatMessage)).toEqual([
      'example.com/v2 Widget: kind missing in the cluster, required by "d"',
    ]);
    const all = withAvailableApis(objects, apis, 'all');
    expect(all.skipped.map(({ name }) => name)).toEqual(['b', 'd']);
    expect(all.findings).toEqual([]);
  });
});
