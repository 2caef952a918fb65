import path from 'node:path';
import { describe, expect, it } from 'vitest';
import { bundlesDirectory, useSandbox } from '../support/command-line.js';

const sandbox = useSandbox();
const silicom = path.join(bundlesDirectory, 'silicom-sts-operator/0.0.1');
const skupper = path.join(bundlesDirectory, 'skupper-operator/1.9.0');

function crd(name: string, property: string): string {
  return `apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata:
  name: ${name}
spec:
  group: example.com
  names: {plural: widgets, kind: Widget}
  scope: Namespaced
  versions:
  - name: v1
    served: true
    storage: true
    schema:
      openAPIV3Schema:
        type: object
        properties:
          ${property}
`;
}

const check = ['bundle', 'check-crd-upgrade'];

describe('opmate bundle check-crd-upgrade', () => {
  it('passes equal bundles', async () => {
    for (const bundle of [silicom, skupper]) {
      expect(await sandbox.run([...check, bundle, bundle])).toEqual({ code: 0, stdout: '', stderr: '' });
    }
  });

  it('reports breaking changes with file and line, or as data', async () => {
    await sandbox.write({
      'old.yaml': crd('widgets.example.com', 'size: {type: integer}'),
      'new.yaml': crd('widgets.example.com', 'size: {type: string}'),
    });
    const { code, stdout, stderr } = await sandbox.run([...check, 'old.yaml', 'new.yaml']);
    expect({ code, stdout, stderr }).toEqual({
      code: 3,
      stdout: '',
      stderr:
        'error: new.yaml:17:11: CustomResourceDefinition "widgets.example.com": v1: ^.size: type: changed: "integer" -> "string"\n',
    });
    const json = await sandbox.run([...check, 'old.yaml', 'new.yaml', '-o', 'json']);
    expect([json.code, json.stderr]).toEqual([3, '']);
    expect(JSON.parse(json.stdout)).toMatchObject({
      findings: [
        { crd: 'widgets.example.com', version: 'v1', property: '^.size', code: 'type', file: 'new.yaml' },
      ],
    });
    const passed = await sandbox.run([...check, 'old.yaml', 'old.yaml', '-o', 'yaml']);
    expect(passed).toEqual({ code: 0, stdout: 'findings: []\n', stderr: '' });
  });

  it('refuses bundles without anything to compare', async () => {
    await sandbox.write({
      'one.yaml': crd('widgets.example.com', 'a: {}'),
      'other.yaml': crd('gadgets.example.com', 'a: {}'),
      'none.yaml': 'kind: ConfigMap\napiVersion: v1\nmetadata: {name: a}\n',
      'broken.yaml': 'kind: [\n',
    });
    for (const [next, code, said] of [
      ['other.yaml', 1, 'other.yaml: has none of the definitions of one.yaml'],
      ['none.yaml', 1, 'none.yaml: holds no CustomResourceDefinition among 1 object'],
      ['gone.yaml', 1, 'gone.yaml'],
      ['broken.yaml', 3, 'broken.yaml:'],
    ] as const) {
      const result = await sandbox.run([...check, 'one.yaml', next]);
      expect([next, result.code, result.stdout]).toEqual([next, code, '']);
      expect(result.stderr).toContain(said);
    }
  });
});
