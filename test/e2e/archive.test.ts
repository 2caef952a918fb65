import { spawn, spawnSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { once } from 'node:events';
import { cp, mkdir, open, readFile, readdir, rm, writeFile } from 'node:fs/promises';
import { amountOfBytes } from '../../src/cli/printable.js';
import path from 'node:path';
import { pathToFileURL } from 'node:url';
import { gzipSync } from 'node:zlib';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { verifyArchiveSet } from '../../src/oci/archive-set/archive-verify.js';
import {
  parseArchiveIndex,
  type ArchiveIndex,
  readArchiveIndex,
} from '../../src/oci/archive-set/archive-index.js';
import { blobHeader } from '../../src/oci/archive-set/archive-layout.js';
import { type Descriptor, mediaTypes } from '../../src/oci/image/types.js';
import { ArchiveContent, layerBytes, someContent, sumsOf } from '../support/archive-content.js';
import { type RunningCommand, projectRoot, useSandbox } from '../support/command-line.js';
import { hasDockerRegistry, startDockerRegistry } from '../support/docker-registry.js';
import { directoryWith } from '../support/temporary.js';
import { rawTar } from '../support/tar.js';

const sandbox = useSandbox();
const hasSkopeo = spawnSync('skopeo', ['--version']).error === undefined;
const hasNamespaces = spawnSync('unshare', ['-Urm', 'mount', '-t', 'tmpfs', 'none', '/mnt']).status === 0;

/** An image that other tools take for one. */
function addImage(content: ArchiveContent, repository: string, tag: string, seed: string): Descriptor {
  const tar = rawTar([{ name: 'manifests/csv.yaml', content: layerBytes(150_000, seed).toString('hex') }]);
  const diffId = `sha256:${createHash('sha256').update(tar).digest('hex')}`;
  const image = {
    architecture: 'amd64',
    os: 'linux',
    config: {},
    rootfs: { type: 'layers', diff_ids: [diffId] },
  };
  const config = content.add(JSON.stringify(image), mediaTypes.ociConfig);
  return content.manifest(repository, tag, { config, layers: [content.add(gzipSync(tar))] });
}

describe('opmate archive verify', () => {
  it('reports an archive without problems', async () => {
    const { index } = await someContent().write(path.join(sandbox.work, 'sound'), { partBytes: 200_000 });
    const bytes = index.parts.reduce((sum, { size }) => sum + size, 0);
    const { code, stdout, stderr } = await sandbox.run(['archive', 'verify', 'sound']);
    expect(stdout).toBe(
      `${index.id}: 3 images, ${index.parts.length} parts, ${index.blobs.size} files, ${amountOfBytes(bytes)}: no problems found\n`,
    );
    expect([code, stderr]).toEqual([0, '']);
    const json = await sandbox.run(['archive', 'verify', 'sound', '-o', 'json']);
    expect(JSON.parse(json.stdout)).toEqual({
      id: index.id,
      parts: index.parts.length,
      files: index.blobs.size,
      bytes,
      images: 3,
      faults: [],
    });
  });

  it('reports each fault of a damaged archive, with exit code 3', async () => {
    const directory = path.join(sandbox.work, 'damaged');
    const { index } = await someContent().write(directory, { partBytes: 100_000 });
    const [digest, { offset }] = [...index.blobs].find(([, { part }]) => part === 1) as [
      string,
      { offset: number },
    ];
    const handle = await open(path.join(directory, 'mirror_000001.tar'), 'r+');
    await handle.write('X', offset);
    await handle.close();
    const last = index.parts.at(-1)?.file as string;
    await rm(path.join(directory, last));
    const { code, stdout, stderr } = await sandbox.run(['archive', 'verify', 'damaged']);
    expect([code, stderr]).toEqual([3, '']);
    expect(stdout).toContain(`damaged/mirror_000001.tar: ${digest}: content does not match its digest\n`);
    expect(stdout).toContain(`damaged/${last}: part of the archive not found\n`);
    expect(stdout.trim().split('\n').slice(2)).toEqual(['damaged: 2 problems found']);
    const json = await sandbox.run(['archive', 'verify', 'damaged', '-o', 'json']);
    expect([json.code, json.stderr]).toEqual([3, '']);
    expect(JSON.parse(json.stdout)).toMatchObject({
      id: index.id,
      faults: [
        { code: 'damaged', subject: digest, file: 'damaged/mirror_000001.tar' },
        { code: 'damaged', file: `damaged/${last}` },
      ],
    });

    await writeFile(path.join(directory, 'mirror_archive.json'), '{"version":1,');
    const broken = await sandbox.run(['archive', 'verify', 'file://damaged']);
    expect([broken.code, broken.stderr]).toEqual([3, '']);
    expect(broken.stdout).toMatch(
      /^damaged\/mirror_archive\.json: invalid JSON\ndamaged: 1 problem found\n$/,
    );
  });

  it('fails for a directory without an archive', async () => {
    await sandbox.write({ 'empty/readme': '' });
    const { code, stderr } = await sandbox.run(['archive', 'verify', 'empty']);
    expect(code).toBe(1);
    expect(stderr).toMatch(/empty: not an archive: mirror_archive\.json not found/);
    const missing = await sandbox.run(['archive', 'verify', 'file://nowhere']);
    expect([missing.code, missing.stderr]).toEqual([1, 'error: nowhere: no such file or directory\n']);
    expect((await sandbox.run(['archive', 'verify', 'empty', '-o', 'table'])).code).toBe(2);
  });
});

describe('opmate oci serve, on an archive', () => {
  const content = new ArchiveContent();
  let one: Descriptor;
  let server: RunningCommand;
  let host: string;

  beforeAll(async () => {
    one = addImage(content, 'ns/one', 'v1', 'one');
    addImage(content, 'ns/two', 'v2', 'two');
    await content.write(path.join(sandbox.work, 'served'));
    server = sandbox.start(['oci', 'serve', 'served', '--port', '0']);
    host = (await server.firstLine()).replace('http://', '');
  });
  afterAll(() => server.stop());

  it('serves the images of the archive only', async () => {
    const pulled = await sandbox.run(['oci', 'copy', '--use-http', `${host}/ns/one:v1`, 'oci:pulled:v1']);
    expect([pulled.code, pulled.stdout.trim()]).toEqual([0, expect.stringContaining(one.digest) as string]);
    const pushed = await sandbox.run(['oci', 'copy', '--use-http', 'oci:pulled:v1', `${host}/ns/three:v1`]);
    expect(pushed.code).toBe(1);
    expect(pushed.stderr).toMatch(/ns\/three.*read-only/);
  });

  it.skipIf(!hasSkopeo)('serves skopeo by tag and digest, and skopeo reads the part itself', async () => {
    const policy = path.join(sandbox.work, 'policy.json');
    await writeFile(policy, '{"default":[{"type":"insecureAcceptAnything"}]}');
    const copies = [
      [`docker://${host}/ns/one:v1`, 'by-tag'],
      [`docker://${host}/ns/one@${one.digest}`, 'by-digest'],
      ['oci-archive:served/mirror_000001.tar:ns/one:v1', 'by-file'],
    ];
    for (const [source, name] of copies as [string, string][]) {
      const args = ['--policy', policy, 'copy', '--quiet', '--src-tls-verify=false', source, `dir:${name}`];
      const { status, stderr } = spawnSync('skopeo', args, { cwd: sandbox.work, encoding: 'utf8' });
      expect([status, stderr]).toEqual([0, '']);
      const manifest = await readFile(path.join(sandbox.work, name, 'manifest.json'));
      expect(`sha256:${createHash('sha256').update(manifest).digest('hex')}`).toBe(one.digest);
    }
    const { stdout } = spawnSync('skopeo', ['list-tags', '--tls-verify=false', `docker://${host}/ns/two`], {
      encoding: 'utf8',
    });
    expect(JSON.parse(stdout)).toMatchObject({ Tags: ['v2'] });
  });

  it.skipIf(!hasDockerRegistry)('is copied to another registry', async () => {
    const registry = await startDockerRegistry();
    try {
      const target = `${registry.host}/mirror/one:v1`;
      const { code } = await sandbox.run(['oci', 'copy', '--use-http', `${host}/ns/one:v1`, target]);
      expect(code).toBe(0);
      const answer = await fetch(`http://${registry.host}/v2/mirror/one/manifests/v1`, {
        headers: { Accept: mediaTypes.ociManifest },
      });
      expect(answer.headers.get('docker-content-digest')).toBe(one.digest);
    } finally {
      await registry.close();
    }
  });

  it('serves blobs of a named base', async () => {
    const base = await readArchiveIndex(path.join(sandbox.work, 'served'));
    const more = new ArchiveContent();
    addImage(more, 'ns/one', 'v1', 'one');
    addImage(more, 'ns/three', 'v3', 'three');
    await more.write(path.join(sandbox.work, 'later'), { base });
    const later = sandbox.start(['oci', 'serve', 'later', '--archive-base', 'served', '--port', '0']);
    const place = (await later.firstLine()).replace('http://', '');
    const pulled = await sandbox.run(['oci', 'copy', '--use-http', `${place}/ns/one:v1`, 'oci:later-one:v1']);
    expect(pulled.code).toBe(0);
    expect((await later.stop()).stderr).toBe('');
  });
});

/** Content of a script of its own: blobs that come slowly, in pieces. */
const amount = 24;
const blobSize = 300_000;
const script = `
  import { createHash } from 'node:crypto';
  import { existsSync, statfsSync, writeFileSync, writeSync } from 'node:fs';
  import { Readable } from 'node:stream';
  import { setTimeout as sleep } from 'node:timers/promises';
  const { writeArchiveSet } = await import(process.argv[1]);
  const [, , directory, way] = process.argv;
  const [fill, first] = [way === 'fill', way === 'other' ? 5 : 0];
  const amount = way === 'fewer' ? 10 : ${amount};
  let opened = 0;
  const blobs = [];
  for (let i = first; i < first + amount; i++) {
    const bytes = Buffer.alloc(${blobSize}, createHash('sha512').update(String(i)).digest());
    const digest = 'sha256:' + createHash('sha256').update(bytes).digest('hex');
    const open = () => {
      writeSync(1, digest + '\\n');
      if (fill && ++opened === 16) {
        const { bavail, bsize } = statfsSync(directory);
        writeFileSync(directory + '/filler', Buffer.alloc(bavail * bsize));
      }
      return Readable.from((async function* () {
        while (way === 'held' && !existsSync(directory + '.go')) await sleep(5);
        for (let at = 0; at < bytes.length; at += 30_000) {
          await sleep(1);
          yield bytes.subarray(at, at + 30_000);
        }
      })(), { objectMode: false });
    };
    blobs.push({ descriptor: { mediaType: 'application/octet-stream', digest, size: bytes.length }, open });
  }
  try {
    const { keptBytes } = await writeArchiveSet(directory, [], blobs, { partBytes: 2_000_000, lock: '' });
    console.log('kept ' + keptBytes);
  } catch (error) {
    console.log(error.code + ' ' + error.message + ' hint: ' + error.hint);
  }
`;

function scriptArgs(...args: string[]): string[] {
  const module = pathToFileURL(path.join(projectRoot, 'dist/oci/archive-set/archive-set-writer.js')).href;
  return ['--input-type=module', '-e', script, module, ...args];
}

/** Blobs that the unfinished files of a directory hold whole. */
async function wholeBlobs(directory: string): Promise<Set<string>> {
  const whole = new Set<string>();
  const names = await readdir(directory).catch(() => []);
  const plan = names.find((name) => /^mirror_archive\.\w+\.partial$/.test(name));
  if (plan === undefined) return whole;
  const file = path.join(directory, plan);
  const index: ArchiveIndex = parseArchiveIndex(await readFile(file), file, { unfinished: true });
  for (const [digest, { part, offset, size }] of index.blobs) {
    const partial = plan.replace('archive', String(part).padStart(6, '0'));
    const bytes = await readFile(path.join(directory, partial)).catch(() => Buffer.alloc(0));
    const header = blobHeader({ digest, size });
    const content = bytes.subarray(offset, offset + size);
    const isWhole = `sha256:${createHash('sha256').update(content).digest('hex')}` === digest;
    if (isWhole && bytes.subarray(offset - header.length, offset).equals(header)) whole.add(digest);
  }
  return whole;
}

describe('writing an archive', () => {
  it('continues after SIGKILL at any point, and transfers nothing twice', async () => {
    const root = await directoryWith();
    const clean = path.join(root, 'clean');
    spawnSync(process.execPath, scriptArgs(clean));
    const expected = await sumsOf(clean);
    expect(Object.keys(expected)).toHaveLength(5);
    for (const step of [7, 10, 16]) {
      const directory = path.join(root, `killed-${step}`);
      for (let code: number | null = null, runs = 0; code === null; runs++) {
        const whole = await wholeBlobs(directory);
        const opened: string[] = [];
        const child = spawn(process.execPath, scriptArgs(directory), { stdio: ['ignore', 'pipe', 'ignore'] });
        child.stdout.on('data', (chunk: Buffer) => {
          opened.push(...chunk.toString().trim().split('\n'));
          // One that never gets on would be ended for ever.
          if (opened.length >= step && runs < 8) child.kill('SIGKILL');
        });
        [code] = (await once(child, 'close')) as [number | null];
        expect(opened.filter((digest) => whole.has(digest))).toEqual([]);
        // There is an archive under its name only when all of it is there.
        const found = await verifyArchiveSet(directory).catch((error: { code: string }) => error.code);
        expect(code === null ? ['NOT_FOUND', []] : [[]]).toContainEqual(found);
      }
      expect(await sumsOf(directory)).toEqual(expected);
    }
  });

  it('leaves the old or the new archive after SIGKILL at any point of a replacement', async () => {
    const root = await directoryWith();
    const preload = pathToFileURL(path.join(projectRoot, 'test/support/kill-at.js')).href;
    const run = (directory: string, way: string, killAt?: number) =>
      spawnSync(process.execPath, ['--import', preload, ...scriptArgs(directory, way)], {
        env: {
          OPMATE_TEST_KILL_BELOW: directory,
          ...(killAt !== undefined && { OPMATE_TEST_KILL_AT: String(killAt) }),
        },
      });
    const [before, after] = [path.join(root, 'before'), path.join(root, 'after')];
    spawnSync(process.execPath, scriptArgs(before));
    spawnSync(process.execPath, scriptArgs(after, 'fewer'));
    const ids = await Promise.all([before, after].map(async (place) => (await readArchiveIndex(place)).id));
    const expected = await sumsOf(after);
    const counted = path.join(root, 'counted');
    await cp(before, counted, { recursive: true });
    await writeFile(path.join(counted, 'armed'), '');
    run(counted, 'fewer');
    const calls = (await readFile(path.join(counted, 'calls'), 'utf8')).trim().split('\n');
    expect(calls.filter((call) => call.startsWith('rename')).length).toBeGreaterThan(5);
    const seen = new Set<string>();
    for (let step = 1; step <= calls.length; step++) {
      const directory = path.join(root, `killed-${step}`);
      await cp(before, directory, { recursive: true });
      await writeFile(path.join(directory, 'armed'), '');
      expect(run(directory, 'fewer', step).signal).toBe('SIGKILL');
      expect(await verifyArchiveSet(directory).then((faults) => ({ step, faults }))).toEqual({
        step,
        faults: [],
      });
      seen.add((await readArchiveIndex(directory)).id);
      await rm(path.join(directory, 'armed'));
      expect(run(directory, 'fewer').stdout.toString()).toMatch(/^kept \d+$/m);
      expect({ step, sums: await sumsOf(directory) }).toEqual({ step, sums: expected });
      await rm(directory, { recursive: true });
    }
    expect([...seen]).toEqual(ids);
  });

  it('refuses a concurrent run, and the first one completes', async () => {
    const [directory, clean] = [path.join(await directoryWith(), 'a'), path.join(await directoryWith(), 'b')];
    spawnSync(process.execPath, scriptArgs(clean));
    const first = spawn(process.execPath, scriptArgs(directory, 'held'), {
      stdio: ['ignore', 'pipe', 'ignore'],
    });
    await once(first.stdout, 'data');
    const second = spawnSync(process.execPath, scriptArgs(directory, 'other'), { encoding: 'utf8' });
    expect(second.stdout).toMatch(
      new RegExp(`^IO ${directory}: in use by process ${first.pid} on .* \\(write an archive\\) since `),
    );
    first.stdout.resume();
    await writeFile(`${directory}.go`, '');
    await once(first, 'close');
    expect(await sumsOf(directory)).toEqual(await sumsOf(clean));
  });

  describe.skipIf(!hasNamespaces)('on a full disk of 9 MiB', () => {
    const quote = (words: string[]): string =>
      words.map((word) => `'${word.replaceAll("'", "'\\''")}'`).join(' ');

    /** Fills the disk in the middle, makes room, and runs again; the disk ends with the namespace of the commands. */
    async function runTwice(second: string) {
      const disk = path.join(await directoryWith(), 'disk');
      await mkdir(disk);
      const run = (way: string) => quote([process.execPath, ...scriptArgs(disk, way)]);
      const list = `echo :; ls ${disk}; echo :`;
      const commands = [
        `mount -t tmpfs -o size=9m none ${disk}`,
        run('fill'),
        list,
        `rm ${disk}/filler`,
        run(second),
        list,
      ];
      const options = { encoding: 'utf8' } as const;
      const { stdout, stderr } = spawnSync('unshare', ['-Urm', 'sh', '-ec', commands.join('\n')], options);
      expect(stderr).toBe('');
      const lines = stdout.split('\n').filter((line) => !line.startsWith('sha256:'));
      const [said, unfinished, result, files] = lines.join('\n').split(/^:\n/m);
      return { disk, said, unfinished, result, files };
    }

    it('reports the full disk and continues once space is free', async () => {
      const { disk, said, unfinished, result, files } = await runTwice('again');
      expect(said).toBe(
        `IO ${disk}: no space left on device hint: free disk space and run it again: fetched data is kept\n`,
      );
      expect(unfinished).toMatch(/^mirror_000001\.\w+\.partial$/m);
      expect(unfinished).not.toContain('mirror_archive.json');
      expect(Number(/^kept (\d+)$/m.exec(result as string)?.[1])).toBeGreaterThanOrEqual(8 * blobSize);
      expect(files).toMatch(/^(mirror_00000\d\.tar\n){4}mirror_archive\.json\n$/);
    });

    it('drops leftovers of other contents if the space is needed', async () => {
      const { result, files } = await runTwice('other');
      expect(result).toBe('kept 0\n');
      expect(files).toMatch(/^(mirror_00000\d\.tar\n){4}mirror_archive\.json\n$/);
    });
  });
});
