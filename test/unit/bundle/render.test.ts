import { createHash } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { parseImageTemplate } from '../../../src/bundle/image-template.js';
import { readBundleDirectory } from '../../../src/bundle/read.js';
import { renderBundleFiles } from '../../../src/bundle/render.js';
import { encodeBlob } from '../../../src/model/encode.js';
import { encodeGoJson } from '../../../src/document/go-json.js';
import type { BundleBlob } from '../../../src/model/declarative-config.js';
import { annotations, bundleOf, crd, csv } from './bundle-files.js';

const fixtures = join(import.meta.dirname, '../../../fixtures/bundles');
const goldens = readFileSync(join(fixtures, 'SHA256SUMS.txt'), 'utf8')
  .trim()
  .split('\n')
  .map((line) => line.split(/\s+/) as [string, string, string]);

function textOf(blob: BundleBlob): string {
  return encodeBlob({ kind: 'bundle', blob }, 'json');
}

function render(files: ReturnType<typeof bundleOf>, image = ''): BundleBlob {
  return renderBundleFiles(files, { subject: 'foo', image });
}

/** Properties as `type value`, with the objects left out. */
function properties(blob: BundleBlob): string[] {
  return blob.properties
    .filter(({ type }) => type !== 'olm.bundle.object')
    .map(({ type, value }) => `${type} ${encodeGoJson(value)}`);
}

function objects(blob: BundleBlob): string[] {
  return blob.properties
    .filter(({ type }) => type === 'olm.bundle.object')
    .map(({ value }) => Buffer.from((value as { data: string }).data, 'base64').toString());
}

describe('bundle/render', () => {
  it.each(goldens)('gives the bytes %s of opm for the %s of %s', async (sha256, source, path) => {
    const files = await readBundleDirectory(join(fixtures, path));
    const image = source === 'image' ? `registry.test:5000/bundles/${path.replace('/', ':')}` : '';
    const options = { subject: path, image, ...(source === 'image' && { migrateLevel: 'all' }) };
    const text = textOf(renderBundleFiles(files, options));
    expect(createHash('sha256').update(text).digest('hex')).toBe(sha256);
  });

  it('orders properties by type and value, with manifests at the end by their base64', () => {
    const blob = render(
      bundleOf(
        { 'csv.yaml': csv(), 'crd.yaml': crd, 'b.yaml': 'kind: ConfigMap\ndata: {z: 1, a: "<&>"}\n' },
        {
          'annotations.yaml': annotations,
          'properties.yaml':
            'properties:\n- {type: zeta, value: 1}\n- {type: alpha, value: {b: 2, a: ">=1"}}\n' +
            '- {type: alpha, value: 10}\n',
        },
      ),
    );
    expect(properties(blob)).toEqual([
      'alpha 10',
      'alpha {"a":"\\u003e=1","b":2}',
      'olm.gvk {"group":"example.com","kind":"Foo","version":"v1"}',
      'olm.gvk {"group":"example.com","kind":"Foo","version":"v1alpha1"}',
      'olm.package {"packageName":"foo","version":"1.2.3"}',
      'zeta 1',
    ]);
    const encoded = blob.properties.slice(-3).map(({ value }) => (value as { data: string }).data);
    expect(encoded).toEqual([...encoded].sort());
    expect(objects(blob)).toContain('{"data":{"a":"\\u003c\\u0026\\u003e","z":1},"kind":"ConfigMap"}');
  });

  it('keeps explicit properties once, and the last olm.package', () => {
    const annotation =
      '  annotations:\n    olm.properties: \'[{"type":"x","value":1}, {"type":"x","value":1}, ' +
      '{"type":"olm.package","value":{"packageName":"other","version":"9.0.0",' +
      '"release":"2","more":true}}]\'\n';
    const blob = render(
      bundleOf(
        { 'csv.yaml': csv('', annotation) },
        {
          'annotations.yaml': annotations,
          'p.yaml':
            'properties:\n- {type: x, value: 1}\n' +
            '- {type: olm.package, value: {packageName: p, version: "0"}}\n',
        },
      ),
    );
    expect(properties(blob)).toEqual([
      'olm.package {"packageName":"other","version":"9.0.0","release":"2"}',
      'x 1',
    ]);
  });

  it('keeps the text of property values in JSON', () => {
    const annotation =
      '  annotations:\n    olm.properties: \'[{"value": {"b":1.50, "a":"<"}, "type":"x"}]\'\n';
    const blob = render(
      bundleOf(
        { 'csv.yaml': csv('', annotation) },
        { 'a.yaml': annotations, 'p.json': '{"properties": [{"type": "y", "value": {"z": 1.0, "b": 1e2}}]}' },
      ),
    );
    expect(properties(blob)).toContain('x {"b":1.50,"a":"<"}');
    expect(properties(blob)).toContain('y {"z":1.0,"b":1e2}');
  });

  it('ignores an olm.properties annotation that does not parse', () => {
    const blob = render(
      bundleOf({ 'csv.yaml': csv('', "  annotations: {olm.properties: '[{'}\n") }, { 'a.yaml': annotations }),
    );
    expect(properties(blob)).toEqual(['olm.package {"packageName":"foo","version":"1.2.3"}']);
  });

  it('converts dependencies and required APIs to properties', () => {
    const spec = `  customresourcedefinitions:
    required:
    - {name: bars.example.com, version: v1, kind: Bar}
  apiservicedefinitions:
    owned:
    - {group: own.example.com, version: v1, kind: Own, name: owns}
    required:
    - {group: need.example.com, version: v1, kind: Need, name: needs}
`;
    const dependencies = `dependencies:
- {type: olm.gvk, value: {group: example.com, kind: Bar, version: v1}}
- {type: olm.package, value: {packageName: dep, version: ">1.0.0"}}
- {type: olm.package, value: {packageName: dep, version: ">1.0.0"}}
- {type: olm.constraint, value: {cel: {rule: "a < b"}}}
- {type: 4.10, value: null}
- {type: no-value}
`;
    const blob = render(
      bundleOf({ 'csv.yaml': csv(spec) }, { 'a.yaml': annotations, 'd.yaml': dependencies }),
    );
    expect(properties(blob)).toEqual([
      '4.1 null',
      'no-value null',
      'olm.constraint {"cel":{"rule":"a \\u003c b"}}',
      'olm.gvk {"group":"own.example.com","kind":"Own","version":"v1"}',
      'olm.gvk.required {"group":"example.com","kind":"Bar","version":"v1"}',
      'olm.gvk.required {"group":"need.example.com","kind":"Need","version":"v1"}',
      'olm.package {"packageName":"foo","version":"1.2.3"}',
      'olm.package.required {"packageName":"dep","versionRange":">1.0.0"}',
      'olm.package.required {"packageName":"dep","versionRange":">1.0.0"}',
    ]);
  });

  it('collects related images: listed ones, the bundle, containers of deployments', () => {
    const spec = `  relatedImages:
  - {name: b, image: img/b}
  - {name: again, image: img/b}
  install:
    strategy: deployment
    spec:
      deployments:
      - name: d
        spec:
          template:
            spec:
              containers: [{name: c, image: img/c}, {name: b, image: img/b}]
              initContainers: [{name: i, image: img/a}]
`;
    const files = bundleOf({ 'csv.yaml': csv(spec) }, { 'a.yaml': annotations });
    expect(render(files, 'img/bundle').relatedImages).toEqual([
      { name: '', image: 'img/a' },
      { name: 'b', image: 'img/b' },
      { name: 'again', image: 'img/b' },
      { name: '', image: 'img/bundle' },
      { name: '', image: 'img/c' },
    ]);
    const otherStrategy = bundleOf(
      { 'csv.yaml': csv(spec.replace('deployment\n', 'other\n')) },
      { 'a.yaml': annotations },
    );
    expect(render(otherStrategy).relatedImages).toHaveLength(2);
  });

  it('writes numbers and unusual keys as Kubernetes does', () => {
    const manifest =
      'kind: X\nbig: 9223372036854775807\nlarger: 18446744073709551615\nfloat: 1.50\nwhole: 2.0\n' +
      'list: {"10": a, "9": b, "a\\u2028": "\\u2029"}\n__proto__: 1\n';
    const [text] = objects(
      render(bundleOf({ 'a.yaml': manifest, 'csv.yaml': csv() }, { 'a.yaml': annotations })),
    ).filter((object) => object.includes('"kind":"X"'));
    expect(text).toBe(
      '{"__proto__":1,"big":9223372036854775807,"float":1.5,"kind":"X","larger":18446744073709552000,' +
        '"list":{"10":"a","9":"b","a\\u2028":"\\u2029"},"whole":2}',
    );
  });

  it('creates the image of a directory from a template, also as a related image', () => {
    const imageTemplate = parseImageTemplate('quay.io/x/{{.Package}}:v{{.Version}}');
    const files = bundleOf({ 'csv.yaml': csv() }, { 'a.yaml': annotations });
    const blob = renderBundleFiles(files, { subject: 'foo', imageTemplate });
    expect(blob.image).toBe('quay.io/x/foo:v1.2.3');
    expect(blob.relatedImages).toEqual([{ name: '', image: 'quay.io/x/foo:v1.2.3' }]);
    const broken = parseImageTemplate('{{.Nope}}');
    expect(() => renderBundleFiles(files, { subject: 'dir', imageTemplate: broken })).toThrow(
      /^failed templating image reference from bundle for "dir": .*can't evaluate field Nope/,
    );
  });

  it('names a property with an invalid value', () => {
    const files = bundleOf(
      { 'csv.yaml': csv() },
      { 'a.yaml': annotations, 'p.yaml': 'properties:\n- {type: olm.gvk, value: {group: 1}}\n' },
    );
    expect(() => render(files)).toThrow(
      'foo: parse property[0] of type "olm.gvk": value.group: expected a string, got the number 1',
    );
  });

  it('omits the release and, without a package, the derived property', () => {
    const released = bundleOf({ 'csv.yaml': csv('  release: 3\n') }, { 'a.yaml': annotations });
    expect(properties(render(released))).toEqual([
      'olm.package {"packageName":"foo","version":"1.2.3","release":"3"}',
    ]);
    const channelOnly = 'annotations: {operators.operatorframework.io.bundle.channels.v1: a}\n';
    const nameless = render(bundleOf({ 'csv.yaml': csv() }, { 'a.yaml': channelOnly }));
    expect(nameless.package).toBe('');
    expect(properties(nameless)).toEqual(['olm.package {"packageName":"","version":"1.2.3"}']);
    expect(textOf(nameless)).toContain('    "name": "foo.v1.2.3",\n    "image": "",\n');
  });

  it('renders the same bundle twice without changing it', () => {
    const files = bundleOf({ 'csv.yaml': csv() }, { 'a.yaml': annotations });
    const again = (): BundleBlob => renderBundleFiles(files, { subject: 'foo', image: 'a' });
    expect(again()).toEqual(again());
  });
});
