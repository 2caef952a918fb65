import { execFileSync } from 'node:child_process';
import { readdir } from 'node:fs/promises';
import path from 'node:path';
import { gzipSync } from 'node:zlib';
import { describe, expect, it } from 'vitest';
import { loadAppRegistry } from '../../../../src/sqlite/legacy/appregistry.js';
import { editDatabase } from '../../../../src/sqlite/schema/edit.js';
import { asText, smallCsv, smallPackage, widgetTree } from '../../../support/manifest-trees.js';
import { rawTar } from '../../../support/tar.js';
import { directoryWith } from '../../../support/temporary.js';

const archive = (files: Record<string, string>): Buffer =>
  gzipSync(rawTar(Object.entries(files).map(([name, content]) => ({ name, content }))));

const flattened = JSON.stringify({
  data: {
    customResourceDefinitions: '[]',
    clusterServiceVersions: JSON.stringify([smallCsv({ name: 'flat.v1' })]),
    packages: JSON.stringify([smallPackage('flat', { stable: 'flat.v1' })]),
  },
});

async function load(files: Record<string, string | Buffer>, permissive = false) {
  const directory = await directoryWith(files);
  return loadFrom(directory, permissive);
}

async function loadFrom(directory: string, permissive = false) {
  const temporaryDirectory = await directoryWith();
  const database = path.join(await directoryWith(), 'index.db');
  try {
    return await editDatabase(database, { create: true }, (opened) =>
      loadAppRegistry(
        opened,
        directory,
        { temporaryDirectory, now: () => new Date(0) },
        { label: 'ns', permissive },
      ),
    );
  } finally {
    expect(await readdir(temporaryDirectory)).toEqual([]);
  }
}

describe('sqlite/appregistry', () => {
  it('loads archives and directories, each of a flattened package or of a tree', async () => {
    const gadget = asText({
      'csv.yaml': smallCsv({ name: 'gadget.v1' }),
      'p.yaml': smallPackage('gadget', { a: 'gadget.v1' }),
    });
    const report = await load({
      'widget.tar.gz': archive(widgetTree()),
      'flat.tgz': archive({ 'bundle.yaml': flattened }),
      'gadget/csv.yaml': gadget['csv.yaml'] as string,
      'gadget/p.yaml': gadget['p.yaml'] as string,
      'README.md': 'downloaded',
    });
    expect(report).toEqual({
      bundles: ['flat.v1', 'gadget.v1', 'widget.v1', 'widget.v2'],
      packages: ['flat', 'gadget', 'widget'],
      problems: [],
    });
  });

  it.each([[{ 'unpacked/bundle.yaml': flattened }], [{ 'bundle.yaml': flattened }]])(
    'loads a flattened package that was unpacked (%#)',
    async (files) => {
      expect(await load(files)).toMatchObject({ bundles: ['flat.v1'], packages: ['flat'] });
    },
  );

  it('leaves out damaged archives when it may', async () => {
    const files = {
      'a.tar.gz': 'no archive',
      'b.tar.gz': archive(widgetTree()).subarray(0, 100),
      'c.tgz': archive({ 'bundle.yaml': flattened }),
    };
    const { bundles, problems } = await load(files, true);
    expect(bundles).toEqual(['flat.v1']);
    expect(problems.map(({ message }) => message)).toEqual([
      expect.stringMatching(/^ns\/a\.tar\.gz: /),
      'ns/b.tar.gz: damaged gzip data: unexpected end',
    ]);
  });

  it('refuses an archive with names that lead out of it, whatever it may', async () => {
    const evil = gzipSync(rawTar([{ name: '../evil.yaml', content: 'a: b' }]));
    await expect(load({ 'evil.tar.gz': evil }, true)).rejects.toMatchObject({ code: 'UNSAFE' });
  });

  it('reads nothing outside an archive through its links', async () => {
    const link = gzipSync(
      rawTar([
        { name: 'passwd.yaml', flag: '2', linkName: '/etc/passwd' },
        { name: 'x.yaml', content: 'a: b' },
      ]),
    );
    expect(await load({ 'link.tar.gz': link })).toEqual({ bundles: [], packages: [], problems: [] });
  });

  it('does not wait for a pipe that is called like an archive', async () => {
    const directory = await directoryWith();
    execFileSync('mkfifo', [path.join(directory, 'a.tar.gz')]);
    await expect(loadFrom(directory)).rejects.toThrow('ns/a.tar.gz: not a regular file');
  });

  it('needs a directory with packages', async () => {
    const directory = await directoryWith();
    await expect(loadFrom(directory)).rejects.toMatchObject({
      code: 'NOT_FOUND',
      message: 'ns: no packages',
    });
    await expect(loadFrom(path.join(directory, 'none'))).rejects.toMatchObject({ code: 'NOT_FOUND' });
  });
});
