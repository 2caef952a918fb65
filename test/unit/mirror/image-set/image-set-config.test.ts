import { readFileSync } from 'node:fs';
import { Ajv } from 'ajv';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';

import { parseYaml } from '../../../../src/document/yaml.js';
import {
  readDeleteImageSetConfiguration,
  readImageSetConfiguration,
} from '../../../../src/mirror/image-set/image-set-config.js';
import { messagesThrown } from '../../../support/diagnostics.js';

const schema = JSON.parse(readFileSync('schemas/image-set-configuration.json', 'utf8')) as object;
const matchesSchema = new Ajv({ allowUnionTypes: true }).compile(schema);

const head = 'kind: ImageSetConfiguration\napiVersion: mirror.openshift.io/v2alpha1\n';
const operator = `${head}mirror:\n  operators:\n  - catalog: quay.io/acme/index:v1\n`;

const faultsOf = (text: string): string[] =>
  messagesThrown(() => readImageSetConfiguration(text, 'set.yaml'), { hints: true });

const accepted: Record<string, string> = {
  'one catalog': operator,
  'no apiVersion':
    'kind: ImageSetConfiguration\nmirror:\n  additionalImages:\n  - name: quay.io/acme/tool:v1\n',
  'empty sections': `${operator}  platform: {}\n  helm:\n  samples: []\n  blockedImages:\n`,
  'a platform without releases': `${operator}  platform:\n    architectures: [multi, amd64]\n    kubeVirtContainer: true\n`,
  everything: `${head}archiveSize: 4
mirror:
  operators:
  - catalog: quay.io/acme/index@sha256:${'a'.repeat(64)}
    full: false
    targetCatalog: mine/index
    targetTag: v2
    targetCatalogSourceTemplate: cs.yaml
    skipDependencies: true
    platforms:
    - os: linux
      architecture: arm64
    packages:
    - name: widget
      defaultChannel: stable
      channels:
      - name: stable
        minVersion: 1.2.3
        maxVersion: 1.2.4-rc.1+build
    - name: gadget
      minVersion: '1.0.0'
  - catalog: oci://catalogs/other
    full: yes
  additionalImages:
  - name: quay.io/acme/tool
    targetRepo: tools/tool
    targetTag: v1
  blockedImages:
  - name: (?i)^quay\\.io/acme/unwanted
`,
};

/** Text below the operator, and what is said of it. */
const refused: Record<string, [text: string, fault: string]> = {
  'an unknown field': [
    `${operator}    ful: true\n`,
    'set.yaml:6:5: mirror.operators[0].ful: unknown field (use "full")',
  ],
  'a key of another version': [
    `${operator}    packages:\n    - name: widget\n      bundles: []\n`,
    'set.yaml:8:7: mirror.operators[0].packages[0].bundles: unknown field ' +
      '(select versions with minVersion and maxVersion)',
  ],
  'another kind': [
    operator.replace('Image', 'DeleteImage'),
    'set.yaml:1:1: kind: expected ImageSetConfiguration, got "DeleteImageSetConfiguration" ' +
      '(use kind: ImageSetConfiguration)',
  ],
  'an unknown architecture': [
    `${operator}  platform:\n    graph: true\n    architectures: [x86_64]\n`,
    'set.yaml:8:21: mirror.platform.architectures[0]: unknown architecture "x86_64" (use "amd64")',
  ],
  'architectures and platforms': [
    `${operator}  platform:\n    graph: true\n    architectures: [amd64]\n    platforms: [{os: linux, architecture: amd64}]\n`,
    'set.yaml:9:5: mirror.platform.platforms: platforms and architectures cannot be combined ' +
      '(keep platforms: architectures is deprecated)',
  ],
  'an unknown type of channel': [
    `${operator}  platform:\n    channels: [{name: stable-4.18, type: okdd}]\n`,
    'set.yaml:7:36: mirror.platform.channels[0].type: unsupported value "okdd" (use "okd")',
  ],
  'a channel with a path for a name': [
    `${operator}  platform:\n    channels: [{name: ../stable}]\n`,
    'set.yaml:7:17: mirror.platform.channels[0].name: expected the name of a channel, got "../stable"',
  ],
  'an unknown field of a chart': [
    `${operator}  helm:\n    local:\n    - path: a\n      secrets: {}\n`,
    'set.yaml:9:7: mirror.helm.local[0].secrets: unknown field (use one of name, version, path, imagePaths, platforms, values)',
  ],
  'a local chart without path': [
    `${operator}  helm:\n    local:\n    - name: a\n`,
    'set.yaml:8:7: mirror.helm.local[0].path: missing',
  ],
  'a chart repository without address': [
    `${operator}  helm:\n    repositories:\n    - name: a\n`,
    'set.yaml:8:7: mirror.helm.repositories[0].url: missing',
  ],
  'a chart repository that is a registry': [
    `${operator}  helm:\n    repositories:\n    - name: a\n      url: oci://reg.test/charts\n`,
    'set.yaml:9:7: mirror.helm.repositories[0].url: "oci://reg.test/charts": charts in registries have no index ' +
      '(pull the chart with helm pull and list its file below helm.local)',
  ],
  'no catalog': [
    `${head}mirror:\n  operators:\n  - full: true\n`,
    'set.yaml:5:5: mirror.operators[0].catalog: missing',
  ],
  'a platform without releases, and nothing else': [
    'kind: ImageSetConfiguration\napiVersion: mirror.openshift.io/v2alpha1\nmirror:\n  platform:\n    architectures: [amd64]\n',
    'set.yaml:3:1: mirror: nothing to mirror (list catalogs below mirror.operators)',
  ],
  'nothing to mirror': [
    `${head}mirror: {}\n`,
    'set.yaml:3:1: mirror: nothing to mirror (list catalogs below mirror.operators)',
  ],
  'a number for a version': [
    `${operator}    packages:\n    - name: widget\n      minVersion: 4.14\n`,
    'set.yaml:8:7: mirror.operators[0].packages[0].minVersion: expected a string, got the number 4.14 ' +
      '(quote the value)',
  ],
  'a version that is none': [
    `${operator}    packages:\n    - name: widget\n      channels:\n      - name: a\n        maxVersion: one\n`,
    'set.yaml:10:9: mirror.operators[0].packages[0].channels[0].maxVersion: invalid version "one" ' +
      '(use a version such as 1.2.3 or 1.2.3-rc.1)',
  ],
  'a path that is none': [
    `${operator}    targetCatalog: Mine/index:v1\n`,
    'set.yaml:6:5: mirror.operators[0].targetCatalog: expected a repository path, got "Mine/index:v1"',
  ],
  'a negative archive size': [
    `${operator}archiveSize: -1\n`,
    'set.yaml:6:1: archiveSize: expected an integer from 0 to 1048576, got -1',
  ],
};

/** What no schema can say. */
const refusedByReader: Record<string, [text: string, fault: string]> = {
  'a key that is there twice': [
    `${operator}    full: true\n    full: false\n`,
    'set.yaml:7:5: mirror.operators[0].full: duplicate key, first defined on line 6 (keep one of them)',
  ],
  'a second document': [
    `${operator}---\nkind: Other\n`,
    'set.yaml:6:1: unexpected second document (use one configuration per file)',
  ],
  'a package that is there twice': [
    `${operator}    packages:\n    - name: widget\n    - name: widget\n`,
    'set.yaml:8:7: mirror.operators[0].packages[1]: duplicate package "widget", first defined on line 7 ' +
      '(merge both into one item)',
  ],
  'versions of a package and of its channel': [
    `${operator}    packages:\n    - name: w\n      minVersion: 1.0.0\n      channels:\n` +
      `      - name: a\n        minVersion: 1.0.0\n`,
    'set.yaml:7:7: mirror.operators[0].packages[0]: versions are set for the package and for its channels ' +
      '(set them for the package, or for each channel)',
  ],
  'versions and full': [
    `${operator}    full: true\n    packages:\n    - name: w\n      minVersion: 1.0.0\n`,
    'set.yaml:8:7: mirror.operators[0].packages[0]: versions cannot be combined with full: true ' +
      '(remove either full or the versions)',
  ],
  'a least version above the most': [
    `${operator}    packages:\n    - name: w\n      minVersion: 2.0.0\n      maxVersion: 2.0.0-rc.1\n`,
    'set.yaml:8:7: mirror.operators[0].packages[0].minVersion: 2.0.0 is greater than maxVersion 2.0.0-rc.1',
  ],
  'two catalogs in one place': [
    `${operator}  - catalog: registry.test/acme/index:v1\n`,
    'set.yaml:6:5: mirror.operators[1]: same target acme/index:v1 as quay.io/acme/index:v1 on line 5 ' +
      '(set another targetCatalog or targetTag for one of them)',
  ],
  'a reference that does not parse': [
    `${head}mirror:\n  additionalImages:\n  - name: quay.io/Acme/tool:v1\n`,
    'set.yaml:5:5: mirror.additionalImages[0].name: image reference "quay.io/Acme/tool:v1": invalid reference ' +
      'format: repository name must be lowercase (use lower case for the repository name)',
  ],
  'a pattern that is none': [
    `${operator}  blockedImages:\n  - name: '('\n`,
    'set.yaml:7:5: mirror.blockedImages[0].name: invalid regular expression "("',
  ],
  'text that is no YAML': ['kind: [', 'set.yaml:1: yaml: did not find expected node content'],
};

describe('mirror/image-set-config', () => {
  it.each(Object.entries(accepted))('takes %s, as the schema does', (_name, text) => {
    expect(faultsOf(text)).toEqual([]);
    expect(matchesSchema(parseYaml(text)), JSON.stringify(matchesSchema.errors)).toBe(true);
  });

  it.each(Object.entries(refused))('refuses %s, as the schema does', (_name, [text, fault]) => {
    expect(faultsOf(text)).toEqual([fault]);
    expect(matchesSchema(parseYaml(text))).toBe(false);
  });

  it.each(Object.entries(refusedByReader))('refuses %s', (_name, [text, fault]) => {
    expect(faultsOf(text)).toEqual([fault]);
  });

  it('warns of sections without effect', () => {
    const text = `${operator}  platform:\n    architectures: [amd64]\n  samples: [{name: a}]\n`;
    const { warnings, releases } = readImageSetConfiguration(text, 'set.yaml');
    expect(warnings).toEqual([
      'set.yaml:8:3: mirror.samples: no effect, as with oc-mirror',
      'set.yaml:6:3: mirror.platform: no effect, it has neither channels nor a release',
    ]);
    expect(releases).toBeUndefined();
  });

  it('reports every fault, in the order of the text', () => {
    const faults = faultsOf(`${operator}    ful: 1\n    full: 1\n  platform:\n    a: 1\nextra: 1\n`);
    expect(faults.map((fault) => fault.slice(0, 12))).toEqual([
      'set.yaml:6:5',
      'set.yaml:7:5',
      'set.yaml:9:5',
      'set.yaml:10:',
    ]);
  });

  it('reads all there is', () => {
    const config = readImageSetConfiguration(accepted['everything'] as string, 'set.yaml');
    expect(config).toMatchObject({
      archiveBytes: 4 * 1024 ** 3,
      operators: [
        {
          full: false,
          targetCatalog: 'mine/index',
          targetTag: 'v2',
          targetCatalogSourceTemplate: 'cs.yaml',
          platforms: [{ os: 'linux', architecture: 'arm64' }],
          packages: [
            {
              name: 'widget',
              defaultChannel: 'stable',
              channels: [{ name: 'stable', minVersion: '1.2.3', maxVersion: '1.2.4-rc.1+build' }],
            },
            { name: 'gadget', minVersion: '1.0.0', channels: undefined },
          ],
        },
        { full: true, packages: undefined, reference: { transport: 'oci', path: 'catalogs/other' } },
      ],
      additionalImages: [{ name: 'quay.io/acme/tool', targetRepo: 'tools/tool', targetTag: 'v1' }],
    });
    expect(config.blockedImages[0]?.pattern.test('QUAY.IO/acme/unwanted:v1')).toBe(true);
    expect(readImageSetConfiguration(operator, 'set.yaml').archiveBytes).toBe(500 * 1024 ** 3);
  });

  it('reads what to delete by the same rules', () => {
    const toDelete = (text: string): string =>
      text.replace('kind: ImageSet', 'kind: DeleteImageSet').replace(/^mirror:/m, 'delete:');
    const file = 'schemas/delete-image-set-configuration.json';
    const matches = new Ajv({ allowUnionTypes: true }).compile(JSON.parse(readFileSync(file, 'utf8')));
    const config = readDeleteImageSetConfiguration(toDelete(operator), 'set.yaml');
    expect(config).toEqual(readImageSetConfiguration(operator, 'set.yaml'));
    expect(matches(parseYaml(toDelete(operator)))).toBe(true);
    for (const [text, fault] of [
      [operator, 'set.yaml:1:1: kind: expected DeleteImageSetConfiguration'],
      [`${toDelete(operator)}archiveSize: 1\n`, 'archiveSize: unknown field'],
      [`${toDelete(operator)}  blockedImages: [{name: a}]\n`, 'delete.blockedImages: unknown field'],
      [`${toDelete(operator)}mirror: {}\n`, 'mirror: unknown field'],
      ['kind: DeleteImageSetConfiguration\ndelete: {}\n', 'delete: nothing to delete'],
      ['kind: DeleteImageSetConfiguration\n', 'delete: missing'],
    ] as const) {
      expect(() => readDeleteImageSetConfiguration(text, 'set.yaml')).toThrow(fault);
      expect(matches(parseYaml(text))).toBe(false);
    }
    expect(faultsOf(toDelete(operator)).join()).toContain('kind: expected ImageSetConfiguration');
  });

  it('never fails otherwise, and takes nothing that the schema refuses', () => {
    const odd = fc.constantFrom<unknown>(null, true, 0, 1, -1, 1.5, '', 'a', '1.2.3', 'A:b', '(', [], {}, [
      null,
    ]);
    const mostly = (value: fc.Arbitrary<unknown>) =>
      fc.oneof({ weight: 30, arbitrary: value }, { weight: 1, arbitrary: odd });
    const fields = (model: Record<string, fc.Arbitrary<unknown>>, requiredKeys: string[] = []) => {
      const values = Object.entries(model).map(([key, value]) => [key, mostly(value)]);
      return fc.record(Object.fromEntries(values) as Record<string, fc.Arbitrary<unknown>>, { requiredKeys });
    };
    const list = (value: fc.Arbitrary<unknown>) => fc.array(mostly(value), { maxLength: 2 });
    const text = fc.constantFrom('a', 'b/c', 'quay.io/a/b:v1', 'v2');
    const version = fc.constantFrom('1.0.0', '1.0.0-rc.1', '2.0.0+b');
    const bounds = { minVersion: version, maxVersion: version };
    const platforms = list(fields({ os: text, architecture: text }, ['os', 'architecture']));
    const channels = list(fields({ name: text, ...bounds }, ['name']));
    const named = { name: text, defaultChannel: text, channels, ...bounds };
    const target = { targetTag: fc.constantFrom('v1', 'v2'), platforms };
    const operator = {
      catalog: text,
      full: fc.boolean(),
      packages: list(fields(named, ['name'])),
      ...target,
    };
    const more = { targetCatalog: text, skipDependencies: fc.boolean(), targetCatalogSourceTemplate: text };
    const mirror = fields({
      operators: list(fields({ ...operator, ...more }, ['catalog'])),
      additionalImages: list(fields({ name: text, targetRepo: text, ...target }, ['name'])),
      blockedImages: list(fields({ name: text }, ['name'])),
      platform: fields({
        graph: fc.boolean(),
        channels: list(
          fields({ name: text, type: fc.constantFrom('ocp', 'okd'), full: fc.boolean(), ...bounds }, [
            'name',
          ]),
        ),
        architectures: list(fc.constantFrom('amd64', 'multi')),
        kubeVirtContainer: fc.boolean(),
        platforms,
      }),
      helm: fc.constant(null),
      samples: fc.constant([]),
    });
    const kind = fc.constant('ImageSetConfiguration');
    const root = fields({ kind, mirror, archiveSize: fc.nat(9), apiVersion: text }, ['kind', 'mirror']);
    let accepted = 0;
    fc.assert(
      fc.property(root, (document) => {
        const text = JSON.stringify(document);
        if (faultsOf(text).length > 0) return;
        accepted++;
        expect(matchesSchema(document), JSON.stringify(matchesSchema.errors)).toBe(true);
      }),
      { numRuns: 3000, seed: 4 },
    );
    expect(accepted).toBeGreaterThan(200);
  });
});
