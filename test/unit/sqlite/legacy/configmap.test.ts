import path from 'node:path';
import Sqlite from 'better-sqlite3';
import { describe, expect, it } from 'vitest';
import { loadConfigMap } from '../../../../src/sqlite/legacy/configmap.js';
import { editDatabase } from '../../../../src/sqlite/schema/edit.js';
import { smallCrd, smallCsv, smallPackage } from '../../../support/manifest-trees.js';
import { directoryWith } from '../../../support/temporary.js';

interface Lists {
  customResourceDefinitions?: unknown;
  clusterServiceVersions?: unknown;
  packages?: unknown;
}

/** A ConfigMap with each list as text. */
function configMap(lists: Lists): string {
  const data = Object.fromEntries(
    Object.entries(lists).map(([key, list]) => [key, typeof list === 'string' ? list : JSON.stringify(list)]),
  );
  return JSON.stringify({ apiVersion: 'v1', kind: 'ConfigMap', metadata: { name: 'manifests' }, data });
}

const good = {
  customResourceDefinitions: [smallCrd('widget')],
  clusterServiceVersions: [
    { ...smallCsv({ name: 'w.v1', owned: ['widget'] }), status: { phase: 'Succeeded' } },
  ],
  packages: [smallPackage('w', { stable: 'w.v1' })],
};

async function load(text: string) {
  const directory = await directoryWith({ 'cm.yaml': text });
  const database = path.join(directory, 'index.db');
  const report = await editDatabase(database, { create: true }, (opened) =>
    loadConfigMap(opened, path.join(directory, 'cm.yaml'), {}, { label: 'cm.yaml', permissive: true }),
  );
  return { ...report, problems: report.problems.map(({ message }) => message), objects: objectsIn(database) };
}

/** The objects of each bundle. */
function objectsIn(file: string): unknown[][] {
  const database = new Sqlite(file, { readonly: true });
  try {
    const bundles = database.prepare('SELECT bundle FROM operatorbundle').pluck().all() as Buffer[];
    return bundles.map((bundle) =>
      bundle
        .toString()
        .split('\n')
        .filter(Boolean)
        .map((text) => JSON.parse(text) as unknown),
    );
  } finally {
    database.close();
  }
}

describe('sqlite/configmap', () => {
  it('makes a bundle of each ClusterServiceVersion and the definitions that it owns', async () => {
    const { bundles, packages, problems, objects } = await load(configMap(good));
    expect({ bundles, packages, problems }).toEqual({ bundles: ['w.v1'], packages: ['w'], problems: [] });
    // Without status, and with what the types of Kubernetes always write.
    expect(objects[0]?.[0]).toEqual(smallCsv({ name: 'w.v1', owned: ['widget'] }));
    expect(objects[0]?.[1]).toEqual({
      ...smallCrd('widget'),
      spec: {
        group: 'example.com',
        version: 'v1',
        scope: 'Namespaced',
        names: { kind: 'widget', plural: 'widgets' },
        versions: [{ name: 'v1', served: true, storage: true }],
      },
      status: { acceptedNames: { kind: '', plural: '' }, conditions: null, storedVersions: null },
    });
  });

  it('keeps of a schema what its type has', async () => {
    const schema = {
      type: 'object',
      unknown: 1,
      not: {},
      maximum: 0,
      uniqueItems: false,
      default: null,
      example: [],
      items: [],
      properties: {
        a: { items: { type: 'string', x: 1 }, enum: [null, 1], description: '' },
        b: { items: [{ x: 1 }, { type: 'x' }], additionalProperties: false, required: [] },
        c: { additionalProperties: { x: 1 }, dependencies: { d: ['e'], f: { x: 1 } }, anyOf: [{ x: 1 }] },
      },
    };
    const crd = smallCrd('widget') as { spec: object };
    const definition = { ...crd, spec: { ...crd.spec, validation: { openAPIV3Schema: schema } } };
    const { objects } = await load(configMap({ ...good, customResourceDefinitions: [definition] }));
    expect(objects[0]?.[1]).toHaveProperty('spec.validation.openAPIV3Schema', {
      type: 'object',
      not: {},
      maximum: 0,
      example: [],
      items: null,
      properties: {
        a: { items: { type: 'string' }, enum: [null, 1] },
        b: { items: [{}, { type: 'x' }], additionalProperties: false },
        c: { additionalProperties: {}, dependencies: { d: ['e'], f: {} }, anyOf: [{}] },
      },
    });
  });

  it.each([
    [{ ...good, packages: undefined }, "cm.yaml: couldn't find expected key packages in configmap"],
    [{ ...good, packages: '- {' }, /^cm\.yaml: data\.packages: yaml: /],
    [{ ...good, packages: { a: 1 } }, 'cm.yaml: data.packages: expected a list, got an object'],
    [
      { ...good, packages: [...good.packages, 5] },
      'cm.yaml: data.packages[1]: expected an object, got the number 5',
    ],
    [{ ...good, packages: [{}] }, 'cm.yaml: data.packages[0]: packageName: not found'],
    [
      { ...good, customResourceDefinitions: [] },
      "cm.yaml: data.clusterServiceVersions[0]: spec.customresourcedefinitions.owned[0]: couldn't find owned CRD in crd list example.com/v1/widget (widgets)",
    ],
    [
      { ...good, customResourceDefinitions: [smallCrd('widget'), smallCrd('widget')] },
      "cm.yaml: data.customResourceDefinitions[1]: can't add the same CRD twice in one configmap: example.com/v1/widget (widgets)",
    ],
    [
      {
        ...good,
        clusterServiceVersions: [...good.clusterServiceVersions, { ...smallCsv({ name: 'x' }), kind: 'X' }],
      },
      'cm.yaml: data.clusterServiceVersions[1]: csv name not found: kind is "X", not ClusterServiceVersion',
    ],
    [
      {
        ...good,
        clusterServiceVersions: [
          ...good.clusterServiceVersions,
          { ...smallCsv({ name: 'x' }), spec: undefined },
        ],
      },
      'cm.yaml: data.clusterServiceVersions[1]: spec: not found',
    ],
  ])('tells what is wrong and loads the rest (%#)', async (lists, problem) => {
    const { bundles, problems } = await load(configMap(lists as Lists));
    expect(problems).toEqual([typeof problem === 'string' ? problem : expect.stringMatching(problem)]);
    expect(bundles).toEqual(['w.v1']);
  });

  it.each([
    ['- a\n', 'cm.yaml: expected an object, got a list'],
    ['kind: List\n', 'cm.yaml: is of kind "List", not a ConfigMap'],
    ['{}', 'cm.yaml: is of no kind, not a ConfigMap'],
    ['a: [', /^cm\.yaml:1: yaml: /],
  ])('refuses a file that is no ConfigMap (%#)', async (text, message) => {
    await expect(load(text)).rejects.toThrow(message);
  });
});
