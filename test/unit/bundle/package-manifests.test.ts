import { execFileSync } from 'node:child_process';
import { mkdir, symlink, truncate, writeFile } from 'node:fs/promises';
import path from 'node:path';
import { describe, expect, it } from 'vitest';
import { type TreeItem, readPackageManifests } from '../../../src/bundle/package-manifests.js';
import { asText, smallCrd, smallCsv, smallPackage, widgetTree } from '../../support/manifest-trees.js';
import { directoryWith } from '../../support/temporary.js';

async function read(directory: string): Promise<string[]> {
  const items: TreeItem[] = [];
  for await (const item of readPackageManifests(directory, { label: 'tree' })) items.push(item);
  return items.map((item) => {
    switch (item.kind) {
      case 'bundle':
        return `bundle ${item.bundle.name} of ${item.bundle.objects.length} in ${item.file}`;
      case 'package':
        return `package ${JSON.stringify(item.manifest)}`;
      case 'problem':
        return `problem ${item.error.message}${item.error.line === undefined ? '' : ` at ${item.error.line}`}`;
      default:
        return `skipped ${item.file}: ${item.reason}`;
    }
  });
}

const readFiles = async (files: Record<string, string | object>): Promise<string[]> =>
  read(await directoryWith(asText(files)));

describe('bundle/package-manifests', () => {
  it('finds packages, and bundles with the objects of their directory', async () => {
    expect(await readFiles(widgetTree())).toEqual([
      'package {"packageName":"widget","channels":[{"name":"stable","head":"widget.v2"},' +
        '{"name":"old","head":"widget.v1"}],"defaultChannel":"stable","file":"tree/widget/widget.package.yaml"}',
      'bundle widget.v1 of 2 in tree/widget/1.0.0/csv.yaml',
      'bundle widget.v2 of 2 in tree/widget/2.0.0/csv.yaml',
    ]);
  });

  it('shares the objects of a directory among its ClusterServiceVersions, without each other', async () => {
    const files = {
      'a.yaml': smallCsv({ name: 'a' }),
      'b.txt': smallCsv({ name: 'b' }),
      'c.yaml': smallCrd('c'),
    };
    expect(await readFiles(files)).toEqual(['bundle a of 2 in tree/a.yaml', 'bundle b of 2 in tree/b.txt']);
  });

  it('skips names that start with a dot, but reads a directory with such a name', async () => {
    const files = { '.x/.a.yaml': 'a: [', '.x/.b/c.yaml': 'a: [', '.x/d.yaml': smallCsv({ name: 'd' }) };
    const directory = await directoryWith(asText(files));
    expect(await read(directory)).toEqual([]);
    expect(await read(path.join(directory, '.x'))).toEqual(['bundle d of 1 in tree/d.yaml']);
  });

  it('skips files that are no manifests', async () => {
    const files = {
      'README.md': '# a: [',
      'empty.yaml': '',
      'annotations.yaml': 'annotations: {}',
      'x.json': '[1]',
    };
    expect(await readFiles(files)).toEqual([
      'skipped tree/README.md: its first document is empty',
      'skipped tree/empty.yaml: its first document is empty',
      'skipped tree/x.json: first document: expected an object, got a list',
    ]);
  });

  it('reports a manifest that does not parse, with its line', async () => {
    const [yaml, note] = await readFiles({
      'a.yaml': 'a:\n  - b\n c: d\n',
      'note.txt': 'a:\n  - b\n c: d\n',
    });
    expect(yaml).toMatch(/^problem tree\/a\.yaml:3: yaml: .* at \d$/);
    expect(note).toMatch(/^skipped tree\/note\.txt: /);
  });

  it('reads numbers as names, and reports other types', async () => {
    const items = await readFiles({
      'a.yaml': 'packageName: a\nchannels:\n- name: 4.5\n  currentCSV: 7\n',
      'b.yaml': 'packageName: [b]\n',
      'c.yaml': 'packageName: c\nchannels:\n- name: x\n  currentCSV: {}\n',
    });
    expect(items).toEqual([
      'package {"packageName":"a","channels":[{"name":"4.5","head":"7"}],"defaultChannel":"","file":"tree/a.yaml"}',
      'problem tree/b.yaml: packageName: expected a string, got a list at 1',
      'problem tree/c.yaml: channels[0].currentCSV: expected a string, got an object at 4',
    ]);
  });

  it('reports a missing owned definition, and returns the bundle anyway', async () => {
    const items = await readFiles({ 'a.yaml': smallCsv({ name: 'a', owned: ['x'] }) });
    expect(items[0]).toMatch(/^problem tree\/a\.yaml: .*couldn't find example\.com\/v1\/x \(xs\) in bundle/);
    expect(items[1]).toBe('bundle a of 1 in tree/a.yaml');
  });

  it('returns no bundle for an invalid ClusterServiceVersion or definition', async () => {
    expect(
      await readFiles({
        'a/csv.yaml': 'kind: ClusterServiceVersion\nmetadata:\n  name: a\nspec:\n  version: 1\n',
        'b/csv.yaml': smallCsv({ name: '' }),
        'c/csv.yaml': smallCsv({ name: 'c' }),
        'c/csv2.yaml': smallCsv({ name: 'c' }),
        'd/csv.yaml': smallCsv({ name: 'd' }),
        'd/crd.yaml': {
          apiVersion: 'apiextensions.k8s.io/v1',
          kind: 'CustomResourceDefinition',
          spec: { group: 5 },
        },
        'e/crd.yaml': {
          apiVersion: 'apiextensions.k8s.io/v1',
          kind: 'CustomResourceDefinition',
          spec: { group: 5 },
        },
      }),
    ).toEqual([
      'problem tree/a/csv.yaml: spec.version: expected a string, got the number 1 at 5',
      'problem tree/b/csv.yaml: csv name not found',
      'problem tree/c/csv.yaml: two csvs found in one bundle: "c" is also in csv2.yaml',
      'problem tree/d/crd.yaml: error decoding v1 CRD: spec.group: expected a string, got the number 5 at 1',
    ]);
  });

  it('follows links to files only, and does not wait for pipes', async () => {
    const directory = await directoryWith(asText({ 'a.yaml': smallCsv({ name: 'a' }) }));
    await mkdir(path.join(directory, 'b'));
    await symlink('../a.yaml', path.join(directory, 'b', 'link.yaml'));
    await symlink('..', path.join(directory, 'b', 'loop'));
    await symlink('nothing', path.join(directory, 'b', 'nowhere'));
    execFileSync('mkfifo', [path.join(directory, 'b', 'pipe.yaml')]);
    expect(await read(directory)).toEqual([
      'bundle a of 1 in tree/a.yaml',
      'problem tree/b/loop: symbolic link to a directory, which is not followed',
      'problem tree/b/nowhere: symbolic link: no such file or directory',
      'skipped tree/b/pipe.yaml: not a regular file',
      'bundle a of 1 in tree/b/link.yaml',
    ]);
  });

  it('refuses a manifest beyond the limit, and skips other large files', async () => {
    const directory = await directoryWith(asText({ 'p.yaml': smallPackage('p', {}) }));
    await writeFile(path.join(directory, 'archive.bin'), '');
    await truncate(path.join(directory, 'archive.bin'), 65 * 1024 * 1024);
    expect((await read(directory))[0]).toBe('skipped tree/archive.bin: too large for a manifest');
    await truncate(path.join(directory, 'p.yaml'), 65 * 1024 * 1024);
    await expect(read(directory)).rejects.toMatchObject({ code: 'LIMIT' });
  });

  it('refuses a directory of too many files', async () => {
    const directory = await directoryWith();
    execFileSync('sh', ['-c', 'seq 10001 | xargs touch'], { cwd: directory });
    await expect(read(directory)).rejects.toMatchObject({ code: 'LIMIT' });
  });

  it('requires a directory', async () => {
    const directory = await directoryWith({ file: '' });
    await expect(read(path.join(directory, 'none'))).rejects.toMatchObject({
      code: 'NOT_FOUND',
      message: 'tree: no such file or directory',
    });
    await expect(read(path.join(directory, 'file'))).rejects.toMatchObject({
      message: 'tree: not a directory',
    });
  });

  it('stops when it is cancelled', async () => {
    const directory = await directoryWith(widgetTree());
    const reading = readPackageManifests(directory, { signal: AbortSignal.abort() });
    await expect(reading.next()).rejects.toMatchObject({ code: 'CANCELLED' });
  });
});
