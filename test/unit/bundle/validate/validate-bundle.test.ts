import { describe, expect, it } from 'vitest';
import type { BundleFiles } from '../../../../src/bundle/read.js';
import { optionalValidators, findBundleFaults } from '../../../../src/bundle/validate/validate-bundle.js';
import { type Loose, filesOf, findIn, soundBundle, textOf } from './bundle.js';

describe('validateBundle', () => {
  it('finds nothing in a valid bundle with all validators', () => {
    expect(findIn(() => undefined, { optional: optionalValidators })).toEqual([]);
  });

  it('reports all faults with file and line', () => {
    const found = findIn(
      ({ csv, crd, annotations }) => {
        csv['metadata'].name = 'Widget';
        csv['spec'].displayName = '';
        crd['spec'].versions[0].storage = false;
        delete annotations['operators.operatorframework.io.bundle.package.v1'];
      },
      {
        others: {
          'manifests/foo.yaml': 'kind: Foo\nmetadata:\n  name: foo\n',
          'manifests/bad.yaml': 'a: [\n',
        },
      },
    );
    expect(found.map((one) => one.replace(/ \(e\.g\..*$/, ''))).toEqual([
      expect.stringMatching(/^manifests\/bad\.yaml:\d+: error: yaml: /),
      'manifests/crd.yaml:14: error: spec.versions: Invalid value: must have exactly one version marked as storage version',
      expect.stringMatching(
        /^manifests\/csv\.yaml:5: error: \(Widget\) metadata\.name "Widget" is invalid: a lowercase RFC 1123 /,
      ),
      'manifests/csv.yaml:13: error: Field Spec.DisplayName: required field missing',
      'manifests/foo.yaml:1: error: Foo is not supported type for registryV1 bundle: manifests/foo.yaml',
      'metadata/annotations.yaml:2: error: Missing annotation "operators.operatorframework.io.bundle.package.v1"',
    ]);
  });

  it('checks that definitions exist and are owned', () => {
    const missing = findIn(({ csv }) => (csv['spec'].customresourcedefinitions.owned[0].version = 'v2'));
    expect(missing.map((one) => one.replace(/:\d+:/, ':'))).toContain(
      'manifests/csv.yaml: error: owned CRD widgets.example.com/v2 not found in bundle "widget.v1.0.0"',
    );
    expect(
      missing.some((one) => /^manifests\/crd.*warning: CRD widgets.example.com\/v1 is present/.test(one)),
    ).toBe(true);
    const withGroup = findIn(
      ({ csv }) => (csv['spec'].customresourcedefinitions.owned[0].group = 'example.com'),
    );
    expect(withGroup.some((one) => /error: owned CRD widgets\.example\.com\/v1 not found/.test(one))).toBe(
      true,
    );
  });

  it('omits findings that depend on unreadable objects', () => {
    const found = findIn(({ csv }) => (csv['spec'].install = 'none'), { optional: optionalValidators });
    expect(found).toEqual([
      expect.stringMatching(
        /^manifests\/csv\.yaml:\d+: error: spec\.install: expected an object, got a string$/,
      ),
    ]);
  });

  it('reports duplicate keys of all files with both lines, which opm does not', () => {
    const { csv, crd, annotations } = soundBundle();
    const repeat = (value: unknown, key: string): string =>
      JSON.stringify(value, undefined, 1).replace(key, `"name": "first",\n${key}`);
    const files = filesOf(
      {},
      {
        'manifests/crd.yaml': repeat(crd, '"name": "widgets'),
        'manifests/csv.yaml': repeat(csv, '"name": "widget'),
        'metadata/annotations.yaml': `{"annotations": {},\n${JSON.stringify({ annotations }).slice(1)}`,
      },
    );
    const errors = findBundleFaults(files).filter(({ severity }) => severity === 'error');
    expect(errors.map(({ subject = '', ...one }) => `${subject} ${textOf(one)}`)).toEqual([
      'metadata.name manifests/crd.yaml:6: error: duplicate key, first defined on line 5',
      'metadata.name manifests/csv.yaml:6: error: duplicate key, first defined on line 5',
      'annotations metadata/annotations.yaml:2: error: duplicate key, first defined on line 1',
    ]);
    expect(errors.every(({ isUnreported }) => isUnreported)).toBe(true);
  });

  it('reads the first document of a file only, as opm and OLM do, duplicate keys of later ones included', () => {
    const { csv } = soundBundle();
    const repeated = JSON.stringify(csv, undefined, 1).replace(
      '"name": "widget',
      '"name": "first",\n"name": "widget',
    );
    const later = (first: string, second: string) =>
      findIn(() => undefined, { others: { 'manifests/csv.yaml': `${first}\n---\n${second}\n` } });
    expect(later(JSON.stringify(csv), repeated)).toEqual([]);
    expect(later(repeated, JSON.stringify(csv))).toEqual([
      'manifests/csv.yaml:6: error: duplicate key, first defined on line 5',
    ]);
  });

  it('reports a manifest that cannot be read without consequences', () => {
    const { csv, crd, annotations } = soundBundle();
    const unread = [
      'metadata: {name: x\n',
      'a:\n- b\n c: d\n',
      '[]\n',
      JSON.stringify({ ...csv, kind: '' }),
      '',
    ];
    for (const text of unread) {
      const files = filesOf({ crd, annotations }, { 'manifests/csv.yaml': text });
      const found = findBundleFaults(files, { optional: optionalValidators }).map(textOf);
      expect(found).toEqual([expect.stringMatching(/^manifests\/csv\.yaml:\d+: error: /)]);
    }
    const withoutCrd = findIn(() => undefined, { others: { 'manifests/crd.yaml': 'a: [\n' } });
    expect(withoutCrd).toEqual([expect.stringMatching(/^manifests\/crd\.yaml:\d+: error: yaml: /)]);
  });

  it('marks warnings that opm does not report', () => {
    const bundle = soundBundle();
    delete bundle.csv['spec'].minKubeVersion;
    bundle.crd['apiVersion'] = 'apiextensions.k8s.io/v1beta1';
    bundle.crd['spec'].preserveUnknownFields = false;
    const findings = findBundleFaults(filesOf(bundle)).filter(({ severity }) => severity === 'warning');
    expect(findings.map(({ code, isUnreported = false }) => ({ code, isUnreported }))).toEqual([
      { code: 'crd', isUnreported: false },
      { code: 'csv', isUnreported: true },
    ]);
  });

  it('recognizes plain bundles and charts', () => {
    const { annotations } = soundBundle();
    annotations['operators.operatorframework.io.bundle.mediatype.v1'] = 'plain';
    const plain = {
      'manifests/a.yaml': { apiVersion: 'apps/v1', kind: 'Deployment', metadata: { name: 'a' } },
    };
    expect(findBundleFaults(filesOf({ annotations }, plain))).toEqual([]);
    annotations['operators.operatorframework.io.bundle.mediatype.v1'] = 'helm';
    const chart = { 'manifests/Chart.yaml': 'name: a\n', 'manifests/values.yaml': 'a: 1\n' };
    expect(findBundleFaults(filesOf({ annotations }, chart))).toEqual([]);
    expect(findBundleFaults(filesOf({ annotations }, plain)).map(textOf)).toEqual([
      'metadata/annotations.yaml:3: error: Expecting annotation ' +
        '"operators.operatorframework.io.bundle.mediatype.v1" to have value "plain" instead of "helm"',
    ]);
  });

  it('reports directories and files other than objects', () => {
    const files: BundleFiles = {
      ...filesOf(soundBundle(), { 'manifests/x.yaml': '- 1\n' }),
      folders: ['sub'],
    };
    expect(findBundleFaults(files).map(textOf)).toEqual([
      'manifests/sub:: error: Unable to read file manifests/sub in supported types: is a directory',
      'manifests/x.yaml:1: error: expected an object of Kubernetes, got a list',
    ]);
  });

  it('never fails on values of any type', () => {
    const odd = [null, 0, -1.5, true, '', 'x', [], [null], {}, { a: null }];
    const places = (value: unknown, path: string[] = []): string[][] =>
      typeof value !== 'object' || value === null
        ? []
        : Object.entries(value).flatMap(([key, item]) => [[...path, key], ...places(item, [...path, key])]);
    let tried = 0;
    for (const part of ['csv', 'crd', 'annotations'] as const) {
      for (const place of places(soundBundle()[part])) {
        for (const value of odd) {
          const bundle = soundBundle();
          let at: Loose = bundle[part];
          for (const key of place.slice(0, -1)) at = at[key];
          at[place.at(-1) as string] = value;
          expect(Array.isArray(findBundleFaults(filesOf(bundle), { optional: optionalValidators }))).toBe(
            true,
          );
          tried++;
        }
      }
    }
    expect(tried).toBeGreaterThan(700);
  });

  it('stops when it is cancelled', () => {
    const signal = AbortSignal.abort();
    expect(() => findBundleFaults(filesOf(soundBundle()), { signal })).toThrow('cancelled');
  });
});

describe('metadata of a bundle', () => {
  const key = (name: string): string => `operators.operatorframework.io.bundle.${name}.v1`;

  it.each<[string, unknown, string[]]>([
    ['channels', '', [`Expecting annotation "${key('channels')}" to have non-empty value`]],
    ['channel.default', '', [`Expecting annotation "${key('channel.default')}" to have non-empty value`]],
    ['channels', 4.8, []],
    ['package', '', []],
    [
      'mediatype',
      'helm',
      [`Expecting annotation "${key('mediatype')}" to have value "registry+v1" instead of "helm"`],
    ],
    ['package', [], ['Could not find annotations file']],
  ])('%s %j', (name, value, messages) => {
    const found = findIn(({ annotations }) => (annotations[key(name)] = value));
    expect(found.map((one) => one.replace(/^.*error: /, ''))).toEqual(messages);
  });

  it.each<[string, string[]]>([
    ['v4.12', []],
    ['v4.10', ['"v4.10" selects OpenShift 4.10, 4.11, whose Kubernetes is below spec.minKubeVersion 1.25.0']],
    ['v4.12-v4.10', ['the range "v4.12-v4.10" in the label ends before it starts']],
    ['four', ['"four" in the label is not a version such as v4.12']],
    ['', ['empty']],
  ])('warns of OpenShift versions %j', (label, messages) => {
    const name = 'com.redhat.openshift.versions';
    const found = findIn(({ annotations }) => (annotations[name] = label));
    expect(found.map((one) => one.replace(/^metadata\/annotations.yaml:\d+: /, ''))).toEqual(
      messages.map((message) => `warning: ${name}: ${message}`),
    );
  });

  it.each<[unknown, string[]]>([
    [{ type: 'olm.gvk', value: { group: 'a' } }, ['API Kind is empty', 'API Version is empty']],
    [{ type: 'olm.gvk', value: { group: 1 } }, ["couldn't parse dependency of type olm.gvk"]],
    [{ type: 'olm.gvk', value: '{"group": "a"}' }, ["couldn't parse dependency of type olm.gvk"]],
    [{ type: 'olm.package', value: {} }, ['Package name is empty', 'Package version is empty']],
    [{ type: 'olm.package', value: { packageName: 'a', version: 'x' } }, ['Invalid semver format version']],
    [{ type: 'olm.package', value: { packagename: 'a', version: '>=1.0.0' } }, []],
    [{ type: 'olm.label', value: {} }, ['Label information is missing']],
    [{ type: 'olm.label' }, ["couldn't parse dependency of type olm.label"]],
    [{ type: 'olm.constraint', value: { all: {} } }, ['The CEL field is missing']],
    [{ type: 'olm.constraint', value: { cel: {} } }, ['The CEL expression is missing']],
    [{ type: 'olm.constraint', value: { cel: { rule: 'properties.exists(p, p.type == "a")' } } }, []],
    [{ type: 'foo', value: 1 }, ["couldn't parse dependency of type foo"]],
  ])('dependency %j', (dependency, messages) => {
    const others = { 'metadata/dependencies.yaml': { dependencies: [dependency] } };
    const found = findIn(() => undefined, { others });
    expect(found).toEqual(messages.map((message) => `metadata/dependencies.yaml:3: error: ${message}`));
  });
});
