import { describe, expect, it } from 'vitest';
import { parseBundle } from '../../../src/bundle/parse.js';
import { OpmateError } from '../../../src/core/errors.js';
import { annotations, bundleOf, crd, csv } from './bundle-files.js';

const subject = 'bundles/foo';

function faultOf(
  manifests: Record<string, string>,
  metadata: Record<string, string> = { 'a.yaml': annotations },
) {
  try {
    parseBundle(bundleOf(manifests, metadata), { subject });
  } catch (error) {
    if (error instanceof OpmateError) return error;
    throw error;
  }
  throw new Error('the bundle was accepted');
}

function parse(
  manifests: Record<string, string>,
  metadata: Record<string, string> = { 'a.yaml': annotations },
) {
  return parseBundle(bundleOf(manifests, metadata), { subject });
}

describe('bundle/parse', () => {
  it('reads name, package, channels and version', () => {
    const bundle = parse({ 'csv.yaml': csv(), 'crd.yaml': crd });
    expect(bundle).toMatchObject({
      name: 'foo.v1.2.3',
      packageName: 'foo',
      channels: ['beta', 'stable'],
      defaultChannel: 'stable',
      version: '1.2.3',
      release: '',
      skippedFiles: [],
    });
    expect(bundle.csvText).toBe(bundle.objects[1]);
    expect(JSON.parse(bundle.csvText)).toMatchObject({ kind: 'ClusterServiceVersion' });
  });

  it('reads the first document of a file, the first CSV of a bundle, and no hidden documents', () => {
    const bundle = parse({
      'a.yaml': csv().replace('1.2.3\nspec', '1.0.0\nspec'),
      'b.yaml': csv(),
      'c.yaml': '---\nkind: First\n---\nkind: Second\n',
      'd.yaml': '# licence\n---\nkind: Hidden\n',
      'e.json': '{"kind":"Json"} trailing',
      'f.yaml': '{kind: Flow, }\n',
      'g.yaml': 'kind: Crlf\r\nlist:\r\n- a\r\n--- # comment\r\nkind: More\r\n',
    });
    expect(bundle.name).toBe('foo.v1.0.0');
    expect(bundle.objects.slice(1)).toEqual([
      '{"kind":"First"}',
      '{"kind":"Json"}',
      '{"kind":"Flow"}',
      '{"kind":"Crlf","list":["a"]}',
    ]);
    expect(bundle.skippedFiles).toEqual([
      { file: 'manifests/d.yaml', reason: 'its first document is empty', line: undefined },
    ]);
  });

  it('skips and reports files other than Kubernetes objects', () => {
    const bundle = parse({
      'csv.yaml': csv(),
      'list.yaml': '- a\n',
      'kindless.yaml': 'metadata: {}\n',
      'number.yaml': 'kind: 1\n',
      'version.yaml': 'kind: A\napiVersion: a/b/c\n',
      'broken.yaml': 'a: b: c\n',
      'dashes.yaml': '---- x\nkind: A\n',
      'latin1.yaml': 'kind: A\n',
    });
    expect(bundle.objects).toHaveLength(2);
    expect(bundle.skippedFiles.map(({ file }) => file)).toEqual(
      ['broken', 'dashes', 'kindless', 'list', 'number', 'version'].map((name) => `manifests/${name}.yaml`),
    );
  });

  it('refuses a bundle without objects or without a CSV', () => {
    expect(faultOf({}).message).toBe('bundles/foo: no bundle objects found');
    expect(faultOf({ 'crd.yaml': crd }).message).toBe('bundles/foo: no csv in bundle');
  });

  it('names a manifest that does not parse when the CSV is missing', () => {
    const fault = faultOf({ 'crd.yaml': crd, 'csv.yaml': `${csv()}  replaces: "unfinished\n` });
    expect(fault.message).toBe('bundles/foo: no csv in bundle');
    expect(fault.file).toBe('manifests/csv.yaml');
    expect(fault.line).toBeGreaterThan(5);
    expect(fault.hint).toMatch(/^fix manifests\/csv\.yaml:\d+, which was skipped: /);
  });

  it('refuses a bundle without annotations, and lists its metadata files', () => {
    const fault = faultOf({ 'csv.yaml': csv() }, { 'other.yaml': 'a: b\n', 'broken.yaml': 'annotations: [' });
    expect(fault.message).toBe('bundles/foo: Could not find annotations file');
    expect(fault.hint).toContain('operators.operatorframework.io.bundle.package.v1');
    expect(fault.hint).toContain('to metadata/, which contains broken.yaml, other.yaml');
  });

  it('identifies files of metadata by content, the first of each role', () => {
    const { packageName, dependencies, properties } = parse(
      { 'csv.yaml': csv() },
      {
        '.hidden': 'dependencies: []\nannotations: {other: x}\n',
        'a.yaml': 'Annotations: {operators.operatorframework.io.bundle.package.v1: 12}\n',
        'b.yaml': annotations,
        'c.yaml': 'dependencies: [{type: one, value: 1}]\nproperties: [{type: two, value: 2}]\n',
        'd.yaml': 'dependencies: [{type: three, value: 3}]\n',
        'e.yaml': 'properties: {not: a list}\n',
      },
    );
    expect(packageName).toBe('12');
    expect(dependencies).toEqual([{ type: 'one', text: '1' }]);
    expect(properties[0]).toEqual({ type: 'two', text: '2' });
  });

  it('refuses an owned API without definition', () => {
    const spec = '  customresourcedefinitions: {owned: [{name: foos.example.com, version: v2, kind: Foo}]}\n';
    expect(faultOf({ 'csv.yaml': csv(spec), 'crd.yaml': crd }).message).toBe(
      'bundles/foo: error checking provided apis in bundle foo.v1.2.3: ' +
        "couldn't find example.com/v2/Foo (foos) in bundle. " +
        'found: map[example.com/v1/Foo (foos):{} example.com/v1alpha1/Foo (foos):{}]',
    );
  });

  it('distinguishes keys of a definition by case, as Kubernetes does', () => {
    const odd = crd.replace('names: {', 'names: {KIND: Bar, ').replace('metadata:', 'METADATA: 1\nmetadata:');
    const kinds = parse({ 'csv.yaml': csv(), 'crd.yaml': odd }).providedApis.map(({ kind }) => kind);
    expect(kinds).toEqual(['Foo', 'Foo']);
  });

  it('reads a last line without a line break as one with it', () => {
    const { objects } = parse({ 'csv.yaml': csv(), 'x.yaml': 'kind: X\ntext: |\n  last' });
    expect(objects[1]).toBe('{"kind":"X","text":"last\\n"}');
  });

  it('reads values of JSON properties as YAML when a type is no string', () => {
    const file = '{"properties":[{"type":1,"value":{"z":1.0,"a":"<"}},{"type":"b","value":{"z":1,"a":2}}]}';
    const { properties } = parse({ 'csv.yaml': csv() }, { 'a.yaml': annotations, 'p.yaml': file });
    expect(properties.slice(0, 2)).toEqual([
      { type: '1', text: '{"a":"\\u003c","z":1}' },
      { type: 'b', text: '{"a":2,"z":1}' },
    ]);
  });

  it('accepts the versions of a v1beta1 definition and ignores unknown formats', () => {
    const old = crd.replace('/v1\n', '/v1beta1\n').replace('spec:\n', 'spec:\n  version: v1beta2\n');
    const versions = parse({ 'csv.yaml': csv(), 'crd.yaml': old }).providedApis.map(({ version }) => version);
    expect(versions).toEqual(['v1', 'v1alpha1', 'v1beta2']);
    expect(parse({ 'csv.yaml': csv(), 'crd.yaml': crd.replace('/v1\n', '/v2\n') }).providedApis).toEqual([]);
  });

  it.each([
    [
      'manifests/crd.yaml: error decoding v1 CRD: spec.group',
      { 'crd.yaml': crd.replace('example.com\n  names', '1\n  names') },
    ],
    [
      'manifests/crd.yaml: error decoding v1 CRD: no kind',
      { 'crd.yaml': crd.replace('apiextensions.k8s.io', 'x') },
    ],
    [
      'manifests/crd.yaml: error decoding v1 CRD: metadata.finalizers: expected a list',
      { 'crd.yaml': crd.replace('  name: foos', '  finalizers: a\n  name: foos') },
    ],
    [
      'manifests/crd.yaml: error decoding v1 CRD: status: expected an object',
      { 'crd.yaml': `status: a\n${crd}` },
    ],
    [
      'manifests/csv.yaml: apiVersion: expected a string',
      { 'csv.yaml': csv().replace('apiVersion: ', 'apiVersion: [] #') },
    ],
    [
      'manifests/csv.yaml: metadata.annotations.a: expected a string, got the boolean true',
      { 'csv.yaml': csv('', '  annotations: {a: yes}\n') },
    ],
    [
      'manifests/csv.yaml: metadata.creationTimestamp: expected a time',
      { 'csv.yaml': csv('', '  creationTimestamp: x\n') },
    ],
    ['manifests/csv.yaml: spec: not found', { 'csv.yaml': 'kind: ClusterServiceVersion\n' }],
    [
      'manifests/csv.yaml: spec: expected an object',
      { 'csv.yaml': 'kind: ClusterServiceVersion\nspec: 1\n' },
    ],
    [
      'manifests/csv.yaml: spec.version: expected a string, got the number 1.2',
      { 'csv.yaml': csv().replace('version: 1.2.3', 'version: 1.2') },
    ],
    [
      'manifests/csv.yaml: spec.release: release field must be a string or number',
      { 'csv.yaml': csv('  release: []\n') },
    ],
    [
      "manifests/csv.yaml: couldn't parse plural.group from crd name: foos",
      { 'csv.yaml': csv('  customresourcedefinitions: {owned: [{name: foos}]}\n') },
    ],
    [
      "manifests/csv.yaml: couldn't parse plural.group from crd name: bars",
      { 'csv.yaml': csv('  customresourcedefinitions: {required: [{name: bars}]}\n') },
    ],
    [
      'manifests/csv.yaml: spec.relatedImages[0].image: expected a string',
      { 'csv.yaml': csv('  relatedImages: [{image: 1}]\n') },
    ],
    [
      'manifests/csv.yaml: ' +
        'spec.install.spec.deployments[0].spec.template.spec.containers[0].env[0].value: expected a string',
      {
        'csv.yaml': csv(
          '  install: {spec: {deployments: [{spec: {template: {spec: ' +
            '{containers: [{env: [{value: 1}]}]}}}}]}}\n',
        ),
      },
    ],
  ])('refuses %s', (message, manifests) => {
    const fault = faultOf({ 'csv.yaml': csv(), ...manifests });
    expect(fault.message).toContain(`bundles/foo: ${message}`);
    expect(fault.code).toBe('INVALID');
    expect(fault.file).toMatch(/^manifests\//);
  });

  it('prints releases as Go does', () => {
    const release = (text: string) => parse({ 'csv.yaml': csv(`  release: ${text}\n`) }).release;
    expect(['1', '"a.b"', '1.5', '1e3', '1234567.5', '0.00001', 'null'].map(release)).toEqual([
      '1',
      'a.b',
      '1.5',
      '1000',
      '1.2345675e+06',
      '1e-05',
      '',
    ]);
  });

  it('refuses a manifest that is nested too deeply', () => {
    const deep = `{"kind":"X","a":${'['.repeat(5000)}${']'.repeat(5000)}}`;
    expect(faultOf({ 'csv.yaml': csv(), 'deep.json': deep }).code).toBe('LIMIT');
  });

  it.each([
    ['metadata.annotations.a', 6, csv('', '  annotations:\n    a: yes\n')],
    ['spec.version', 6, csv().replace('version: 1.2.3', 'version: 1.2')],
    [
      'spec.relatedImages[1].image',
      11,
      csv('  relatedImages:\n  - name: a\n    image: b\n  # c\n  - image: 1\n'),
    ],
    ['spec.relatedImages[0].image', 8, csv('  relatedImages:\n    - image: 1\n')],
    ['spec.relatedImages[1].image', 7, csv('  relatedImages: [{image: a}, {image: 1}]\n')],
    ['spec.release', 7, csv('  "release":\n    x: 1\n')],
  ])('knows the line of %s', (path, line, text) => {
    const fault = faultOf({ 'csv.yaml': text });
    expect(fault.message).toContain(path);
    expect(fault.line).toBe(line);
  });

  it('reports the line of a fault in a definition', () => {
    const fault = faultOf({ 'csv.yaml': csv(), 'crd.yaml': crd.replace('- name: v1alpha1', '- name: 1') });
    expect(fault).toMatchObject({ file: 'manifests/crd.yaml', line: 10 });
  });
});
