import { copyFile, readFile, readdir } from 'node:fs/promises';
import path from 'node:path';
import Sqlite from 'better-sqlite3';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { useSandbox } from '../support/command-line.js';
import { type FaultRegistry, startFaultRegistry } from '../support/fault-registry.js';
import { smallBundle } from '../support/small-bundle.js';
import { makeImage, serveBuilt } from './images.js';
import { readRows } from '../support/rows.js';

const sandbox = useSandbox();
const at = (name: string): string => path.join(sandbox.work, name);
let registry: FaultRegistry;
const image = (version: string): string => `${registry.host}/ns/widget:${version}`;

const rows = (file: string, sql: string): unknown[] => readRows(at(file), sql).flat();

const bundlesOf = (file: string): unknown[] => rows(file, 'SELECT name FROM operatorbundle ORDER BY name');

/** Runs `opmate registry …` on a copy of the index under this name. */
async function onCopy(file: string, args: string[]) {
  await copyFile(at('index.db'), at(file));
  return sandbox.run(['registry', ...args, '--use-http']);
}

const widgets = ['widget.v1.0.0', 'widget.v1.1.0', 'widget.v1.2.0'];

beforeAll(async () => {
  registry = await startFaultRegistry();
  for (const version of ['1.0.0', '1.1.0', '1.2.0']) {
    const files = smallBundle({ version });
    serveBuilt(registry, 'ns/widget', version, await makeImage({ files }));
  }
  serveBuilt(registry, 'ns/gadget', 'v1', await makeImage({ files: smallBundle({ packageName: 'gadget' }) }));
  const images = [...['1.0.0', '1.1.0', '1.2.0'].map(image), `${registry.host}/ns/gadget:v1`];
  // Heads only keep their manifests in this mode.
  const args = ['registry', 'add', '--use-http', '--mode', 'semver', '-d', 'index.db', '-b', images.join()];
  const { code, stderr } = await sandbox.run(args);
  if (code !== 0) throw new Error(stderr);
});

afterAll(() => registry.close());

describe('opmate registry rm', () => {
  it.each([
    ['-o', ['rm', '-d', 'a.db', '-o', 'widget']],
    ['arguments', ['delete', 'widget', 'a.db']],
    ['an option and the database', ['rm', '--packages', 'widget', 'a.db']],
  ])('removes packages: %s', async (_, args) => {
    const result = await onCopy('a.db', args);
    expect(result).toEqual({
      code: 0,
      stdout: '',
      stderr: 'info: a.db: removed 1 package with 3 bundles: widget\n',
    });
    expect(bundlesOf('a.db')).toEqual(['gadget.v1.0.0']);
  });

  it('writes the result elsewhere, and keeps the database unchanged', async () => {
    const before = await readFile(at('index.db'));
    const { code } = await onCopy('b.db', ['rm', '-d', 'b.db', '-o', 'gadget', '--output-db', 'c.db']);
    expect(code).toBe(0);
    expect(before.equals(await readFile(at('b.db')))).toBe(true);
    expect(bundlesOf('c.db')).toEqual(widgets);
  });

  it('exits with 1 for an unknown package and changes nothing, unless permissive', async () => {
    const result = await onCopy('d.db', ['rm', '-d', 'd.db', '-o', 'gadget,nope']);
    expect(result).toEqual({
      code: 1,
      stdout: '',
      stderr:
        'error: d.db: no package found for packagename nope\nhint: use a known package: "gadget", "widget"\n',
    });
    expect(bundlesOf('d.db')).toHaveLength(4);
    const permissive = await onCopy('d.db', ['rm', '-d', 'd.db', '-o', 'gadget,nope', '--permissive']);
    expect(permissive.code).toBe(0);
    expect(permissive.stderr).toContain('no package found for packagename nope');
    expect(bundlesOf('d.db')).toEqual(widgets);
  });

  it.each([
    // `rm` is opm's, with its exit code for wrong use.
    [['rm', '-d', 'e.db'], 1, 'required flag(s) "package" not set'],
    [['delete', 'widget', 'e.db', '-o', 'gadget'], 2, 'widget: packages are named by --package already'],
    [['delete', 'widget', 'e.db', '-d', 'f.db'], 2, 'e.db: --database says f.db'],
    [
      ['delete', '--bundle', 'x', '-o', 'gadget', '-d', 'e.db'],
      2,
      '--bundle and --package cannot be used together',
    ],
    [['rm', '-d', 'none.db', '-o', 'gadget'], 1, 'no such file or directory'],
    [['rm', '-d', '', '-o', 'gadget'], 1, 'database: empty file name'],
    [['rm', '-o', '', 'e.db'], 1, 'expected at least one item'],
    [['rm', '', 'e.db'], 1, 'no package named'],
  ])('refuses %j with %i', async (args, expected, message) => {
    const { code, stderr } = await onCopy('e.db', args);
    expect(stderr).toContain(message);
    expect(code).toBe(expected);
  });

  it('removes a bundle, pulls the manifests of the next, and adds the bundle again', async () => {
    const remove = ['delete', '--bundle', 'widget.v1.2.0', '-d', 'g.db'];
    const result = await onCopy('g.db', remove);
    expect(result.code).toBe(0);
    expect(result.stderr).toContain('channel stable: the head is now widget.v1.1.0');
    expect(result.stderr).toContain('pulled the manifests of widget.v1.1.0 again');
    expect(rows('g.db', "SELECT csv IS NOT NULL FROM operatorbundle WHERE name = 'widget.v1.1.0'")).toEqual([
      1,
    ]);
    const rendered = await sandbox.run(['render', 'g.db']);
    await sandbox.write({ 'catalog/catalog.json': rendered.stdout });
    expect(await sandbox.run(['validate', 'catalog'])).toMatchObject({ code: 0, stderr: '' });
    const args = ['registry', 'add', '--use-http', '--mode', 'semver', '-d', 'g.db', '-b', image('1.2.0')];
    expect((await sandbox.run(args)).code).toBe(0);
    expect(bundlesOf('g.db')).toEqual(['gadget.v1.0.0', ...widgets]);
  });

  it('changes nothing if the manifests cannot be pulled', async () => {
    const from = `${registry.host}/ns=${registry.host}/gone`;
    const result = await onCopy('h.db', [
      'delete',
      '--bundle',
      'widget.v1.2.0',
      '-d',
      'h.db',
      '--pull-from',
      from,
    ]);
    expect(result.code).toBe(1);
    expect(bundlesOf('h.db')).toHaveLength(4);
    expect(await sandbox.leftovers()).toEqual([]);
  });
});

describe('opmate registry delete-latest', () => {
  it('removes the newest version, and refuses to empty a package', async () => {
    const result = await onCopy('a.db', ['delete-latest', 'widget', 'a.db']);
    expect(result.code).toBe(0);
    expect(bundlesOf('a.db')).toEqual(['gadget.v1.0.0', 'widget.v1.0.0', 'widget.v1.1.0']);
    const refused = await sandbox.run(['registry', 'delete-latest', 'gadget', 'a.db']);
    expect(refused).toMatchObject({
      code: 1,
      stderr:
        'error: a.db: without gadget.v1.0.0 package gadget has no channel left\n' +
        'hint: remove the package with opmate registry rm --package gadget\n',
    });
  });
});

describe('opmate registry prune', () => {
  it('removes all packages but those to keep', async () => {
    const result = await onCopy('a.db', ['prune', '-p', 'gadget,nope', '-d', 'a.db']);
    expect(result).toMatchObject({ code: 0, stdout: '' });
    expect(result.stderr).toContain('a.db: no package found for packagename nope, which was to be kept');
    expect(bundlesOf('a.db')).toEqual(['gadget.v1.0.0']);
  });

  it('accepts the database as an argument', async () => {
    expect(await onCopy('a.db', ['prune', '--packages', 'gadget', 'a.db'])).toMatchObject({ code: 0 });
    expect(bundlesOf('a.db')).toEqual(['gadget.v1.0.0']);
    expect(await onCopy('a.db', ['prune-stranded', 'a.db'])).toMatchObject({ code: 0 });
    const deprecate = ['deprecatetruncate', '--bundle-images', image('1.1.0'), 'a.db'];
    expect(await onCopy('a.db', deprecate)).toMatchObject({ code: 0 });
    expect(rows('a.db', 'SELECT * FROM deprecated')).toEqual(['widget.v1.1.0']);
  });

  it('does not empty an index because of a typo', async () => {
    const { code, stderr } = await onCopy('a.db', ['prune', '-p', 'gadgte', '-d', 'a.db']);
    expect(code).toBe(1);
    expect(stderr).toContain('package "gadgte" not found; pruning would empty the index');
    expect(bundlesOf('a.db')).toHaveLength(4);
  });
});

describe('opmate registry prune-stranded and deprecatetruncate', () => {
  it('removes stranded bundles', async () => {
    await copyFile(at('index.db'), at('a.db'));
    const database = new Sqlite(at('a.db'));
    database.exec("INSERT INTO operatorbundle (name, bundlepath, version) VALUES ('lost', '', '1.0.0')");
    database.close();
    const result = await sandbox.run(['registry', 'prune-stranded', '-d', 'a.db']);
    expect(result).toEqual({ code: 0, stdout: '', stderr: 'info: a.db: removed 1 bundle: lost\n' });
  });

  it('distinguishes rows without a name from nothing to remove', async () => {
    await copyFile(at('index.db'), at('h.db'));
    const database = new Sqlite(at('h.db'));
    database.exec("INSERT INTO operatorbundle (version) VALUES ('1.0.0')");
    database.close();
    const prune = async () => (await sandbox.run(['registry', 'prune-stranded', '-d', 'h.db'])).stderr;
    expect(await prune()).toBe('info: h.db: removed 1 row of a bundle without a name\n');
    expect(await prune()).toBe('info: h.db: nothing to remove\n');
  });

  it('deprecates a bundle, and removes older ones', async () => {
    const result = await onCopy('a.db', ['deprecatetruncate', '-b', image('1.1.0'), '-d', 'a.db']);
    expect(result.code).toBe(0);
    expect(bundlesOf('a.db')).toEqual(['gadget.v1.0.0', 'widget.v1.1.0', 'widget.v1.2.0']);
    expect(rows('a.db', 'SELECT * FROM deprecated')).toEqual(['widget.v1.1.0']);
    const refused = await onCopy('a.db', ['deprecatetruncate', '-b', image('1.2.0'), '-d', 'a.db']);
    expect(refused.code).toBe(1);
    expect(refused.stderr).toContain(
      `error deprecating bundle ${image('1.2.0')}: Bundle deprecation causing default channel removal`,
    );
  });

  it('leaves no files next to the databases', async () => {
    expect(
      (await readdir(sandbox.work)).filter((name) => !/^([a-h]|index)\.db$|^catalog$/.test(name)),
    ).toEqual([]);
  });
});
