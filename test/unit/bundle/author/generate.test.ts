import { mkdir, readFile, readdir, symlink, writeFile } from 'node:fs/promises';
import path from 'node:path';
import { describe, expect, it } from 'vitest';
import { annotationsFile } from '../../../../src/bundle/author/annotations.js';
import { type BundleRequest, generateBundleFiles } from '../../../../src/bundle/author/generate.js';
import { inferFacts } from '../../../../src/bundle/author/infer.js';
import { listFiles } from '../../../../src/bundle/image-files.js';
import { detectMediaType } from '../../../../src/bundle/author/media-type.js';
import { replaceFiles } from '../../../../src/files/replace-file.js';
import { directoryWith } from '../../../support/temporary.js';

const csv = (name: string, spec = ''): string =>
  `apiVersion: operators.coreos.com/v1alpha1\nkind: ClusterServiceVersion\nmetadata: {name: ${name}}\nspec:\n  version: 1.0.0\n${spec}`;

const legacy = {
  'w.package.yaml':
    'packageName: wid\ndefaultChannel: stable\nchannels:\n- {name: stable, currentCSV: w.v3}\n- {name: alpha, currentCSV: w.v2}\n- {name: beta, currentCSV: zz}\n',
  '1/a.yaml': csv('w.v1', '  replaces: w.v3\n'),
  '2/a.yaml': csv('w.v2', '  skips: [w.v1]\n'),
  '3/a.yaml': csv('w.v3', '  replaces: w.v2\n'),
};

describe('bundle/author/media-type', () => {
  it.each([
    ['registry+v1', { 'a.yaml': 'kind: ClusterServiceVersion' }],
    ['registry+v1', { NOTES: '{"kind":"ClusterServiceVersion"}', 'b.yaml': 'a: [' }],
    ['registry+v1', { 'Chart.yaml': 'version: 1', 'a.yaml': csv('a') }],
    ['registry+v1', { 'Chart.yaml': 'name: x\nkeywords: foo', 'a.yaml': csv('a') }],
    ['registry+v1', { 'Chart.yaml': 'name: x\nname: y', 'a.yaml': csv('a') }],
    ['registry+v1', { 'big.yaml': `${csv('a')}  description: ${'x'.repeat(2 ** 20)}\n` }],
    ['helm', { 'Chart.yaml': 'name: x\ndeprecated: "yes"\nfoo: [1]', 'a.yaml': csv('a') }],
    ['plain', { 'a.yaml': 'kind: A\n---\nkind: ClusterServiceVersion', 'sub/a.yaml': csv('a') }],
    ['plain', { 'a.yaml': 'apiVersion: a/b/c\nkind: ClusterServiceVersion' }],
    ['plain', { 'README.md': '# : : hello' }],
  ])('is %s for %j', async (expected, files: Record<string, string>) => {
    expect(await detectMediaType(await directoryWith(files))).toBe(expected);
  });

  it('refuses a directory without files, and a file that cannot be read', async () => {
    const directory = await directoryWith({ 'sub/a.yaml': 'a' });
    await expect(detectMediaType(directory)).rejects.toThrow(
      `The directory ${directory} contains no yaml files`,
    );
    await symlink('nowhere', path.join(directory, 'link'));
    await expect(detectMediaType(directory)).rejects.toThrow('Unable to read file');
  });
});

describe('bundle/author/infer', () => {
  it('follows replaces and skips, including cycles', async () => {
    const root = await directoryWith(legacy);
    const channels = async (name: string) => (await inferFacts(path.join(root, name))).channels;
    expect(await channels('1')).toEqual(['alpha', 'stable']);
    expect(await channels('2')).toEqual(['alpha', 'stable']);
    expect(await inferFacts(path.join(root, '3'))).toEqual({
      packageName: 'wid',
      // The circle leads from the second version back to the third.
      channels: ['alpha', 'stable'],
      defaultChannel: 'stable',
    });
  });

  it('uses the only channel as default', async () => {
    const root = await directoryWith({
      ...legacy,
      'w.package.yaml': 'packageName: wid\nchannels: [{name: only, currentCSV: w.v3}]\n',
    });
    expect((await inferFacts(path.join(root, '2'))).defaultChannel).toBe('only');
  });

  it.each([
    [{ 'metadata/annotations.yaml': 'a: b' }, 'no ClusterServiceVersion object found in'],
    [{ '3/b.yaml': csv('b') }, 'more than one ClusterServiceVersion is found in bundle'],
    [{ 'w.package.yaml': '# nothing' }, 'valid PackageManifest YAML file not found in'],
  ])('refuses a package with %j', async (files, message) => {
    const root = await directoryWith({ ...legacy, ...files });
    await expect(inferFacts(path.join(root, '2'))).rejects.toThrow(message);
  });
});

describe('bundle/author/generate', () => {
  it('plans files without writing them, and describes inferred facts', async () => {
    const root = await directoryWith(legacy);
    const request: BundleRequest = {
      directory: path.join(root, '2'),
      packageName: '',
      channels: '',
      defaultChannel: '',
      workingDirectory: root,
    };
    const { facts, inferred, files } = await generateBundleFiles(request);
    expect(facts).toMatchObject({ packageName: 'wid', channels: 'alpha,stable', defaultChannel: 'stable' });
    expect(inferred).toHaveLength(3);
    expect(files.map(({ target }) => path.relative(root, target))).toEqual([
      'metadata/annotations.yaml',
      'bundle.Dockerfile',
    ]);
    expect(await readdir(root)).toEqual(['1', '2', '3', 'w.package.yaml']);
    const odd = await generateBundleFiles({ ...request, packageName: 'a b', channels: 'c' });
    expect(odd.warnings).toHaveLength(1);
    await expect(
      generateBundleFiles({ ...request, packageName: 'a', channels: 'b\nRUN id' }),
    ).rejects.toThrow('unexpected line break in ');
    const missing = { ...request, directory: path.join(root, 'nope') };
    await expect(generateBundleFiles(missing)).rejects.toThrow(/nope: no such file or directory$/);
  });

  it('omits an empty default channel, and does not fold long values', () => {
    const text = annotationsFile({
      mediaType: 'helm',
      packageName: 'word '.repeat(40).trim(),
      channels: '1.0',
      defaultChannel: '',
    });
    expect(text).not.toContain('default');
    expect(text.split('\n')).toHaveLength(7);
    expect(text).toContain('channels.v1: "1.0"\n');
  });

  it('copies its own output neither into itself nor over its source', async () => {
    const root = await directoryWith({ 'a.yaml': csv('a'), 'out/manifests/old.yaml': 'x' });
    const base = {
      directory: root,
      packageName: 'p',
      channels: 'c',
      defaultChannel: '',
      workingDirectory: root,
    };
    const { files } = await generateBundleFiles({ ...base, outputDirectory: path.join(root, 'out') });
    expect(files.map(({ target }) => path.relative(root, target))).toEqual([
      'out/manifests/a.yaml',
      'out/metadata/annotations.yaml',
      'bundle.Dockerfile',
    ]);
  });
});

describe('bundle/image-files, for bundles', () => {
  it('lists files in subdirectories, follows links within, and reports all others', async () => {
    const root = await directoryWith({ 'd/a': '1', 'd/s/b': '22', 'd/bad\nname': '', outside: 'x' });
    const at = path.join(root, 'd');
    await mkdir(path.join(at, 'empty'));
    await symlink('a', path.join(at, 'within'));
    await symlink('../outside', path.join(at, 'out'));
    await symlink('s', path.join(at, 'to-directory'));
    await symlink('gone', path.join(at, 'to-nothing'));
    const { files, findings } = await listFiles(at, { label: 'd' });
    expect(files.map(({ path: name, size }) => [name, size])).toEqual([
      ['a', 1],
      ['s/b', 2],
      ['within', 1],
    ]);
    expect(findings.map(({ file }) => file)).toEqual([
      'd/bad\nname',
      'd/out',
      'd/to-directory',
      'd/to-nothing',
    ]);
  });

  it('limits files and levels, and can be cancelled', async () => {
    const root = await directoryWith({ [`${'d/'.repeat(102)}a`]: '' });
    await expect(listFiles(root, { label: 'x' })).rejects.toMatchObject({ code: 'LIMIT' });
    await expect(listFiles(root, { label: 'x', signal: AbortSignal.abort() })).rejects.toMatchObject({
      code: 'CANCELLED',
    });
    await expect(listFiles(path.join(root, 'nope'), { label: 'x' })).rejects.toThrow(
      'x: no such file or directory',
    );
  });
});

describe('replaceFiles', () => {
  it('changes nothing when one of them fails', async () => {
    const root = await directoryWith({ old: 'old', 'in-the-way/x': '' });
    const files = [
      { target: path.join(root, 'old'), text: 'new' },
      { target: path.join(root, 'new/deep/file'), text: 'new' },
    ];
    await expect(
      replaceFiles([...files, { target: path.join(root, 'in-the-way'), text: '' }]),
    ).rejects.toThrow('is a directory');
    await expect(replaceFiles(files, { signal: AbortSignal.abort() })).rejects.toMatchObject({
      code: 'CANCELLED',
    });
    expect((await readdir(root)).sort()).toEqual(['in-the-way', 'old']);
    expect(await readFile(path.join(root, 'old'), 'utf8')).toBe('old');
    await replaceFiles(files);
    expect(await readFile(path.join(root, 'old'), 'utf8')).toBe('new');
    expect((await readdir(root)).sort()).toEqual(['in-the-way', 'new', 'old']);
  });

  it('writes through a link, and copies with the mode', async () => {
    const root = await directoryWith({ real: 'old', source: 'text' });
    await symlink('real', path.join(root, 'link'));
    await writeFile(path.join(root, 'source'), 'text', { mode: 0o640 });
    await replaceFiles([
      { target: path.join(root, 'link'), copyOf: path.join(root, 'source'), mode: 0o100640 },
    ]);
    expect(await readFile(path.join(root, 'real'), 'utf8')).toBe('text');
  });
});
