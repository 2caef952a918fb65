import { mkdir, writeFile } from 'node:fs/promises';
import path from 'node:path';
import { describe, expect, it } from 'vitest';
import { formatMessage } from '../../../../src/core/diagnostic.js';
import { buildBundleImages, prepareBundle } from '../../../../src/bundle/author/build.js';
import type { BundleRequest } from '../../../../src/bundle/author/generate.js';
import { smallBundle } from '../../../support/small-bundle.js';
import { directoryWith } from '../../../support/temporary.js';

const key = 'operators.operatorframework.io.bundle';
const { 'manifests/csv.yaml': csv = '' } = smallBundle();
const base = { 'manifests/csv.yaml': csv };

function requestIn(root: string, more: Partial<BundleRequest> = {}): BundleRequest {
  return {
    directory: path.join(root, 'manifests'),
    packageName: 'widget',
    channels: 'stable',
    defaultChannel: '',
    workingDirectory: root,
    ...more,
  };
}

async function findingsOf(
  files: Record<string, string>,
  more: Partial<BundleRequest> = {},
): Promise<string[]> {
  const { findings } = await prepareBundle(requestIn(await directoryWith({ ...base, ...files }), more));
  return findings.map(({ file, line, ...finding }) => `${file}:${line ?? ''} ${formatMessage(finding)}`);
}

describe('bundle/author/build', () => {
  it('builds the same image twice, with a layer per directory and annotations as labels', async () => {
    const digests = [];
    for (const extra of [{}, { 'unrelated.txt': 'x' }]) {
      const root = await directoryWith({
        ...base,
        'metadata/dependencies.yaml': 'dependencies: []\n',
        ...extra,
      });
      const prepared = await prepareBundle(requestIn(root));
      expect(prepared.findings).toEqual([]);
      expect(prepared.files).toEqual([]);
      const { files } = await prepareBundle(requestIn(root), { overwrite: true });
      expect(files.map(({ target }) => path.relative(root, target))).toEqual([
        'metadata/annotations.yaml',
        'bundle.Dockerfile',
      ]);
      const directory = await directoryWith();
      const [image] = await buildBundleImages(prepared, { bases: [], directory });
      const config = JSON.parse(image?.config.toString() ?? '') as { config: { Labels: object } };
      expect(config.config.Labels).toMatchObject({ [`${key}.package.v1`]: 'widget' });
      expect(image?.layerFiles).toHaveLength(2);
      digests.push(image?.descriptor.digest);
    }
    expect(digests[0]).toBe(digests[1]);
  });

  it('adds the tests that an annotation names, and warns if they are missing', async () => {
    const annotations = `annotations:\n  ${key}.mediatype.v1: registry+v1\n  ${key}.manifests.v1: manifests/\n  ${key}.metadata.v1: metadata/\n  ${key}.package.v1: widget\n  ${key}.channels.v1: stable\n  operators.operatorframework.io.test.config.v1: tests/scorecard/\n`;
    const root = await directoryWith({ ...base, 'metadata/annotations.yaml': annotations });
    const without = await prepareBundle(requestIn(root), { readsOnly: true });
    expect(without.warnings.map(formatMessage)).toEqual([
      'operators.operatorframework.io.test.config.v1 names "tests/scorecard/", which does not exist',
    ]);
    await mkdir(path.join(root, 'tests/scorecard'), { recursive: true });
    await writeFile(path.join(root, 'tests/scorecard/config.yaml'), 'x');
    const { layers, files } = await prepareBundle(requestIn(root), { readsOnly: true });
    expect(layers.map(({ target }) => target)).toEqual(['manifests', 'metadata', 'tests/scorecard']);
    expect(files).toEqual([]);
  });

  it('requires annotations if nothing may be written', async () => {
    const root = await directoryWith(base);
    await expect(prepareBundle(requestIn(root), { readsOnly: true })).rejects.toMatchObject({
      message: 'metadata/annotations.yaml: no such file',
      hint: 'create it with api.generateBundle',
    });
  });

  it('reports all faults of manifests', async () => {
    const owning = JSON.stringify({
      ...(JSON.parse(csv) as object),
      spec: { customresourcedefinitions: { owned: [{ name: 'as.x.io', version: 'v1', kind: 'A' }] } },
    });
    const findings = await findingsOf({
      'manifests/csv.yaml': owning,
      'manifests/b.yaml': 'a: 1\n  b: 2\n',
      'manifests/c.yaml': 'foo: bar\n',
      'manifests/d.yaml': '# first\n---\nkind: D\n',
      'manifests/crd.yaml':
        'apiVersion: apiextensions.k8s.io/v1\nkind: CustomResourceDefinition\nmetadata: {name: x}\nspec:\n  group: 5\n',
      'manifests/README.md': '# : : text',
    });
    expect(findings).toHaveLength(4);
    expect(findings[0]).toMatch(/^manifests\/b\.yaml:2 /);
    expect(findings[1]).toBe('manifests/c.yaml: not a Kubernetes object: missing kind');
    expect(findings[2]).toMatch(/^manifests\/crd\.yaml:5 .*spec\.group/);
    expect(findings[3]).toContain("couldn't find x.io/v1/A (as) in bundle");
  });

  it.each([
    [
      'duplicate keys',
      'annotations:\n  a: b\n  a: c\n',
      'metadata/annotations.yaml:3 annotations.a: duplicate key',
    ],
    ['lists', 'annotations:\n  a: [b]\n', 'metadata/annotations.yaml:2 "a": expected a string'],
    ['no annotations', 'foo: bar\n', 'metadata/annotations.yaml: no annotations'],
    ['no YAML', 'a: [\n', 'metadata/annotations.yaml:'],
  ])('refuses annotations with %s', async (_what, text, expected) => {
    const [first] = await findingsOf({ 'metadata/annotations.yaml': text });
    expect(first).toContain(expected);
  });

  it('refuses invalid names, and metadata with other annotations', async () => {
    expect(await findingsOf({}, { channels: 'alpha, stable' })).toEqual([
      `metadata/annotations.yaml: ${key}.channels.v1: a channel " stable" has a blank in it`,
    ]);
    expect(await findingsOf({}, { channels: 'a,' })).toHaveLength(1);
    expect(await findingsOf({ 'metadata/dependencies.yaml': 'a: b: c\n' })).toHaveLength(1);
    expect(await findingsOf({ 'metadata/other.yaml': `annotations: {${key}.package.v1: x}\n` })).toEqual([
      'metadata/other.yaml: has annotations of a bundle, as annotations.yaml has',
    ]);
  });

  it('does not build from a different copy unless it is replaced', async () => {
    const files = { 'out/manifests/csv.yaml': 'older' };
    const root = await directoryWith({ ...base, ...files });
    const request = requestIn(root, { outputDirectory: path.join(root, 'out') });
    expect((await prepareBundle(request)).findings).toMatchObject([
      { file: 'out/manifests/csv.yaml', problem: 'differs from manifests/csv.yaml' },
    ]);
    expect((await prepareBundle(request, { overwrite: true })).findings).toEqual([]);
  });

  it('refuses a Dockerfile on another base', async () => {
    const dockerfile =
      'FROM a/b:c\nCOPY manifests /manifests/\nCOPY metadata /metadata/\nCOPY x /manifests/x\n';
    const findings = await findingsOf({ 'bundle.Dockerfile': dockerfile }, { baseImage: 'scratch' });
    expect(findings).toEqual([
      'bundle.Dockerfile: FROM a/b:c, but options.baseImage is scratch',
      'bundle.Dockerfile:4 COPY x: adds to /manifests/x',
    ]);
  });

  it('warns that it does not read ignore files of engines', async () => {
    const root = await directoryWith({ ...base, '.dockerignore': 'manifests/secret' });
    const { warnings } = await prepareBundle(requestIn(root));
    expect(warnings).toMatchObject([{ file: '.dockerignore' }]);
  });
});
