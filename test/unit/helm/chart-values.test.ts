import { describe, expect, it } from 'vitest';
import { findChartImages } from '../../../src/helm/chart-images.js';
import { prepareChart } from '../../../src/helm/chart-values.js';
import { type Chart, loadChart } from '../../../src/helm/chart.js';
import { renderChart } from '../../../src/helm/render-chart.js';

function load(files: Readonly<Record<string, string>>): Promise<Chart> {
  return loadChart(new Map(Object.entries(files).map(([path, text]) => [path, Buffer.from(text)])), 'chart');
}

/** Files of a chart, and the values that Helm 3.21.4 renders each template with. */
const rendered: [what: string, files: Record<string, string>, values: Record<string, unknown>][] = [
  [
    'takes a default of a sub-chart away by null',
    {
      'Chart.yaml':
        '{"apiVersion": "v2", "name": "root", "version": "1.0.0", "dependencies": [{"name": "a", "version": "1.x"}]}',
      'values.yaml': 'a: {x: null, w: {z: null}, own: null}\n',
      'charts/a/Chart.yaml': '{"apiVersion": "v2", "name": "a", "version": "1.0.0"}',
      'charts/a/values.yaml': '{x: 1, w: {z: 2, q: 3}, v: null}',
      'charts/a/templates/t.yaml': '{{ toJson .Values }}',
    },
    { 'charts/a/templates/t.yaml': { global: {}, own: null, w: { q: 3 } } },
  ],
  [
    'keeps a sub-chart whose version no dependency allows, whatever its condition',
    {
      'Chart.yaml':
        '{"apiVersion": "v2", "name": "root", "version": "1.0.0", "dependencies": [{"name": "a", "version": "2.x", "condition": "a.enabled"}]}',
      'values.yaml': 'a: {enabled: false}',
      'charts/a/Chart.yaml': '{"apiVersion": "v2", "name": "a", "version": "1.0.0"}',
      'charts/a/templates/t.yaml': '{{ toJson .Values }}',
    },
    {},
  ],
  [
    'applies tags of the root at all depths, and conditions from the root',
    {
      'Chart.yaml':
        '{"apiVersion": "v2", "name": "root", "version": "1.0.0", "dependencies": [{"name": "a", "version": "*"}]}',
      'values.yaml': 'tags: {db: false}\na: {c: {enabled: true}}\n',
      'charts/a/Chart.yaml':
        '{"apiVersion": "v2", "name": "a", "version": "1.0.0", "dependencies": [{"name": "b", "version": "*", "tags": ["db"]}, {"name": "c", "version": "*", "tags": ["db"], "condition": "c.enabled"}]}',
      'charts/a/charts/b/Chart.yaml': '{"apiVersion": "v2", "name": "b", "version": "1.0.0"}',
      'charts/a/charts/b/templates/t.yaml': '{{ toJson .Values }}',
      'charts/a/charts/c/Chart.yaml': '{"apiVersion": "v2", "name": "c", "version": "1.0.0"}',
      'charts/a/charts/c/templates/t.yaml': '{{ toJson .Values }}',
    },
    { 'charts/a/charts/c/templates/t.yaml': { enabled: true, global: {} } },
  ],
  [
    'checks no conditions below a chart without dependencies',
    {
      'Chart.yaml': '{"apiVersion": "v2", "name": "root", "version": "1.0.0"}',
      'values.yaml': 'a: {b: {enabled: false}}\n',
      'charts/a/Chart.yaml':
        '{"apiVersion": "v2", "name": "a", "version": "1.0.0", "dependencies": [{"name": "b", "version": "*", "condition": "b.enabled"}]}',
      'charts/a/charts/b/Chart.yaml': '{"apiVersion": "v2", "name": "b", "version": "1.0.0"}',
      'charts/a/charts/b/templates/t.yaml': '{{ toJson .Values }}',
    },
    { 'charts/a/charts/b/templates/t.yaml': { enabled: false, global: {} } },
  ],
  [
    'imports values of sub-charts, which those of the chart override',
    {
      'Chart.yaml':
        '{"apiVersion": "v2", "name": "root", "version": "1.0.0", "dependencies": [{"name": "a", "version": "*", "alias": "x", "import-values": ["data", {"child": "sub.deep", "parent": "at.here"}]}]}',
      'values.yaml': 'k: root\n',
      'templates/t.yaml': '{{ toJson .Values }}',
      'charts/a/Chart.yaml': '{"apiVersion": "v2", "name": "a", "version": "1.0.0"}',
      'charts/a/values.yaml': '{exports: {data: {k: a, l: [1]}}, sub: {deep: {m: 1}}}',
    },
    {
      'templates/t.yaml': {
        at: { here: { m: 1 } },
        k: 'root',
        l: [1],
        x: { exports: { data: { k: 'a', l: [1] } }, global: {}, sub: { deep: { m: 1 } } },
      },
    },
  ],
  [
    'imports values by names, not aliases, below a chart without dependencies',
    {
      'Chart.yaml': '{"apiVersion": "v2", "name": "root", "version": "1.0.0"}',
      'charts/a/Chart.yaml':
        '{"apiVersion": "v2", "name": "a", "version": "1.0.0", "dependencies": [{"name": "b", "version": "*", "alias": "x", "import-values": ["data"]}]}',
      'charts/a/templates/t.yaml': '{{ toJson (list .Values.k (first .Chart.Dependencies).Name) }}',
      'charts/a/charts/b/Chart.yaml': '{"apiVersion": "v2", "name": "b", "version": "1.0.0"}',
      'charts/a/charts/b/values.yaml': '{exports: {data: {k: b}}}',
    },
    { 'charts/a/templates/t.yaml': ['b', 'b'] },
  ],
  [
    'merges maps imported to one place, also in the values of the first sub-chart',
    {
      'Chart.yaml':
        '{"apiVersion": "v2", "name": "root", "version": "1.0.0", "dependencies": [{"name": "e", "version": "*", "import-values": [{"child": "m", "parent": "all"}]}, {"name": "a", "version": "*", "import-values": [{"child": "m", "parent": "all"}]}, {"name": "b", "version": "*", "import-values": [{"child": "m", "parent": "all"}]}]}',
      'templates/t.yaml': '{{ toJson (list .Values.all .Values.e.m .Values.a.m .Values.b.m) }}',
      'charts/e/Chart.yaml': '{"apiVersion": "v2", "name": "e", "version": "1.0.0"}',
      'charts/e/values.yaml': 'm: {}',
      'charts/a/Chart.yaml': '{"apiVersion": "v2", "name": "a", "version": "1.0.0"}',
      'charts/a/values.yaml': 'm: {a: 1, x: {a: 1}}',
      'charts/b/Chart.yaml': '{"apiVersion": "v2", "name": "b", "version": "1.0.0"}',
      'charts/b/values.yaml': 'm: {b: 1, x: {b: 1}}',
    },
    {
      'templates/t.yaml': [
        { a: 1, b: 1, x: { a: 1, b: 1 } },
        {},
        { a: 1, x: { a: 1, b: 1 } },
        { b: 1, x: { b: 1 } },
      ],
    },
  ],
  [
    'names enabled dependencies by their aliases',
    {
      'Chart.yaml':
        '{"apiVersion": "v2", "name": "root", "version": "1.0.0", "dependencies": [{"name": "a", "version": "^1", "alias": "x", "repository": "https://r"}, {"name": "a", "version": "*", "condition": "a.enabled"}]}',
      'values.yaml': 'a: {enabled: false}',
      'templates/t.yaml':
        '[{{ range .Chart.Dependencies }}{{ list .Name .Alias .Version .Repository .Enabled | toJson }}{{ end }}]',
      'charts/a/Chart.yaml': '{"apiVersion": "v2", "name": "a", "version": "1.0.0"}',
    },
    { 'templates/t.yaml': [['x', 'x', '^1', 'https://r', true]] },
  ],
  [
    'shares globals downwards, those of the parent first',
    {
      'Chart.yaml':
        '{"apiVersion": "v2", "name": "root", "version": "1.0.0", "dependencies": [{"name": "a", "version": "*"}]}',
      'values.yaml': 'global: {r: {h: root}, g1: 1}\na: {global: {r: {h: sub, i: 2}}}\n',
      'charts/a/Chart.yaml': '{"apiVersion": "v2", "name": "a", "version": "1.0.0"}',
      'charts/a/values.yaml': 'global: {g1: 2, o: {p: null}}',
      'charts/a/templates/t.yaml': '{{ toJson .Values }}',
    },
    { 'charts/a/templates/t.yaml': { global: { g1: 1, o: { p: null }, r: { h: 'root', i: 2 } } } },
  ],
];

describe('the values of a chart', () => {
  it.each(rendered)('%s', async (_what, files, values) => {
    const { files: made, faulty } = renderChart(prepareChart(await load(files)));
    expect(faulty).toEqual([]);
    const texts = made.map(({ path, text }) => [path.replace('root/', ''), JSON.parse(text)] as const);
    expect(Object.fromEntries(texts)).toEqual(values);
  });

  it('give way to those of the user, in sub-charts, conditions and tags too; null takes a default away', async () => {
    const sub = (name: string, condition: string): string =>
      `{"name": "${name}", "version": "*", "condition": "${condition}", "tags": ["all"]}`;
    const chart = await load({
      'Chart.yaml': `{"apiVersion": "v2", "name": "root", "version": "1.0.0", "dependencies": [${sub('a', 'a.use')}, ${sub('b', 'b.none')}]}`,
      'values.yaml':
        'a: {use: false}\nimage: {tag: v1, name: x}\nextra: {x: 1}\nlist: [1, 2]\ntags: {all: true}\n',
      'templates/t.yaml': '{{ toJson .Values }}',
      'charts/a/Chart.yaml': '{"apiVersion": "v2", "name": "a", "version": "1.0.0"}',
      'charts/a/values.yaml': 'tag: v1\nport: 1\n',
      'charts/a/templates/t.yaml': '{{ toJson .Values }}',
      'charts/b/Chart.yaml': '{"apiVersion": "v2", "name": "b", "version": "1.0.0"}',
      'charts/b/templates/t.yaml': 'none: 1',
    });
    const values = {
      ...{ a: { use: true, tag: 'v2' }, image: { tag: 'v3' }, extra: null, list: [3], global: { r: 'x' } },
      tags: { all: false },
    };
    const { files } = renderChart(prepareChart(chart, values));
    const parsed = Object.fromEntries(files.map(({ path, text }) => [path, JSON.parse(text) as unknown]));
    const a = { global: { r: 'x' }, port: 1, tag: 'v2', use: true };
    expect(parsed).toEqual({
      'root/charts/a/templates/t.yaml': a,
      'root/templates/t.yaml': {
        ...{ a, global: { r: 'x' }, image: { name: 'x', tag: 'v3' }, list: [3], tags: { all: false } },
      },
    });
    expect(values.a).toEqual({ use: true, tag: 'v2' });
  });

  it('that are no object where a sub-chart has its own are refused', async () => {
    const chart = await load({
      'Chart.yaml': '{name: root, version: 1.0.0}',
      'values.yaml': 'a: null',
      'charts/a/Chart.yaml': '{name: a, version: 1.0.0}',
    });
    expect(() => prepareChart(chart)).toThrow('chart root: values of a: expected an object');
  });

  it('with more parts than the limit are refused', async () => {
    const chart = await load({
      'Chart.yaml': '{name: root, version: 1.0.0}',
      'values.yaml': `a: [${'1,'.repeat(1_000_000)}]`,
    });
    await expect(findChartImages(chart, 'chart root')).rejects.toMatchObject({
      code: 'LIMIT',
      message: 'chart root: values: a value too large to copy',
    });
  });
});

describe('Chart.yaml', () => {
  it.each([
    ['{version: 1.0.0}', '1:1: name: missing'],
    ['{name: root}', '1:1: version: missing'],
    ['{name: a/b, version: 1.0.0}', '1:2: name: invalid name "a/b"'],
    ['{name: .., version: 1.0.0}', '1:2: name: invalid name ".."'],
    ['{name: root, version: one}', '1:14: version: invalid version "one"'],
    ['{name: root, version: 1.0.0, type: other}', '1:30: type: expected application or library'],
    [
      '{name: root, version: 1.0.0, dependencies: [{name: a}, {name: b, alias: a}]}',
      '1:56: dependencies[1]: duplicate name or alias "a"',
    ],
    [
      '{name: root, version: 1.0.0, dependencies: [{name: a, alias: a/b}]}',
      '1:55: dependencies[0].alias: invalid alias "a/b" of dependency "a"',
    ],
  ])('is refused: %s', async (text, problem) => {
    await expect(load({ 'Chart.yaml': text })).rejects.toThrow(`chart: Chart.yaml:${problem}`);
  });

  it('reports all problems', async () => {
    const text = 'name: a/b\ntype: app\ndependencies: [{name: x}, {name: x}]\n';
    await expect(load({ 'Chart.yaml': text })).rejects.toThrow(
      [
        'chart: Chart.yaml:1:1: name: invalid name "a/b"',
        'chart: Chart.yaml:1:1: version: missing',
        'chart: Chart.yaml:2:1: type: expected application or library',
        'chart: Chart.yaml:3:27: dependencies[1]: duplicate name or alias "x"',
      ].join('; '),
    );
  });
});
