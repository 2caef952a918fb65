import { createHash } from 'node:crypto';
import { readFile, readdir } from 'node:fs/promises';
import path from 'node:path';
import Sqlite from 'better-sqlite3';
import { describe, expect, it } from 'vitest';
import { useSandbox } from '../support/command-line.js';
import { asText, smallCrd, smallCsv, smallPackage, widgetTree } from '../support/manifest-trees.js';
import { readRows } from '../support/rows.js';

const sandbox = useSandbox();
const at = (name: string): string => path.join(sandbox.work, name);

const names = (file: string): unknown[] =>
  readRows(at(file), 'SELECT name FROM operatorbundle ORDER BY name').flat();

const below = (directory: string, files: Record<string, string>): Record<string, string> =>
  Object.fromEntries(Object.entries(files).map(([name, content]) => [`${directory}/${name}`, content]));

const digest = async (file: string): Promise<string> =>
  createHash('sha256')
    .update(await readFile(at(file)))
    .digest('hex');

const init = (...args: string[]) => sandbox.run(['registry', 'init', ...args]);

describe('opmate registry init', () => {
  it('reads the directory manifests by default', async () => {
    await sandbox.write(below('default/manifests', widgetTree()));
    const { code, stdout, stderr } = await sandbox.run(['registry', 'init'], { cwd: at('default') });
    expect({ code, stdout, stderr }).toEqual({
      code: 0,
      stdout: '',
      stderr: 'info: bundles.db: 2 bundles, 1 package\ninfo: next: opmate registry serve bundles.db\n',
    });
    expect(names('default/bundles.db')).toEqual(['widget.v1', 'widget.v2']);
  });

  it('leaves no database, or the existing one, on an error', async () => {
    const bad = { 'x/csv.yaml': smallCsv({ name: 'x', owned: ['thing'] }), 'y.yaml': 'a: [' };
    await sandbox.write({
      ...below('bad', widgetTree()),
      ...below('bad', asText(bad)),
      ...below('good', widgetTree()),
    });
    const { code, stderr } = await init('-m', 'bad', '-o', 'bad.db');
    expect(code).toBe(1);
    expect(stderr.split('\n')).toEqual([
      'error: bad/y.yaml:1: yaml: did not find expected node content',
      expect.stringMatching(/^error: bad\/x\/csv\.yaml: .*couldn't find example\.com\/v1\/thing/),
      'error: error loading manifests from bad: 2 problems',
      'hint: fix them, or add --permissive to load the rest',
      '',
    ]);
    expect((await readdir(sandbox.work)).filter((name) => name.startsWith('bad.db'))).toEqual([]);
    expect((await init('-m', 'good', '-o', 'there.db')).code).toBe(0);
    const before = await digest('there.db');
    expect((await init('-m', 'bad', '-o', 'there.db')).code).toBe(1);
    expect(await digest('there.db')).toBe(before);
  });

  it('keeps valid packages with --permissive, and exits with 4', async () => {
    await sandbox.write({ ...below('part', widgetTree()), 'part/y.yaml': 'a: [' });
    const { code, stderr } = await init('-m', 'part', '-o', 'part.db', '--permissive');
    expect(code).toBe(4);
    expect(stderr).toMatch(
      /^error: part\/y\.yaml:1: [^\n]*\ninfo: part\.db: 2 bundles, 1 package, 1 problem\ninfo: next: opmate registry serve part\.db\n$/,
    );
    expect(names('part.db')).toEqual(['widget.v1', 'widget.v2']);
  });

  const data = {
    customResourceDefinitions: JSON.stringify([smallCrd('widget')]),
    clusterServiceVersions: JSON.stringify([smallCsv({ name: 'cm.v1', owned: ['widget'] })]),
    packages: JSON.stringify([smallPackage('cm', { stable: 'cm.v1' })]),
  };

  it('loads a ConfigMap, and a directory of app-registry packages', async () => {
    await sandbox.write({
      'cm.json': { apiVersion: 'v1', kind: 'ConfigMap', metadata: { name: 'cm' }, data },
      'namespace/cm/bundle.yaml': { data },
      ...below('namespace/widget', widgetTree()),
    });
    expect((await init('--configmap', 'cm.json', '-o', 'cm.db')).code).toBe(0);
    expect(names('cm.db')).toEqual(['cm.v1']);
    expect((await init('--appregistry-namespace', 'namespace', '-o', 'ns.db')).code).toBe(0);
    expect(names('ns.db')).toEqual(['cm.v1', 'widget.v1', 'widget.v2']);
    expect(await sandbox.leftovers()).toEqual([]);
  });

  it('accepts one input only', async () => {
    const { code, stderr } = await init('-m', 'a', '--configmap', 'b');
    expect(code).not.toBe(0);
    expect(stderr).toContain('--manifests and --configmap cannot be used together');
  });

  it('reports an empty or missing directory', async () => {
    await sandbox.write({ 'empty/README': 'nothing' });
    const empty = await init('-m', 'empty', '-o', 'empty.db');
    expect(empty).toMatchObject({
      code: 0,
      stderr: expect.stringMatching(/^warn: no bundles or packages in the input/) as unknown,
    });
    const missing = await init('-m', 'missing', '-o', 'missing.db');
    expect(missing).toMatchObject({ code: 1, stderr: 'error: missing: no such file or directory\n' });
    expect(await readdir(sandbox.work)).not.toContain('missing.db');
  });

  it('keeps the database unchanged when killed', async () => {
    const many = Array.from({ length: 400 }, (_, index) => ({
      [`many/${index}/csv.yaml`]: JSON.stringify(
        smallCsv({ name: `many.v${index}`, spec: { description: 'x'.repeat(20_000) } }),
      ),
    }));
    await sandbox.write({
      ...below('first', widgetTree()),
      ...(Object.assign({}, ...many) as Record<string, string>),
    });
    expect((await init('-m', 'first', '-o', 'killed.db')).code).toBe(0);
    for (const delay of [250, 350, 450, 600]) {
      const command = sandbox.start(['registry', 'init', '-m', 'many', '-o', 'killed.db']);
      await new Promise((resolve) => setTimeout(resolve, delay));
      await command.stop('SIGKILL');
      const database = new Sqlite(at('killed.db'));
      const check = database.pragma('integrity_check', { simple: true });
      const count = database.prepare('SELECT count(*) FROM operatorbundle').pluck().get();
      database.close();
      expect(check).toBe('ok');
      expect([2, 402]).toContain(count);
      if (count === 402) break;
    }
  });
});
