import { symlink } from 'node:fs/promises';
import path from 'node:path';
import { describe, expect, it } from 'vitest';
import { OpmateError } from '../../../../src/core/errors.js';
import { type RegistryReference, parseReference } from '../../../../src/core/reference.js';
import { parseYaml } from '../../../../src/document/yaml.js';
import type { OperatorConfig } from '../../../../src/mirror/image-set/image-set-config.js';
import { readCatalogSourceTemplates } from '../../../../src/mirror/image-set/catalog-source-template.js';
import {
  type ClusterResourceOptions,
  encodeClusterResources,
  isObjectName,
  isObjectPrefix,
} from '../../../../src/mirror/image-set/image-set-resources.js';
import { targetReference } from '../../../../src/mirror/naming/mirror-target.js';
import type { TargetCatalog, MirroredContent } from '../../../../src/mirror/plan/mirror-plan.js';
import type { PlannedImage } from '../../../../src/mirror/plan/planned-image.js';
import { directoryWith } from '../../../support/temporary.js';

type RegistryImage = PlannedImage<RegistryReference>;

const registry = 'registry.test';

function imageOf(text: string, kind: PlannedImage['kind'] = 'related', repository?: string): RegistryImage {
  const reference = parseReference(text);
  const own = reference.transport === 'docker' ? `base/${reference.repository}` : 'base/other';
  const target = targetReference({ registry, path: '' }, repository ?? own, 'v1');
  const names = { source: `docker://${text}`, title: text, target, destination: target.text };
  return { kind, reference, ...names, bundles: [] };
}

function catalogOf(repository: string, tag: string): TargetCatalog {
  return {
    operator: { catalog: `quay.io/${repository}:${tag}`, targetCatalogSourceTemplate: undefined },
    destination: `${registry}/base/${repository}:${tag}`,
    name: { repository, tag },
  };
}

const planOf = (images: RegistryImage[], catalogs: TargetCatalog[] = []): MirroredContent => {
  return { images, catalogs };
};

/** Names of the mirror sets of a file, and their entries as `source -> mirrors`. */
function entriesOf(files: Map<string, string>, file: string): Record<string, string[]> {
  const documents = (files.get(file) ?? '').split('---\n').slice(1);
  return Object.fromEntries(
    documents.map((text) => {
      const { metadata, spec } = parseYaml(text) as unknown as {
        metadata: { name: string };
        spec: Record<string, { source: string; mirrors: string[] }[]>;
      };
      const [list = []] = Object.values(spec);
      return [metadata.name, list.map(({ source, mirrors }) => `${source} -> ${mirrors.join(' ')}`)];
    }),
  );
}

const digest = `sha256:${'a'.repeat(64)}`;
const resources = (plan: MirroredContent, options: Partial<ClusterResourceOptions> = {}) =>
  encodeClusterResources(plan, { target: { registry, path: '' }, ...options });

describe('mirror/image-set-resources', () => {
  it('redirects digests and tags in sets of their own, by namespace where paths are kept', () => {
    const files = resources(
      planOf([
        imageOf(`quay.io/acme/app@${digest}`),
        imageOf(`quay.io/acme/other@${digest}`, 'bundle'),
        imageOf(`quay.io/both/app:v1@${digest}`),
        imageOf('registry.redhat.io/ubi9:latest'),
        imageOf('quay.io/tools/tool:v1', 'additional', 'mine/tool'),
        imageOf('quay.io/acme/index:v1', 'catalog'),
      ]),
    );
    expect([...files.keys()].sort()).toEqual(['idms-oc-mirror.yaml', 'itms-oc-mirror.yaml']);
    expect(entriesOf(files, 'idms-oc-mirror.yaml')).toEqual({
      'idms-operator-0': [
        'quay.io/acme -> registry.test/base/acme',
        'quay.io/both -> registry.test/base/both',
      ],
    });
    expect(entriesOf(files, 'itms-oc-mirror.yaml')).toEqual({
      'itms-generic-0': ['quay.io/tools/tool -> registry.test/mine/tool'],
      'itms-operator-0': [
        'quay.io/both -> registry.test/base/both',
        'registry.redhat.io -> registry.test/base',
      ],
    });
  });

  it('names each repository where paths were shortened, and one policy where that is asked for', () => {
    const plan = planOf([imageOf(`quay.io/acme/app@${digest}`), imageOf('quay.io/acme/app:v1')]);
    const files = resources(plan, {
      target: { registry, path: '', maxNestedPaths: 9 },
      icsp: true,
      prefix: 'team-',
    });
    expect([...files.keys()]).toEqual(['icsp-oc-mirror.yaml']);
    expect(entriesOf(files, 'icsp-oc-mirror.yaml')).toEqual({
      'team-icsp-operator-0': ['quay.io/acme/app -> registry.test/base/acme/app'],
    });
  });

  it.each([
    ['redhat/redhat-operator-index', 'v4.15', 'redhat-operator-index-v4-15'],
    ['acme/index', `sha256-7c4ef${'0'.repeat(59)}`, 'index-sha256-7c4ef'],
    ['acme/my_index', 'Release_2026.01', 'my-index-release-2026'],
    [`acme/${'long'.repeat(20)}`, 'v1', `${'long'.repeat(20).slice(0, 57)}-v1`],
  ])(
    'calls the objects of %s:%s as oc-mirror does, and always by a name that is one',
    (repository, tag, suffix) => {
      const files = resources(planOf([], [catalogOf(repository, tag)]));
      expect([...files.keys()]).toEqual([`cs-${suffix}.yaml`, `cc-${suffix}.yaml`]);
      const { metadata } = parseYaml(files.get(`cs-${suffix}.yaml`) as string) as {
        metadata: { name: string };
      };
      expect(metadata.name).toBe(`cs-${suffix}`);
      expect(isObjectName(metadata.name)).toBe(true);
    },
  );

  it('takes names of one’s own, and tells clusters when to look again', () => {
    const plan = planOf([], [catalogOf('acme/index', 'v1')]);
    const options = { catalogName: 'ours', prefix: 'x-', pollIntervalMinutes: 30 };
    const files = resources(plan, options);
    expect(parseYaml(files.get('cs-index-v1.yaml') as string)).toMatchObject({
      metadata: { name: 'ours' },
      spec: { updateStrategy: { registryPoll: { interval: '30m' } } },
    });
    expect(parseYaml(files.get('cc-index-v1.yaml') as string)).toMatchObject({
      metadata: { name: 'ours' },
      spec: { source: { image: { pollIntervalMinutes: 30 } } },
    });
    expect(resources(plan, { prefix: 'x-' }).get('cc-index-v1.yaml')).toContain('name: x-cc-index-v1\n');
    expect([
      isObjectName('-a'),
      isObjectName('A'),
      isObjectPrefix('x-'),
      isObjectPrefix('x'.repeat(32)),
    ]).toEqual([false, false, true, false]);
  });

  it('refuses one name for the objects of two catalogs', () => {
    const plan = planOf([], [catalogOf('acme/index', 'v1'), catalogOf('other/index', 'v1')]);
    expect(() => resources(plan)).toThrow(
      /same object name for quay.io\/acme\/index:v1 and quay.io\/other\/index:v1/,
    );
    expect(() => resources(plan, { catalogName: 'ours' })).toThrow('ours: 2 catalogs cannot have one name');
  });

  it.each([
    ['kind: [', 'yaml'],
    ['kind: ConfigMap', 'cs.yaml:1:1: kind: expected CatalogSource, got "ConfigMap"'],
    [
      'apiVersion: operators.coreos.com/v1\nkind: CatalogSource',
      'cs.yaml:1:1: apiVersion: expected operators',
    ],
    [
      'apiVersion: operators.coreos.com/v1alpha1\nkind: CatalogSource\nspec: {priority: 1, priority: 2}',
      'cs.yaml:3:21: spec.priority: duplicate key, first defined on line 3',
    ],
    [
      'apiVersion: operators.coreos.com/v1alpha1\nkind: CatalogSource\nspec: {sourceType: internal}',
      'spec.sourceType: unsupported value "internal"',
    ],
    ['apiVersion: operators.coreos.com/v1alpha1\nkind: CatalogSource\nspec: {configMap: a}', 'is an image'],
    ['apiVersion: operators.coreos.com/v1alpha1\nkind: CatalogSource\nspec: 1', 'expected an object'],
  ])('refuses the template %j', async (text, fault) => {
    const directory = await directoryWith({ 'cs.yaml': text });
    const operator = { targetCatalogSourceTemplate: 'cs.yaml' } as OperatorConfig;
    const reading = readCatalogSourceTemplates([operator], { directory });
    await expect(reading).rejects.toThrow(OpmateError);
    await expect(reading).rejects.toThrow(fault);
  });

  it('reads templates from files only, and none that is too large', async () => {
    const directory = await directoryWith({ 'large.yaml': '#'.repeat(1024 * 1024 + 1) });
    const read = (file: string) =>
      readCatalogSourceTemplates([{ targetCatalogSourceTemplate: file }], { directory });
    await expect(read('large.yaml')).rejects.toThrow('large.yaml: more than 1048576 bytes');
    await expect(read('../../../../../../../../dev/zero')).rejects.toThrow('dev/zero: not an ordinary file');
  });

  it('refuses templates behind links that lead out of the directory, unless links are followed', async () => {
    const template = 'apiVersion: operators.coreos.com/v1alpha1\nkind: CatalogSource\nspec: {priority: 5}\n';
    const root = await directoryWith({ 'elsewhere/cs.yaml': template, 'work/inside.yaml': template });
    const directory = path.join(root, 'work');
    await symlink('../elsewhere/cs.yaml', path.join(directory, 'cs.yaml'));
    await symlink('../elsewhere', path.join(directory, 'templates'));
    await symlink('inside.yaml', path.join(directory, 'again.yaml'));
    const read = (file: string, followLinks?: boolean) =>
      readCatalogSourceTemplates([{ targetCatalogSourceTemplate: file }], { directory, followLinks });
    for (const file of ['cs.yaml', 'templates/cs.yaml', path.join(directory, 'cs.yaml')]) {
      await expect(read(file)).rejects.toThrow(
        `${file}: links to "${root}/elsewhere/cs.yaml", outside of the`,
      );
      expect((await read(file, true)).size).toBe(1);
    }
    for (const file of ['again.yaml', '../elsewhere/cs.yaml']) expect((await read(file)).size).toBe(1);
  });
});
