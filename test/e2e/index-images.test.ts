import { execFileSync, spawnSync } from 'node:child_process';
import { copyFile, lstat, mkdir, open, readFile, readdir, rename, rm, stat } from 'node:fs/promises';
import path from 'node:path';
import Sqlite from 'better-sqlite3';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { imageLabels } from '../../src/model/image-labels.js';
import { openImage } from '../../src/oci/image/image.js';
import { type BuiltImage, pushImage, pushImageIndex } from '../../src/oci/image/image-builder.js';
import { openLayout } from '../../src/oci/layout/layout.js';
import { extractDatabase } from '../../src/sqlite/read/index-image.js';
import { useSandbox } from '../support/command-line.js';
import { type DockerRegistry, hasDockerRegistry, startDockerRegistry } from '../support/docker-registry.js';
import { type FaultRegistry, startFaultRegistry } from '../support/fault-registry.js';
import { type SmallBundle, inDirectory, smallBundle } from '../support/small-bundle.js';
import { makeBundleImage, makeCatalogImage, makeImage, serveBuilt, storeImage } from './images.js';
import { readRows } from '../support/rows.js';

const sandbox = useSandbox();
const at = (...names: string[]): string => path.join(sandbox.work, ...names);
const hostPlatform = { os: 'linux', architecture: 'amd64' };

/** Runs `opmate index … --use-http`. */
const index = (...args: string[]) => sandbox.run(['index', ...args, '--use-http']);

const bundlesOf = (file: string): unknown[] =>
  readRows(file, 'SELECT name FROM operatorbundle ORDER BY name').flat();

let unpacked = 0;
/** The database of an image in a layout of the working directory. */
async function databaseIn(layout: string, reference: string, platform = hostPlatform): Promise<string> {
  const image = await openImage(await openLayout(at(layout)), reference, { hostPlatform, platform });
  return extractDatabase(image, at(`unpacked${unpacked++}`));
}

/** Runs `index add` of the bundles below `bundles/`, built on the layout `base`, into the layout `out`. */
async function addTo(tag: string, bundles: string[], ...more: string[]) {
  const list = bundles.map((name) => `bundles/${name}`).join(',');
  return index('add', '-b', list, '-i', 'oci:base:v1', '-t', `oci:out:${tag}`, ...more);
}

const bundles: Record<string, SmallBundle> = {
  widget1: { version: '1.0.0' },
  widget2: { version: '2.0.0', replaces: 'widget.v1.0.0' },
  widget3: { version: '3.0.0', replaces: 'widget.v2.0.0', channels: 'stable,fast' },
  gadget1: { packageName: 'gadget', version: '0.1.0', channels: 'alpha' },
};

beforeAll(async () => {
  for (const [name, bundle] of Object.entries(bundles))
    await sandbox.write(inDirectory(`bundles/${name}`, smallBundle(bundle)));
  const platforms = ['amd64', 's390x'].map((architecture) => ({ os: 'linux', architecture }));
  const bases = await Promise.all(
    platforms.map((platform) => makeImage({ files: { 'bin/opm': platform.architecture }, platform })),
  );
  await pushImage(await openLayout(at('base'), { create: true }), 'v1', bases[0] as BuiltImage);
  await pushImageIndex(await openLayout(at('base')), 'multi', bases);
  expect((await addTo('both', ['widget1', 'widget2', 'gadget1'])).code).toBe(0);
});

describe('opmate index', () => {
  it('adds to an index image without changing it', async () => {
    const result = await addTo('more', ['widget3'], '--from-index', 'oci:out:both');
    expect(result).toMatchObject({
      code: 0,
      stdout: expect.stringMatching(/^oci:out@sha256:[0-9a-f]{64}\n$/),
    });
    expect(result.stderr).toContain('oci:out:both: added 1 bundle: widget (1)');
    expect(bundlesOf(await databaseIn('out', 'more'))).toEqual([
      'gadget.v0.1.0',
      'widget.v1.0.0',
      'widget.v2.0.0',
      'widget.v3.0.0',
    ]);
    expect(bundlesOf(await databaseIn('out', 'both')).length).toBe(3);
    expect(await sandbox.leftovers()).toEqual([]);
  });

  it('creates an empty index without bundles', async () => {
    const { code, stdout } = await index('add', '--bundles=', '-i', 'scratch', '-t', 'oci:out:empty');
    expect({ code, lines: stdout.split('\n').length }).toEqual({ code: 0, lines: 2 });
    const file = await databaseIn('out', 'empty');
    expect(readRows(file, 'SELECT version, timestamp FROM schema_migrations')).toEqual([
      [13, '1970-01-01 00:00:00'],
    ]);
  });

  it.each(['rm', 'delete'])('removes packages: %s', async (command) => {
    const result = await index(
      ...[command, '-f', 'oci:out:both', '-o', 'gadget', '-t', 'oci:out:removed', '-i', 'oci:base:v1'],
      ...['-c', 'docker', '-d', 'x.Dockerfile'],
    );
    expect(result).toMatchObject({ code: 0 });
    expect(result.stderr).toContain('oci:out:both: removed 1 package with 1 bundle: gadget');
    expect(result.stderr).toContain('--container-tool docker is ignored');
    expect(result.stderr).toContain('--out-dockerfile has no effect');
    expect(bundlesOf(await databaseIn('out', 'removed'))).toEqual(['widget.v1.0.0', 'widget.v2.0.0']);
  });

  it('prunes to the named packages, and prunes stranded bundles', async () => {
    const pruned = ['-i', 'scratch', '-t', 'oci:out:pruned'];
    expect(await index('prune', '-f', 'oci:out:both', '-p', 'gadget', ...pruned)).toMatchObject({ code: 0 });
    expect(bundlesOf(await databaseIn('out', 'pruned'))).toEqual(['gadget.v0.1.0']);
    const file = await databaseIn('out', 'pruned');
    const database = new Sqlite(file);
    database.exec("INSERT INTO operatorbundle (name) VALUES ('stranded')");
    database.close();
    expect(await index('build', file, '-i', 'scratch', '-t', 'oci:out:stranded')).toMatchObject({ code: 0 });
    const result = await index('prune-stranded', '-f', 'oci:out:stranded', ...pruned);
    expect(result).toMatchObject({ code: 0, stderr: expect.stringContaining('stranded') });
    expect(bundlesOf(await databaseIn('out', 'pruned'))).toEqual(['gadget.v0.1.0']);
  });

  it('deletes the newest version', async () => {
    const result = await index(
      ...['delete-latest', 'widget', '-f', 'oci:out:both', '-t', 'oci:out:older', '-i', 'oci:base:v1'],
    );
    expect(result).toMatchObject({ code: 0 });
    expect(bundlesOf(await databaseIn('out', 'older'))).toEqual(['gadget.v0.1.0', 'widget.v1.0.0']);
  });

  it('deletes one bundle', async () => {
    const target = ['-f', 'oci:out:both', '-t', 'oci:out:one', '-i', 'oci:base:v1'];
    const result = await index('delete', '--bundle', 'widget.v1.0.0', ...target);
    expect(result).toMatchObject({ code: 0 });
    expect(bundlesOf(await databaseIn('out', 'one'))).toEqual(['gadget.v0.1.0', 'widget.v2.0.0']);
    expect(await index('delete', '--bundle', 'x', '-o', 'gadget', ...target)).toMatchObject({
      code: 2,
      stderr: expect.stringContaining('--bundle and --package cannot be used together'),
    });
  });

  it('builds for every platform of the base, or for one', async () => {
    const file = await databaseIn('out', 'both');
    const build = (...more: string[]) =>
      index('build', file, '-i', 'oci:base:multi', '-t', 'oci:out:multi', ...more);
    expect(await build()).toMatchObject({ code: 0 });
    const layout = await openLayout(at('out'));
    for (const architecture of ['amd64', 's390x']) {
      const image = await openImage(layout, 'multi', {
        hostPlatform,
        platform: { os: 'linux', architecture },
      });
      expect(image.config).toMatchObject({ architecture, config: { Entrypoint: ['/bin/opm'] } });
      expect(image.manifest.layers.length).toBe(2);
    }
    expect(await build('--platform', 'linux/s390x')).toMatchObject({ code: 0 });
    const image = await openImage(layout, 'multi', { hostPlatform });
    expect({ is: image.platform.architecture, root: image.root.digest }).toEqual({
      is: 's390x',
      root: image.descriptor.digest,
    });
  });

  it('writes database and Dockerfile instead with --generate', async () => {
    await mkdir(at('context'));
    const result = await sandbox.run(
      ['index', 'add', '-b', '../bundles/widget1', '--generate', '-t', 'ignored:v1', '-i', 'some/base:v1'],
      { cwd: at('context') },
    );
    expect(result).toMatchObject({ code: 0, stdout: 'index.Dockerfile\n' });
    expect(String(await readFile(at('context', 'index.Dockerfile')))).toBe(`FROM some/base:v1
LABEL operators.operatorframework.io.index.database.v1=/database/index.db
ADD database/index.db /database/index.db
EXPOSE 50051
ENTRYPOINT ["/bin/opm"]
CMD ["registry", "serve", "--database", "/database/index.db"]
`);
    expect(bundlesOf(at('context', 'database', 'index.db'))).toEqual(['widget.v1.0.0']);
    expect((await stat(at('context', 'database', 'index.db'))).mode & 0o777).toBe(0o644);
    expect((await readdir(at('context'), { recursive: true })).sort()).toEqual([
      'database',
      'database/index.db',
      'index.Dockerfile',
    ]);
    await mkdir(at('failing', 'taken'), { recursive: true });
    const failing = await sandbox.run(
      ['index', 'add', '-b', '../bundles/none', '--generate', '-d', 'other.Dockerfile'],
      { cwd: at('failing') },
    );
    expect(failing.code).toBe(1);
    const taken = await sandbox.run(['index', 'add', '--bundles=', '--generate', '-d', 'taken'], {
      cwd: at('failing'),
    });
    expect(taken).toMatchObject({ code: 1, stdout: '' });
    expect(await readdir(at('failing'))).toEqual(['taken']);
    execFileSync('mkfifo', [at('failing', 'pipe')]);
    const pipe = await sandbox.run(['index', 'add', '--bundles=', '--generate', '-d', 'pipe'], {
      cwd: at('failing'),
    });
    expect(pipe).toMatchObject({
      code: 1,
      stdout: '',
      stderr: expect.stringContaining('pipe: is not a file'),
    });
    expect((await lstat(at('failing', 'pipe'))).isFIFO()).toBe(true);
  });

  it('exports an index as package manifests, from the database for bundles without image', async () => {
    const file = await databaseIn('out', 'both');
    const result = await index('export', '-i', file, '-f', 'exported');
    expect(result).toMatchObject({ code: 0, stdout: '' });
    expect((await readdir(at('exported'), { recursive: true })).sort()).toEqual([
      'gadget',
      'gadget/0.1.0',
      'gadget/0.1.0/gadget.v0.1.0.clusterserviceversion.yaml',
      'gadget/package.yaml',
      'widget',
      'widget/1.0.0',
      'widget/1.0.0/widget.v1.0.0.clusterserviceversion.yaml',
      'widget/2.0.0',
      'widget/2.0.0/widget.v2.0.0.clusterserviceversion.yaml',
      'widget/package.yaml',
    ]);
    expect(String(await readFile(at('exported', 'widget', 'package.yaml')))).toBe(`packageName: widget
channels:
    - name: stable
      currentCSV: widget.v2.0.0
defaultChannel: stable
`);
    const again = await index('export', '-i', 'oci:out:both', '-p', 'widget', '-f', 'exported');
    expect(again).toMatchObject({
      code: 1,
      stderr: expect.stringContaining('exported/widget: already exists'),
    });
    const unknown = await index('export', '-i', 'oci:out:both', '-p', 'widgets', '-f', 'other');
    expect(unknown).toMatchObject({
      code: 1,
      stderr: expect.stringMatching(/"widgets" not found\nhint: .*"widget"/),
    });
    await expect(stat(at('other'))).rejects.toThrow();
  });

  it('adds the exported packages to an index again', async () => {
    expect((await index('export', '-i', 'oci:out:both', '-f', 'tree')).code).toBe(0);
    expect((await sandbox.run(['registry', 'init', '-m', 'tree', '-o', 'back.db'])).code).toBe(0);
    expect(bundlesOf(at('back.db'))).toEqual(['gadget.v0.1.0', 'widget.v1.0.0', 'widget.v2.0.0']);
  });
});

describe('opmate index: bad input', () => {
  const labels = { [imageLabels.database]: '/database/index.db' };
  const refused = async (tag: string, image: BuiltImage, ...more: string[]) => {
    await storeImage(at('bad'), tag, image);
    const result = await addTo('bad', ['widget1'], '-f', `oci:bad:${tag}`, ...more);
    expect(result).toMatchObject({ code: 1, stdout: '' });
    expect(await (await openLayout(at('out'))).listTags()).not.toContain('bad');
    expect(await sandbox.leftovers()).toEqual([]);
    return result.stderr;
  };

  it('refuses other images, and names their kind', async () => {
    expect(await refused('fbc', await makeCatalogImage({}))).toMatch(
      /file-based catalog.*\nhint: use opmate render/,
    );
    expect(await refused('bundle', await makeBundleImage('microcks/0.3.0'))).toMatch(
      /missing label.*\nhint: .*bundle/,
    );
    expect(await refused('none', await makeImage({}))).toContain('missing label');
  });

  it('refuses databases that are invalid, outside the image or too large', async () => {
    const outside = { [imageLabels.database]: '../../etc/passwd' };
    expect(await refused('outside', await makeImage({ labels: outside }))).toContain('outside the image');
    expect(await refused('missing', await makeImage({ labels }))).toContain('is not in the image');
    const text = await makeImage({ labels, files: { 'database/index.db': 'text' } });
    expect(await refused('text', text)).toMatch(/^error: oci:bad:text: not a sqlite database/m);
    const file = await databaseIn('out', 'both');
    const cut = (await readFile(file)).subarray(0, 8192);
    const short = await makeImage({ labels, files: { 'database/index.db': cut } });
    expect(await refused('short', short)).toContain('oci:bad:short: truncated database');
    const other = new Sqlite(at('other.db'));
    other.exec('CREATE TABLE package (name TEXT)');
    other.close();
    const foreign = await makeImage({
      labels,
      files: { 'database/index.db': await readFile(at('other.db')) },
    });
    expect(await refused('foreign', foreign)).toContain(
      'oci:bad:foreign: a sqlite database, but not an operator index',
    );
    const built = await index('build', 'other.db', '-i', 'scratch', '-t', 'oci:out:bad');
    expect(built).toMatchObject({ code: 1, stderr: expect.stringContaining('not an operator index') });
    const huge = await makeImage({ labels, files: { 'database/index.db': Buffer.alloc(2 << 20) } });
    expect(await refused('huge', huge, '--max-unpacked-size', '1M')).toContain('--max-unpacked-size');
  });

  it('pushes nothing if a bundle cannot be added, and the valid ones with --permissive', async () => {
    const failed = await addTo('failed', ['widget2', 'gadget1']);
    expect(failed).toMatchObject({ code: 1, stdout: '' });
    expect(failed.stderr).toContain('replaces nonexistent bundle widget.v1.0.0');
    expect(await (await openLayout(at('out'))).listTags()).not.toContain('failed');
    const twice = await addTo('failed', ['widget1'], '-f', 'oci:out:both');
    expect(twice).toMatchObject({ code: 3, stdout: '' });
    const part = await addTo('part', ['widget2', 'gadget1'], '--permissive');
    expect(part).toMatchObject({ code: 4, stdout: expect.stringContaining('oci:out@sha256:') });
    expect(bundlesOf(await databaseIn('out', 'part'))).toEqual(['gadget.v0.1.0']);
  });

  it('leaves nothing behind if the push fails or the base is missing', async () => {
    const faulty: FaultRegistry = await startFaultRegistry();
    try {
      faulty.on({ method: 'POST', path: /uploads/, respond: { status: 401 } });
      const args = ['add', '-b', 'bundles/widget1', '-i', 'scratch', '-t'];
      expect(await index(...args, `${faulty.host}/ns/a:v1`)).toMatchObject({ code: 1, stdout: '' });
      faulty.on({ method: 'POST', path: /uploads/, respond: { status: 500 } });
      const broken = await index(...args, `${faulty.host}/ns/a:v1`, '--retry-timeout', '5s');
      expect(broken).toMatchObject({ code: 1, stdout: '', stderr: expect.stringContaining('500') });
      expect(faulty.requests.filter(({ method }) => method === 'PUT')).toEqual([]);
      const digest = serveBuilt(faulty, 'ns/base', 'v1', await makeImage({ files: { 'bin/opm': '' } }));
      const base = `${faulty.host}/ns/base@${digest.replace(/.$/, (last) => (last === '0' ? '1' : '0'))}`;
      const save = await index('add', '-b', 'bundles/widget1', '-i', base, '--save', 'none.tar');
      expect(save).toMatchObject({
        code: 1,
        stdout: '',
        stderr: expect.stringMatching(/@sha256:\w+: not found$/m),
      });
      await expect(stat(at('none.tar'))).rejects.toThrow();
      expect(await sandbox.leftovers()).toEqual([]);
    } finally {
      await faulty.close();
    }
  });

  it('leaves nothing behind when interrupted', async () => {
    const faulty = await startFaultRegistry();
    try {
      faulty.on({ path: /uploads/, respond: { hang: true } });
      const target = `${faulty.host}/ns/a:v1`;
      const running = sandbox.start([
        'index',
        'add',
        '-b',
        'bundles/widget1',
        '-i',
        'scratch',
        '-t',
        target,
        '--use-http',
      ]);
      while (!faulty.requests.some(({ path: url }) => url.includes('uploads')))
        await new Promise((resolve) => setTimeout(resolve, 20));
      expect(await running.stop('SIGINT')).toMatchObject({ code: 130, stdout: '' });
      expect(await sandbox.leftovers()).toEqual([]);
    } finally {
      await faulty.close();
    }
  });

  it('names a database by its file', async () => {
    const file = await databaseIn('out', 'both');
    await rename(file, at('damaged.db'));
    const size = (await stat(at('damaged.db'))).size;
    const handle = await open(at('damaged.db'), 'r+');
    await handle.write(Buffer.alloc(size - 8192, 0xff), 0, size - 8192, 8192);
    await handle.close();
    const { code, stderr } = await index('build', 'damaged.db', '--save', 'damaged.tar', '-i', 'scratch');
    expect(code).toBe(1);
    expect(stderr).toContain('damaged.db: ');
    expect(stderr).not.toContain('new index');
  });

  it('suggests the command for a database file given as an index image', async () => {
    await copyFile(await databaseIn('out', 'both'), at('plain.db'));
    for (const name of ['plain.db', './plain.db', at('plain.db')]) {
      expect(await index('rm', '-o', 'widget', '-f', name, '-t', 'oci:out:x')).toMatchObject({
        code: 1,
        stderr: expect.stringMatching(
          /is a file, .*\nhint: .*opmate registry add, rm or prune, .* opmate index build/,
        ),
      });
    }
  });

  it('changes nothing if the output directory is missing', async () => {
    for (const output of [
      ['--generate', '--out-dockerfile', 'nodir/D'],
      ['--save', 'nodir/D'],
    ]) {
      const result = await index('rm', '-o', 'widget', '-f', 'oci:out:both', ...output);
      expect(result).toMatchObject({ code: 1, stdout: '' });
      expect(result.stderr).toContain('nodir/D: its directory "nodir": no such file or directory');
      expect(result.stderr).not.toContain('removed');
    }
  });

  it('names packages that cannot be exported, and an unusable destination', async () => {
    const file = await databaseIn('out', 'both');
    await sandbox.write({ file: '' });
    expect((await index('export', '-i', file, '-f', 'file')).stderr).toContain(
      'file: is a file, not a directory',
    );
    const database = new Sqlite(file);
    database.exec("UPDATE operatorbundle SET bundlepath = 'oci:gone:v1' WHERE name = 'gadget.v0.1.0'");
    database.close();
    const { code, stderr } = await index('export', '-i', file, '-f', 'elsewhere');
    expect(code).toBe(1);
    expect(stderr).toMatch(/^error: bundle "gadget\.v0\.1\.0" \(oci:gone:v1\): .*gone/m);
  });

  it('exports nothing outside its directory, and nothing partly', async () => {
    const hostile = async (sql: string): Promise<string> => {
      const file = await databaseIn('out', 'both');
      const database = new Sqlite(file);
      database.pragma('foreign_keys = OFF');
      database.exec(sql);
      database.close();
      await rm(at('hostile'), { recursive: true, force: true });
      return (await index('export', '-i', file, '-f', 'hostile')).stderr;
    };
    await hostile("UPDATE operatorbundle SET version = '../../../up' WHERE name = 'gadget.v0.1.0'");
    expect((await readdir(at('hostile', 'gadget'))).sort()).toEqual(['gadget.v0.1.0', 'package.yaml']);
    await hostile("UPDATE operatorbundle SET version = '1.0.0' WHERE name = 'widget.v2.0.0'");
    expect((await readdir(at('hostile', 'widget'))).sort()).toEqual([
      'package.yaml',
      'widget.v1.0.0',
      'widget.v2.0.0',
    ]);
    expect(await hostile("UPDATE package SET name = '../up' WHERE name = 'gadget'")).toContain(
      'package "../up": its name cannot be that of a directory',
    );
    expect(
      await hostile("UPDATE operatorbundle SET csv = NULL, bundle = NULL WHERE name = 'gadget.v0.1.0'"),
    ).toContain('neither image nor manifests');
    await expect(stat(at('hostile'))).rejects.toThrow();
    await expect(stat(at('up'))).rejects.toThrow();
  });
});

describe.skipIf(!hasDockerRegistry || spawnSync('skopeo', ['--version']).status !== 0)(
  'opmate index: with docker-registry and skopeo',
  () => {
    let registry: DockerRegistry;
    let list = '';
    const skopeo = (...args: string[]): Record<string, unknown> => {
      const { stdout, stderr } = spawnSync('skopeo', args, { cwd: sandbox.work, encoding: 'utf8' });
      return JSON.parse(stdout || JSON.stringify({ stderr })) as Record<string, unknown>;
    };

    beforeAll(async () => {
      registry = await startDockerRegistry();
      const references = [];
      for (const [name, bundle] of Object.entries(bundles)) {
        await storeImage(at('images'), name, await makeImage({ files: smallBundle(bundle) }));
        const reference = `${registry.host}/bundles/${name}:v1`;
        await sandbox.run(['oci', 'copy', `oci:images:${name}`, reference, '--use-http']);
        references.push(reference);
      }
      list = references.join(',');
      await sandbox.run(['oci', 'copy', 'oci:base:v1', `${registry.host}/ns/base:v1`, '--use-http']);
    });
    afterAll(() => registry.close());

    it('pushes images with equal digests that skopeo inspects and sqlite reads', async () => {
      const digests = [];
      for (const tag of ['v1', 'v2']) {
        // Neither the order of bundles nor the time counts.
        if (tag === 'v2') list = list.split(',').reverse().join();
        const added = await index(
          ...[
            'add',
            '-b',
            list,
            '-i',
            `${registry.host}/ns/base:v1`,
            '-t',
            `${registry.host}/ns/index:${tag}`,
          ],
        );
        expect(added).toMatchObject({ code: 0 });
        expect(added.stdout).toMatch(new RegExp(`^${registry.host}/ns/index@sha256:[0-9a-f]{64}\n$`));
        digests.push(added.stdout.trim().split('@')[1]);
      }
      expect(digests[0]).toBe(digests[1]);
      const place = `docker://${registry.host}/ns/index:v2`;
      expect(skopeo('inspect', '--tls-verify=false', place)).toMatchObject({
        Digest: digests[0],
        Created: '1970-01-01T00:00:00Z',
        Labels: { [imageLabels.database]: '/database/index.db' },
      });
      expect(skopeo('inspect', '--config', '--tls-verify=false', place)).toMatchObject({
        config: {
          ExposedPorts: { '50051/tcp': {} },
          Entrypoint: ['/bin/opm'],
          Cmd: ['registry', 'serve', '--database', '/database/index.db'],
        },
      });
      await sandbox.run(['oci', 'copy', `${registry.host}/ns/index:v1`, 'oci:pulled:v1', '--use-http']);
      const file = await databaseIn('pulled', 'v1');
      expect(readRows(file, 'PRAGMA integrity_check')).toEqual([['ok']]);
      expect(readRows(file, 'SELECT bundlepath FROM operatorbundle ORDER BY bundlepath').flat()).toEqual(
        list.split(',').sort(),
      );
      const rendered = await sandbox.run(['render', `${registry.host}/ns/index:v1`, '--use-http']);
      expect(rendered.code).toBe(0);
      expect(rendered.stdout).toContain(`"image": "${registry.host}/bundles/widget3:v1"`);
    });

    it('edits a pushed index, and saves it as an archive that skopeo reads', async () => {
      const from = ['-f', `${registry.host}/ns/index:v1`];
      const removed = await index(
        'rm',
        ...from,
        '-o',
        'gadget',
        '-i',
        'scratch',
        '-t',
        `${registry.host}/ns/index:v3`,
      );
      expect(removed).toMatchObject({ code: 0 });
      const saved = await index('prune', ...from, '-p', 'gadget', '-i', 'scratch', '--save', 'saved.tar');
      expect(saved).toMatchObject({ code: 0 });
      const [, digest] = /^oci-archive:saved\.tar@(sha256:[0-9a-f]{64})\n$/.exec(saved.stdout) ?? [];
      expect(skopeo('inspect', 'oci-archive:saved.tar')).toMatchObject({
        Digest: digest,
        Labels: { [imageLabels.database]: '/database/index.db' },
      });
      const listed = await sandbox.run(['list', 'packages', 'oci-archive:saved.tar']);
      expect(listed.stdout).toMatch(/gadget/);
      expect(listed.stdout).not.toMatch(/widget/);
    });

    it('deprecates bundles by image', async () => {
      const image = `${registry.host}/bundles/widget2:v1`;
      const deprecated = await index(
        ...['deprecatetruncate', '-b', image, '-f', `${registry.host}/ns/index:v1`],
        ...['-i', 'scratch', '-t', 'oci:out:deprecated'],
      );
      expect(deprecated).toMatchObject({ code: 0 });
      const file = await databaseIn('out', 'deprecated');
      expect(bundlesOf(file)).toEqual(['gadget.v0.1.0', 'widget.v2.0.0', 'widget.v3.0.0']);
      expect(readRows(file, 'SELECT * FROM deprecated').flat()).toEqual(['widget.v2.0.0']);
    });

    it('exports the manifests of bundle images unchanged', async () => {
      const result = await index('export', '-i', `${registry.host}/ns/index:v1`, '-p', 'gadget');
      expect(result).toMatchObject({ code: 0 });
      const files = smallBundle(bundles['gadget1']);
      expect(await readdir(at('downloaded', 'gadget', '0.1.0'))).toEqual(['csv.yaml']);
      expect(String(await readFile(at('downloaded', 'gadget', '0.1.0', 'csv.yaml')))).toBe(
        files['manifests/csv.yaml'],
      );
    });
  },
);
