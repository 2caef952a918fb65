import { createHash } from 'node:crypto';
import { copyFile, readFile, readdir, stat } from 'node:fs/promises';
import path from 'node:path';
import { setTimeout as wait } from 'node:timers/promises';
import Sqlite from 'better-sqlite3';
import { beforeAll, describe, expect, it } from 'vitest';
import { run } from '../../src/cli/main.js';
import { openSourceSession } from '../../src/source/session.js';
import { stageBundles } from '../../src/source/bundles.js';
import { addBundles } from '../../src/sqlite/add/add.js';
import { editDatabase } from '../../src/sqlite/schema/edit.js';
import { sessionOptions } from '../unit/source/session-options.js';
import { createWorld } from '../unit/cli/world.js';
import { type RunningCommand, useSandbox } from '../support/command-line.js';
import { failureOf } from '../support/connect.js';
import { startFaultRegistry } from '../support/fault-registry.js';
import { inDirectory, smallBundle } from '../support/small-bundle.js';

const sandbox = useSandbox();
const at = (name: string): string => path.join(sandbox.work, name);

/** Every bundle and channel entry of a database, which must be sound. A journal that was left is undone. */
function contentOf(file: string): string {
  const database = new Sqlite(file, { fileMustExist: true });
  try {
    expect(database.pragma('integrity_check', { simple: true })).toBe('ok');
    expect(database.pragma('foreign_key_check')).toEqual([]);
    const hash = createHash('sha256');
    for (const table of [
      'operatorbundle',
      'channel_entry',
      'channel',
      'package',
      'properties',
      'related_image',
    ]) {
      for (const row of database.prepare(`SELECT * FROM "${table}"`).raw().iterate() as Iterable<unknown[]>) {
        for (const value of row) hash.update(Buffer.isBuffer(value) ? value : `${table} ${String(value)};`);
      }
    }
    return hash.digest('hex');
  } finally {
    database.close();
  }
}

/** Runs a command in this process. */
async function inProcess(...args: string[]): Promise<{ code: number; stdout: string; stderr: string }> {
  const world = createWorld({ temporaryDirectory: sandbox.temporary });
  const code = await run(args, world);
  return { code, stdout: world.stdout.text, stderr: world.stderr.text };
}

const bytesOf = (file: string): Promise<Buffer> => readFile(at(file));

/** Bundles with so much in them that the transaction outgrows the cache and reaches the file early. */
const large = Array.from({ length: 18 }, (_, i) => `large/${i}`);

beforeAll(async () => {
  await sandbox.write({
    ...inDirectory('base', smallBundle({ packageName: 'base' })),
    ...Object.assign(
      {},
      ...large.map((directory, i) =>
        inDirectory(
          directory,
          smallBundle({
            packageName: 'large',
            version: `1.${i}.0`,
            replaces: i === 0 ? undefined : `large.v1.${i - 1}.0`,
            padding: 1_000_000,
          }),
        ),
      ),
    ),
  });
  const { code, stderr } = await inProcess('registry', 'add', '-b', at('base'), '-d', at('base.db'));
  expect([code, stderr]).toEqual([0, expect.stringContaining('added 1 bundle')]);
});

describe('a killed registry add', () => {
  /** Kills the command; `early` counts from its start, otherwise from when the transaction begins to write. */
  async function kill(command: RunningCommand, file: string, early: boolean, ms: number): Promise<void> {
    let ended = false;
    void command.result.then(() => (ended = true));
    while (!early && !ended && (await stat(`${file}-journal`).catch(() => undefined)) === undefined)
      await wait(2);
    if (!ended) await wait(ms);
    command.child.kill('SIGKILL');
  }

  it('leaves the previous database or the complete new one', async () => {
    const add = (file: string): RunningCommand =>
      sandbox.start(['registry', 'add', '-d', file, '-b', large.join()]);
    await copyFile(at('base.db'), at('whole.db'));
    expect(await add(at('whole.db')).result).toMatchObject({ code: 0 });
    const [before, after] = [contentOf(at('base.db')), contentOf(at('whole.db'))];
    expect(before).not.toBe(after);

    const moments = [
      ...Array.from({ length: 8 }, (_, i) => ({ early: true, ms: i * 60 })),
      ...Array.from({ length: 24 }, (_, i) => ({ early: false, ms: i * 6 })),
    ];
    const killed: string[] = [];
    const worker = async (): Promise<void> => {
      for (let next = moments.pop(); next !== undefined; next = moments.pop()) {
        const file = at(`killed-${next.early}-${next.ms}.db`);
        await copyFile(at('base.db'), file);
        const command = add(file);
        await kill(command, file, next.early, next.ms);
        await command.result;
        killed.push(file);
      }
    };
    await Promise.all([worker(), worker(), worker()]);
    const seen = { before: 0, after: 0, unfinished: 0 };
    // Only now: looking into a database holds up this process, and with it the moments.
    for (const file of killed) {
      if ((await stat(`${file}-journal`).catch(() => undefined)) !== undefined) seen.unfinished++;
      const content = contentOf(file);
      expect([before, after]).toContain(content);
      seen[content === before ? 'before' : 'after']++;
    }
    expect(killed).toHaveLength(32);
    // Otherwise the moments are badly chosen, and nothing is proven.
    expect(seen.unfinished).toBeGreaterThan(0);
  }, 180_000);
});

describe('concurrent registry add', () => {
  it('waits while another process writes, and loses nothing', async () => {
    const file = at('shared.db');
    await copyFile(at('base.db'), file);
    const packages = ['one', 'two', 'three'];
    for (const packageName of packages)
      await sandbox.write(inDirectory(packageName, smallBundle({ packageName, padding: 1_000_000 })));
    const results = await Promise.all([
      sandbox.run(['registry', 'add', '-d', file, '-b', large.join()]),
      ...packages.map((name) => sandbox.run(['registry', 'add', '-d', file, '-b', name])),
    ]);
    expect(results.map(({ code, stderr }) => (code === 0 ? '' : stderr))).toEqual(['', '', '', '']);
    contentOf(file);
    const database = new Sqlite(file);
    const names = database.prepare('SELECT name FROM package ORDER BY name').pluck().all();
    database.close();
    expect(names).toEqual(['base', 'large', 'one', 'three', 'two']);
  });

  it('fails if another process does not finish, and changes nothing', async () => {
    const file = at('locked.db');
    await copyFile(at('base.db'), file);
    const other = new Sqlite(file);
    other.exec('BEGIN IMMEDIATE');
    try {
      const error = await failureOf(editDatabase(file, { timeoutMs: 50 }, () => undefined));
      expect(error).toMatchObject({
        code: 'IO',
        message: `${file}: locked by another process, waited 0.05 s`,
      });
    } finally {
      other.close();
    }
    expect(await readFile(file)).toEqual(await bytesOf('base.db'));
  });

  it('exits with 130 when interrupted while pulling, and leaves nothing behind', async () => {
    const registry = await startFaultRegistry();
    try {
      registry.on({ path: /manifests/, respond: { hang: true } });
      await copyFile(at('base.db'), at('interrupted.db'));
      const image = `${registry.host}/ns/name:v1`;
      const command = sandbox.start([
        'registry',
        'add',
        '--use-http',
        '-d',
        'interrupted.db',
        '-b',
        `${image},base`,
      ]);
      while (!registry.requests.some((request) => request.path.includes('manifests'))) await wait(10);
      const { code, stdout, stderr } = await command.stop('SIGINT');
      expect({ code, stdout }).toEqual({ code: 130, stdout: '' });
      expect(stderr).toMatch(/interrupted\n$/);
    } finally {
      await registry.close();
    }
    expect(await bytesOf('interrupted.db')).toEqual(await bytesOf('base.db'));
    expect(await sandbox.leftovers()).toEqual([]);
    expect((await readdir(sandbox.work)).filter((name) => /^interrupted\.db./.test(name))).toEqual([]);
  });
});

describe('registry add without space', () => {
  it.each([false, true])(
    'leaves the database as it was when the disk is full (elsewhere: %s)',
    async (elsewhere) => {
      const file = at('full.db');
      await copyFile(at('base.db'), file);
      const session = await openSourceSession(await sessionOptions());
      const stage = await stageBundles(large.map(at), session);
      const outputFile = elsewhere ? at('elsewhere.db') : undefined;
      const error = await failureOf(
        editDatabase(file, { outputFile }, (database) => {
          database.execute('PRAGMA max_page_count = 2000');
          return addBundles(database, stage.bundles, { mode: 'replaces' });
        }),
      );
      await stage.close();
      expect(error).toMatchObject({
        code: 'IO',
        message: expect.stringContaining('no space left on device'),
      });
      // Not the bytes: pages that hold nothing are not put back.
      expect(contentOf(file)).toBe(contentOf(at('base.db')));
      const left = (await readdir(sandbox.work)).filter((name) => /^(?:full|elsewhere)\.db./.test(name));
      expect(left).toEqual([]);
    },
  );

  it('reports a database that cannot be created or written before pulling', async () => {
    const missing = await inProcess('registry', 'add', 'registry.invalid/a:v1', at('none/a.db'));
    expect(missing.code).toBe(1);
    expect(missing.stderr).toMatch(/none\/a\.db/);
    // Nobody may make files there, not even root.
    const refused = await inProcess('registry', 'add', '-b', at('base'), '-d', '/proc/opmate.db');
    expect(refused.code).toBe(1);
    expect(refused.stderr).toMatch(/^error: \/proc\/opmate\.db: |^open \/proc\/opmate\.db: /m);
    expect(refused.stderr).not.toMatch(/internal/);
  });
});

/** A bundle whose ClusterServiceVersion is this text. */
const withCsv = (csv: string): Record<string, string> => ({ ...smallBundle(), 'manifests/csv.yaml': csv });

const without = (name: string): Record<string, string> =>
  Object.fromEntries(Object.entries(smallBundle()).filter(([file]) => file !== name));

const configMap = 'apiVersion: v1\nkind: ConfigMap\nmetadata: {name: x}\n';
const csvWith = (more: string): string =>
  `apiVersion: operators.coreos.com/v1alpha1\nkind: ClusterServiceVersion\nmetadata: {name: widget.v1.0.0}\n${more}`;
const owned = { owned: [{ name: 'widgets.example.com', version: 'v1', kind: 'Widget' }] };
const bomb = [
  'a0: &a0 [x,x,x,x,x,x,x,x,x,x]',
  ...Array.from({ length: 12 }, (_, i) => `a${i + 1}: &a${i + 1} [${Array(10).fill(`*a${i}`).join()}]`),
].join('\n');

describe('registry add of invalid bundles', () => {
  const table: Record<string, { bundles: Record<string, string>[]; says: RegExp }> = {
    'no manifests': { bundles: [without('manifests/csv.yaml')], says: /directory manifests not found/ },
    'no ClusterServiceVersion': { bundles: [withCsv(configMap)], says: /no csv in bundle/ },
    'a ClusterServiceVersion that does not parse': {
      bundles: [withCsv('kind: [')],
      says: /no bundle objects found[^]*fix manifests\/csv\.yaml/,
    },
    'a ClusterServiceVersion without name': {
      bundles: [withCsv(csvWith('spec: {}').replace('widget.v1.0.0', '""'))],
      says: /name/,
    },
    'a version that is a number': { bundles: [withCsv(csvWith('spec: {version: 1.2}'))], says: /version/ },
    'a version that is none': { bundles: [smallBundle({ version: 'none' })], says: /none/ },
    'skips that are no list': { bundles: [withCsv(csvWith('spec: {skips: x}'))], says: /skips/ },
    'an owned definition that is missing': {
      bundles: [smallBundle({ spec: { customresourcedefinitions: owned } })],
      says: /couldn't find example\.com\/v1\/Widget \(widgets\) in bundle/,
    },
    'no annotations': {
      bundles: [without('metadata/annotations.yaml')],
      says: /directory metadata not found/,
    },
    'annotations of another kind': {
      bundles: [{ ...smallBundle(), 'metadata/annotations.yaml': 'hello: world\n' }],
      says: /Could not find annotations file/,
    },
    'no package name': { bundles: [smallBundle({ packageName: '', name: 'x.v1' })], says: /package/ },
    'properties that are no JSON': {
      bundles: [smallBundle({ annotations: { 'olm.properties': '[{' } })],
      says: /olm\.properties/,
    },
    'a default channel that is none of its channels': {
      bundles: [smallBundle({ channels: 'a,b', defaultChannel: 'c' })],
      says: /default channel/,
    },
    'a replaced bundle that is not there': {
      bundles: [smallBundle({ replaces: 'widget.v0.9.0' })],
      says: /Invalid bundle widget\.v1\.0\.0, replaces nonexistent bundle widget\.v0\.9\.0/,
    },
    'bundles that replace each other': {
      bundles: [
        smallBundle({ version: '1.0.0', replaces: 'widget.v2.0.0' }),
        smallBundle({ version: '2.0.0', replaces: 'widget.v1.0.0' }),
      ],
      says: /[Cc]ycle/,
    },
    'a bundle that replaces itself': {
      bundles: [smallBundle({ replaces: 'widget.v1.0.0' })],
      says: /[Cc]ycle/,
    },
    'an edge into another package': {
      bundles: [smallBundle({ replaces: 'base.v1.0.0' })],
      says: /bundle base\.v1\.0\.0 belongs to package base on index, cannot be added as an edge for package widget/,
    },
    'a name in two packages': {
      bundles: [smallBundle({ name: 'x.v1' }), smallBundle({ packageName: 'other', name: 'x.v1' })],
      says: /x\.v1 must belong to exactly one package, found on: \[other,? widget\]/,
    },
    'the same name twice': {
      bundles: [smallBundle(), smallBundle({ version: '2.0.0', name: 'widget.v1.0.0' })],
      says: /widget\.v1\.0\.0/,
    },
    'two heads of the same version': {
      bundles: [smallBundle({ name: 'x.v1' }), smallBundle({ name: 'y.v1' })],
      says: /x\.v1[^]*y\.v1|more than one/,
    },
    'a substitute, without --enable-alpha': {
      bundles: [smallBundle({ annotations: { 'olm.substitutesFor': 'widget.v0.9.0' } })],
      says: /--enable-alpha|substitutesFor/,
    },
    'aliases that grow without end': { bundles: [withCsv(csvWith(bomb))], says: /alias/ },
    'nesting without end': {
      bundles: [withCsv(csvWith(`spec: ${'['.repeat(100_000)}`))],
      says: /no bundle objects found|nest|deep/,
    },
    'bytes that are no text': {
      bundles: [withCsv('\u0000\u0001\u0002')],
      says: /no bundle objects found/,
    },
  };

  it.each(Object.keys(table))('refuses %s, and changes nothing', async (name) => {
    const { bundles, says } = table[name] as (typeof table)[string];
    const folder = name.replaceAll(/\W/g, '-');
    const directories = bundles.map((_, i) => `bad/${folder}/${i}`);
    for (const [i, files] of bundles.entries())
      await sandbox.write(inDirectory(directories[i] as string, files));
    const file = at(`${folder}.db`);
    await copyFile(at('base.db'), file);
    const { code, stdout, stderr } = await inProcess(
      'registry',
      'add',
      '-d',
      file,
      '-b',
      directories.map(at).join(),
    );
    expect({ code, stdout }, stderr).toEqual({ code: 1, stdout: '' });
    expect(stderr).toMatch(says);
    expect(stderr).not.toMatch(/internal error|^ +at |TypeError/m);
    expect(stderr.length).toBeLessThan(2000);
    expect(await readFile(file)).toEqual(await bytesOf('base.db'));
    expect(await sandbox.leftovers()).toEqual([]);
  });
});
