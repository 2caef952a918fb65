import { execFileSync } from 'node:child_process';
import path from 'node:path';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { generated } from '../../../src/kube/object.js';
import type { JsonObject } from '../../../src/document/json.js';
import { diffObjects } from '../../../src/deployment/diff.js';
import { unifiedDiff } from '../../../src/deployment/line-diff.js';
import { directoryWith } from '../../support/temporary.js';

const object = (kind: string, name: string, more: JsonObject = {}, apiVersion = 'v1') =>
  generated({ apiVersion, kind, metadata: { name }, ...more }, 'test');

describe('deployment/diff', () => {
  it('finds what is added, removed and changed, in order, and marks definitions that go', () => {
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

  it('knows items of lists by their names, and objects whatever the version of their API', () => {
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

  it('does not count the order of keys', () => {
    const one = [object('ConfigMap', 'a', { data: { x: '1', y: '2' } })];
    expect(diffObjects(one, [object('ConfigMap', 'a', { data: { y: '2', x: '1' } })])).toEqual([]);
  });
});

describe('deployment/line-diff', () => {
  const patched = async (older: string, newer: string): Promise<string> => {
    const diff = unifiedDiff(older, newer);
    if (diff === '') return older;
    const directory = await directoryWith({ old: older, patch: `--- old\n+++ old\n${diff}` });
    execFileSync('patch', ['-s', '-F0', path.join(directory, 'old'), path.join(directory, 'patch')]);
    return execFileSync('cat', [path.join(directory, 'old')], { encoding: 'utf8' });
  };

  it('gives patches that make the one text of the other', async () => {
    const line = fc.constantFrom('a', 'b', 'c', '- d', '');
    const text = fc.array(line, { maxLength: 40 }).map((lines) => lines.map((one) => `${one}\n`).join(''));
    await fc.assert(
      fc.asyncProperty(text, text, async (older, newer) => {
        const diff = unifiedDiff(older, newer);
        const kept = (sign: string): string =>
          diff
            .split('\n')
            .filter((one) => one.startsWith(sign))
            .join('\n');
        expect(diff === '').toBe(older === newer);
        expect(kept('@@').length > 0).toBe(older !== newer);
        if (older !== '' && newer !== '') expect(await patched(older, newer)).toBe(newer);
      }),
      { numRuns: 60 },
    );
  });

  it('shows what is too different as replaced, and stays quick', async () => {
    const many = (prefix: string): string =>
      Array.from({ length: 20_000 }, (_, index) => `${prefix}${index}\n`).join('');
    const diff = unifiedDiff(`same\n${many('a')}end\n`, `same\n${many('b')}end\n`);
    expect(diff.startsWith('@@ -1,20002 +1,20002 @@\n same\n-a0\n-a1\n')).toBe(true);
    expect(await patched(`same\n${many('a')}end\n`, `same\n${many('b')}end\n`)).toBe(
      `same\n${many('b')}end\n`,
    );
  });
});
