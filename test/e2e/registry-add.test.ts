import { readFile, readdir } from 'node:fs/promises';
import path from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { useSandbox } from '../support/command-line.js';
import { type FaultRegistry, startFaultRegistry } from '../support/fault-registry.js';
import { type SmallBundle, inDirectory, smallBundle } from '../support/small-bundle.js';
import { makeImage, serveBuilt } from './images.js';
import { readRows } from '../support/rows.js';

const sandbox = useSandbox();
const at = (name: string): string => path.join(sandbox.work, name);
let registry: FaultRegistry;

/** References by tag, and their digests. */
const images: Record<string, { tagged: string; pinned: string }> = {};

async function serve(key: string, bundle: SmallBundle): Promise<void> {
  const image = await makeImage({ files: smallBundle(bundle) });
  const digest = serveBuilt(registry, `ns/${key}`, 'v1', image);
  const name = `${registry.host}/ns/${key}`;
  images[key] = { tagged: `${name}:v1`, pinned: `${name}@${digest}` };
}

const tagged = (key: string): string => images[key]?.tagged ?? '';
const pinned = (key: string): string => images[key]?.pinned ?? '';

const rows = (file: string, sql: string): unknown[] => readRows(at(file), sql);

const bundlesOf = (file: string): unknown[] =>
  rows(file, 'SELECT name, bundlepath FROM operatorbundle ORDER BY name');

/** Runs `opmate registry add … --use-http`. */
const add = (...args: string[]) => sandbox.run(['registry', 'add', '--use-http', ...args]);

beforeAll(async () => {
  registry = await startFaultRegistry();
  await serve('widget1', { version: '1.0.0' });
  await serve('widget2', { version: '2.0.0', replaces: 'widget.v1.0.0' });
  await serve('again1', { version: '1.0.0', spec: { description: 'changed' } });
  await serve('gadget1', { packageName: 'gadget', version: '0.1.0', channels: 'alpha,beta' });
  await serve('broken', { packageName: 'broken', version: 'none' });
  await sandbox.write(inDirectory('bundles/local', smallBundle({ packageName: 'local' })));
});

afterAll(() => registry.close());

describe('opmate registry add', () => {
  it('adds bundles, and reports their number per package on stderr', async () => {
    const result = await add(
      '-d',
      'a.db',
      '-b',
      `${tagged('widget1')},docker://${pinned('gadget1')},bundles/local`,
    );
    expect(result).toMatchObject({ code: 0, stdout: '' });
    expect(result.stderr).toBe(
      'warn: --use-http flag is set: this mode is insecure and meant for development purposes only.\n' +
        'info: a.db: added 3 bundles: gadget (1), local (1), widget (1)\n',
    );
    expect(bundlesOf('a.db')).toEqual([
      ['gadget.v0.1.0', pinned('gadget1')],
      ['local.v1.0.0', ''],
      ['widget.v1.0.0', tagged('widget1')],
    ]);
    expect(rows('a.db', 'SELECT name, default_channel FROM package ORDER BY name')).toEqual([
      ['gadget', 'alpha'],
      ['local', 'stable'],
      ['widget', 'stable'],
    ]);
    expect(await sandbox.leftovers()).toEqual([]);

    const more = await add('-d', 'a.db', '--bundle-images', tagged('widget2'));
    expect(more).toMatchObject({ code: 0, stdout: '' });
    expect(more.stderr).toContain('a.db: added 1 bundle: widget (1)');
  });

  it('creates the same database in any order', async () => {
    const references = [tagged('widget1'), tagged('widget2'), tagged('gadget1')];
    await add('-d', 'order1.db', '-b', references.join());
    await add('-d', 'order2.db', '-b', references.toReversed().join());
    expect(await readFile(at('order1.db'))).toEqual(await readFile(at('order2.db')));
  });

  it('reads bundles from arguments, --batch and a file', async () => {
    const list = `\uFEFF# of the team\r\n\r\n${tagged('widget2')}  # the head\r\n  ${tagged('widget1')}\r\n`;
    await sandbox.write({ 'list.txt': list });
    const both = `${tagged('widget1')},${tagged('widget2')}`;
    const runs = await Promise.all([
      add(both, 'b1.db'),
      add('--batch', both, '-d', 'b2.db'),
      add('--from-file', 'list.txt', '--database', 'b3.db'),
      add('--from-file', 'list.txt', '-b', tagged('widget1'), '--batch', tagged('widget2'), '-d', 'b4.db'),
      add('--batch', both, 'b5.db'),
      add('--bundle-images', both, 'b6.db'),
      add('b7.db', '--from-file', 'list.txt'),
    ]);
    expect(runs.map(({ code, stderr }) => (code === 0 ? '' : stderr))).toEqual(runs.map(() => ''));
    for (const i of [2, 3, 4, 5, 6, 7]) expect(bundlesOf(`b${i}.db`)).toEqual(bundlesOf('b1.db'));
    expect(runs[3]?.stderr).toContain(`${tagged('widget1')}: duplicate reference, added once`);
  });

  it('recreates the same database from the list of registry bundles', async () => {
    await add('-d', 'first.db', '-b', [pinned('widget2'), tagged('widget1'), pinned('gadget1')].join());
    const { code, stdout } = await sandbox.run(['registry', 'bundles', 'first.db']);
    expect(code).toBe(0);
    await sandbox.write({ 'bundles.txt': `# what is in first.db\n${stdout}` });
    expect(await add('-d', 'second.db', '--from-file', 'bundles.txt')).toMatchObject({ code: 0 });
    expect(await readFile(at('second.db'))).toEqual(await readFile(at('first.db')));
    const piped = ['registry', 'add', '--use-http', '-d', 'third.db', '--from-file', '-'];
    expect(await sandbox.run(piped, { stdin: stdout })).toMatchObject({ code: 0 });
    expect(await readFile(at('third.db'))).toEqual(await readFile(at('first.db')));
    const wrong = await sandbox.run(piped, { stdin: 'a:v1 b:v1\n' });
    expect(wrong.code).toBe(1);
    expect(wrong.stderr).toContain('stdin:1: "a:v1 b:v1": not one reference');
  });

  it('creates or migrates the database without bundles to add', async () => {
    for (const args of [[], ['-b', '']]) {
      expect(await add('-d', 'empty.db', ...args)).toMatchObject({ code: 0, stdout: '' });
      expect(rows('empty.db', 'SELECT version FROM schema_migrations')).toEqual([[13]]);
    }
  });

  it('writes the result elsewhere with --output-db', async () => {
    await add('-d', 'in.db', '-b', tagged('widget1'));
    const before = await readFile(at('in.db'));
    const { code, stderr } = await add('-d', 'in.db', '-b', tagged('widget2'), '--output-db', 'out.db');
    expect(code).toBe(0);
    expect(stderr).toContain('out.db: added 1 bundle: widget (1)');
    expect(await readFile(at('in.db'))).toEqual(before);
    expect(bundlesOf('out.db')).toHaveLength(2);
  });

  it('exits with 2 for an existing image and 3 for an existing version, and changes nothing', async () => {
    await add('-d', 'there.db', '-b', pinned('widget1'));
    const before = await readFile(at('there.db'));
    const image = await add('-d', 'there.db', '-b', `${pinned('widget1')},${tagged('gadget1')}`);
    expect(image).toMatchObject({ code: 2, stdout: '' });
    // A line for each thing that is wrong.
    expect(image.stderr.split('\n')).toContain(`error: Bundle ${pinned('widget1')} already exists`);
    const version = await add('-d', 'there.db', '-b', `${tagged('gadget1')},${tagged('again1')}`);
    expect(version).toMatchObject({ code: 3, stdout: '' });
    expect(version.stderr).toContain('Bundle already added that provides package and csv');
    for (const named of [pinned('widget1'), 'widget.v1.0.0']) expect(version.stderr).toContain(named);
    expect(await readFile(at('there.db'))).toEqual(before);
  });

  it('adds valid bundles with --permissive, lists the others, and exits with 4', async () => {
    const missing = `${registry.host}/ns/missing:v1`;
    const { code, stdout, stderr } = await add(
      '--permissive',
      '-d',
      'part.db',
      '-b',
      `${missing},${tagged('widget1')},${tagged('broken')}`,
    );
    expect({ code, stdout }).toEqual({ code: 4, stdout: '' });
    expect(bundlesOf('part.db')).toEqual([['widget.v1.0.0', tagged('widget1')]]);
    expect(stderr).toContain('part.db: added 1 bundle: widget (1)');
    expect(stderr).toContain('error: part.db: 2 bundles were left out:');
    for (const reference of [missing, tagged('broken')]) expect(stderr).toContain(`error: ${reference}`);
  });

  it('pulls from a staging registry and records the production reference', async () => {
    const production = pinned('widget1').replace(registry.host, 'registry.example.com/prod');
    const { code, stderr } = await add(
      '--require-digest',
      '--pull-from',
      `registry.example.com/prod=${registry.host}`,
      production,
      'staged.db',
    );
    expect(stderr).toContain('staged.db: added 1 bundle');
    expect(code).toBe(0);
    expect(bundlesOf('staged.db')).toEqual([['widget.v1.0.0', production]]);
  });

  it.each([
    [
      ['--mode', 'latest'],
      'Invalid channel update mode latest specified',
      'replaces, semver, semver-skippatch',
    ],
    [['--minimal', '--all-in-one'], '--minimal and --all-in-one cannot be used together', 'keep one'],
    [['--skip-tls-verify', '--ca-file', 'x'], '--skip-tls-verify must be false when --ca-file is set', ''],
    [['--pull-from', 'quay.io'], '--pull-from "quay.io": expected PREFIX=OTHER', '--pull-from quay.io/prod'],
    [['a:v1', 'x.db', '-b', 'b:v1'], 'a:v1: bundles are named by --bundle-images already', '--database a:v1'],
    [['a:v1', 'x.db', '-d', 'y.db'], 'x.db: --database says y.db', 'once'],
    [['--from-file', 'nowhere.txt'], 'nowhere.txt: no such file', ''],
    [['--from-file', 'bad.txt'], 'bad.txt:3: image reference "Quay.io/A:v1": ', 'lower case'],
    [['--from-file', 'two.txt'], 'two.txt:1: "a:v1, b:v1": not one reference', 'use one reference per line'],
    [['--from-file', 'local.txt'], 'local.txt:1: ../bundle: not an image in a registry', 'clusters can pull'],
    [
      ['--from-file', 'layout.txt'],
      'layout.txt:2: oci:layout:v1: invalid reference format',
      'clusters can pull',
    ],
    [['-d', 'none/x.db'], 'none/x.db', ''],
    [['-d', 'bad.txt'], 'bad.txt: not a sqlite database', ''],
    [['--require-digest', 'quay.io/a/b:v1'], 'quay.io/a/b:v1: missing digest', '@sha256:'],
    [['foo:sha256@abc'], 'foo:sha256@abc: invalid digest', 'use foo@sha256:abc'],
  ])('refuses %j', async (args, message, hint) => {
    await sandbox.write({
      'bad.txt': '# one\n\nQuay.io/A:v1\n',
      'local.txt': '../bundle\n',
      'layout.txt': '# a\noci:layout:v1\n',
      'two.txt': 'a:v1, b:v1\n',
    });
    const database = args.includes('-d') || args.includes('x.db') ? [] : ['-d', 'refused.db'];
    const result = await sandbox.run(['registry', 'add', ...args, ...database]);
    expect(result).toMatchObject({ code: 1, stdout: '' });
    expect(result.stderr).toContain(message);
    expect(result.stderr).toContain(hint);
    expect(await readdir(sandbox.work)).not.toContain('refused.db');
  });

  it('accepts modes in any case, and unused container tools', async () => {
    const { code, stderr } = await add(
      '--mode',
      'SemVer',
      '-c',
      'podman',
      '-d',
      'c.db',
      '-b',
      tagged('gadget1'),
    );
    expect(code).toBe(0);
    expect(stderr).toContain('info: --container-tool podman is ignored');
  });
});
