import { mkdir } from 'node:fs/promises';
import path from 'node:path';
import { beforeAll, describe, expect, it } from 'vitest';
import { encodeLock } from '../../src/mirror/lock.js';
import { writeArchiveSet } from '../../src/oci/archive-set.js';
import { useSandbox } from '../support/command-line.js';
import { smallImage, streamOf } from '../support/images.js';
import { contentsOf, imageManifest, layer, lockOf, lockedCatalog, lockedImage } from '../support/locks.js';

const sandbox = useSandbox();
const at = (...names: string[]): string => path.join(sandbox.work, ...names);

describe('opmate mirror diff', () => {
  const image = (name: string, size: number) => contentsOf([imageManifest(name, [layer(name, size)])]);
  const before = lockOf(
    [lockedImage('a', image('a1', 2048)), lockedImage('b', image('b', 20))],
    [lockedCatalog({ acme: ['acme.v0', 'acme.v1'] })],
  );
  const after = lockOf(
    [lockedImage('a', image('a2', 3_000_000)), lockedImage('c', image('c', 1))],
    [lockedCatalog({ acme: ['acme.v1', 'acme.v2\n+ x'], beta: ['beta.v1'] })],
  );
  beforeAll(() =>
    sandbox.write({ 'a.lock': encodeLock(before), 'b/working-dir/opmate.lock.json': encodeLock(after) }),
  );

  it('tells a lock from a workspace in lines', async () => {
    const result = await sandbox.run(['mirror', 'diff', 'a.lock', 'b']);
    expect(result).toEqual({
      code: 0,
      stderr: '',
      stdout: `packages
+ beta

channels
+ beta/stable
~ acme/stable: acme.v1 -> "acme.v2\\n+ x"

bundles
+ "acme/acme.v2\\n+ x"
+ beta/beta.v1
- acme/acme.v0

images
+ ns/c:v1
- ns/b:v1
~ ns/a:v1: ${image('a1', 1).root.digest.slice(0, 19)} -> ${image('a2', 1).root.digest.slice(0, 19)}

1 package, 2 channels, 3 bundles, 3 images: 2.9 MiB more, 2.0 KiB less
`,
    });
  });

  it('says so where there is no difference, and what there is as JSON', async () => {
    const same = await sandbox.run(['mirror', 'diff', 'b', 'file://b/working-dir/opmate.lock.json']);
    expect(same).toEqual({ code: 0, stdout: 'no difference\n', stderr: '' });
    const json = await sandbox.run(['mirror', 'diff', '-o', 'json', 'a.lock', 'b/working-dir']);
    expect(JSON.parse(json.stdout)).toMatchObject({
      packages: { added: ['beta'], removed: [] },
      bytes: { added: 3_000_001, removed: 2068 },
    });
  });

  it('reads the lock that an archive was made of', async () => {
    const { bytes, descriptor, config, layer: own, manifest } = smallImage();
    const [configBlob, layerBlob] = [manifest.config, manifest.layers[0] ?? manifest.config];
    const content = {
      root: descriptor,
      manifests: [{ descriptor, manifests: [], blobs: [configBlob, layerBlob] }],
    };
    const lock = encodeLock(lockOf([lockedImage('app', content)]));
    await mkdir(at('disk'));
    await writeArchiveSet(
      at('disk'),
      [{ repository: 'ns/app', tag: 'v1', root: descriptor }],
      [
        { descriptor, open: () => streamOf(bytes) },
        { descriptor: configBlob, open: () => streamOf(config) },
        { descriptor: layerBlob, open: () => streamOf(own) },
      ],
      { partBytes: 1e6, lock },
    );
    for (const name of ['disk', 'disk/mirror_archive.json', 'file://disk']) {
      const result = await sandbox.run(['mirror', 'diff', 'a.lock', name]);
      expect(result).toMatchObject({ code: 0, stderr: '' });
      expect(result.stdout).toContain('\n+ ns/app:v1\n- ns/a:v1\n- ns/b:v1\n');
    }
  });

  it.each([
    [['a.lock', 'nowhere'], 1, 'open nowhere: no such file or directory\n'],
    [['a.lock', 'empty'], 1, 'empty: neither an archive nor a lock is there\nhint: name a lock file'],
    [['a.lock', 'bad.lock'], 1, 'bad.lock: images: is missing\n'],
    [['a.lock', 'b', '-o', 'yaml'], 2, 'invalid --output value "yaml", expected (text|json)\n'],
    [['a.lock'], 2, "missing required argument 'to'"],
  ])('refuses %j', async (args, code, message) => {
    await mkdir(at('empty'), { recursive: true });
    await sandbox.write({
      'bad.lock': {
        version: 1,
        configuration: `sha256:${'a'.repeat(64)}`,
        options: {},
        catalogs: [],
        blobs: {},
        manifests: {},
      },
    });
    const result = await sandbox.run(['mirror', 'diff', ...args]);
    expect(result).toMatchObject({ code, stdout: '' });
    expect(result.stderr).toContain(message);
  });
});
