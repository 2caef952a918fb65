import { describe, expect, it } from 'vitest';
import { loadChart } from '../../../src/helm/chart.js';
import { findChartImages } from '../../../src/helm/chart-images.js';

const draft7 = '"$schema":"http://json-schema.org/draft-07/schema#"';
const pod =
  'apiVersion: v1\nkind: Pod\nmetadata: {name: a}\nspec: {containers: [{image: "a.example/a:1"}]}\n';

async function read(values: string, schema: string, more: Record<string, string> = {}) {
  const files = {
    'Chart.yaml': 'apiVersion: v2\nname: portal\nversion: 1.0.0\n',
    'values.yaml': values,
    'values.schema.json': schema,
    'templates/pod.yaml': pod,
    ...more,
  };
  const entries = Object.entries(files).map(([path, text]) => [path, Buffer.from(text)] as const);
  const chart = await loadChart(new Map(entries), 'chart portal');
  return findChartImages(chart, 'chart portal', { maxMilliseconds: 2000 });
}

// What Helm 3.21 does with each was recorded with its own packages.
describe('values.schema.json of a chart', () => {
  it.each([
    [
      'replicas: "3"',
      `{${draft7},"properties":{"replicas":{"type":"integer"}}}`,
      'at "/replicas": expected integer, got string',
    ],
    ['a: 1', `{${draft7},"required":["b"],"additionalProperties":false}`, 'at "": missing "b"'],
    ['a: 1', `{${draft7},"additionalProperties":false}`, 'at "": unknown field "a"'],
    ['a: x', '{"properties":{"a":{"enum":["y","z"]}}}', 'at "/a": expected one of ["y","z"]'],
    [
      'a: 1',
      '{"$schema":"http://json-schema.org/draft-04/schema#","properties":{"a":{"minimum":1,"exclusiveMinimum":true}}}',
      'at "/a": must be > 1',
    ],
    ['a: null', '{"properties":{"a":{"type":"string"}}}', 'at "/a": expected string, got null'],
    [
      'a: 1.5',
      '{"properties":{"a":{"anyOf":[{"type":"string"},{"type":"integer"}]}}}',
      'at "/a": must match a schema in anyOf',
    ],
    [
      'a: {b: 1}',
      `{${draft7},"definitions":{"s":{"type":"string"}},"properties":{"a":{"properties":{"b":{"$ref":"#/definitions/s"}}}}}`,
      'at "/a/b": expected string, got number',
    ],
    ['a: AB', '{"properties":{"a":{"pattern":"^(?:[a-z])+$"}}}', 'at "/a": must match pattern'],
    ['a: 1', '{"properties":', 'not a JSON schema'],
    ['a: 1', '{"properties":[1]}', 'not a valid schema: schema is invalid: data/properties must be object'],
    ['a: 1', '{"type":"strin"}', 'not a valid schema: schema is invalid: data/type'],
    ['a: 1', '{"properties":{"a":{"required":true}}}', 'not a valid schema'],
  ])('refuses %s by %s', async (values, schema, problem) => {
    await expect(read(values, schema)).rejects.toThrow(
      `chart portal: portal: values.schema.json: ${problem}`,
    );
  });

  it.each([
    ['a: 3.0', '{"properties":{"a":{"type":"integer"}}}'],
    ['a: nope', '{"properties":{"a":{"type":"string","format":"ipv4"}}}'],
    ['a: 1', '{"type":"object","properties":{"a":{}},"additionalProperties":false}'],
    ['a: 1', '{"$schema":"https://json-schema.org/draft/2019-09/schema","properties":{"a":{"minimum":1}}}'],
    [
      'id: 1',
      '{"$schema":"http://json-schema.org/draft-04/schema#","id":"http://a.example/","properties":{"id":{"minimum":1}}}',
    ],
    ['a: AB', '{"properties":{"a":{"pattern":"(?i)^[a-z]+$"}}}'],
    ['a: AB', 'true'],
  ])('accepts %s by %s', async (values, schema) => {
    expect(await read(values, schema)).toMatchObject({ images: [{ text: 'a.example/a:1' }], warnings: [] });
  });

  it('validates values of sub-charts, including those from parent charts', async () => {
    const kid = {
      'charts/kid/Chart.yaml': 'apiVersion: v2\nname: kid\nversion: 1.0.0\n',
      'charts/kid/values.schema.json': '{"properties":{"x":{"type":"integer"}}}',
    };
    await expect(read('kid: {x: one}', '{}', kid)).rejects.toThrow(
      'chart portal: kid: values.schema.json: at "/x": expected integer, got string',
    );
    expect((await read('kid: {x: 1}', '{}', kid)).images).toHaveLength(1);
  });

  it('reports every fault', async () => {
    const schema = '{"properties":{"a":{"type":"string"},"b":{"type":"string"}}}';
    const text = await read('a: 1\nb: 2', schema).catch(String);
    expect(text).toContain('"/a"');
    expect(text).toContain('"/b"');
  });

  it('is skipped with a warning if it refers to another document', async () => {
    const { images, warnings } = await read(
      'a: 1',
      '{"properties":{"a":{"$ref":"https://a.example/b.json"}}}',
    );
    expect(images).toHaveLength(1);
    expect(warnings).toEqual([
      'chart portal: portal: values.schema.json: values not checked: unsupported reference "https://a.example/b.json"',
    ]);
  });

  it.each([
    ['refers to itself', '{"$ref":"#"}'],
    ['backtracks without end', '{"properties":{"a":{"pattern":"^(a+)+$"}}}'],
    ['is nested too deeply', `${'{"not":'.repeat(5000)}{}${'}'.repeat(5000)}`],
    [
      'names what is no identifier',
      '{"properties":{"a":{"$ref":"#/properties/a\\u0000`${process.exit(3)}"}}}',
    ],
  ])('ends where it %s', async (_what, schema) => {
    const result = await read(`a: ${'a'.repeat(40)}!`, schema).catch(String);
    expect(JSON.stringify(result)).toContain('values.schema.json');
  });
});
