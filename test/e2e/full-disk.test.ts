import { spawnSync } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { copyFile, mkdir, readFile, writeFile } from 'node:fs/promises';
import path from 'node:path';
import { beforeAll, describe, expect, it } from 'vitest';
import { buildImage } from '../../src/oci/image/image-builder.js';
import { layerOf } from '../../src/archive/tar-writer.js';
import { openLayout } from '../../src/oci/layout/layout.js';
import { projectRoot, useSandbox } from '../support/command-line.js';
import { streamOf } from '../support/images.js';

const sandbox = useSandbox();
const hasNamespaces = spawnSync('unshare', ['-Urm', 'mount', '-t', 'tmpfs', 'none', '/mnt']).status === 0;

beforeAll(async () => {
  const layers = await Promise.all(
    [1, 2, 3, 4, 5, 6].map((i) => layerOf([{ path: `file-${i}`, content: randomBytes(900_000) }])),
  );
  const image = await buildImage({ layers });
  const repository = await openLayout(path.join(sandbox.work, 'source'), { create: true });
  for (const { descriptor, bytes } of [
    ...image.layers,
    { descriptor: image.configDescriptor, bytes: image.config },
  ]) {
    await repository.putBlob(descriptor, () => streamOf(bytes));
  }
  await repository.putManifest('v1', image.manifest, image.descriptor.mediaType);
  spawnSync('tar', ['-cf', '../source.tar', '.'], { cwd: path.join(sandbox.work, 'source') });
});

/** Runs a command in a namespace in which the directory `disk` has room for 2 MiB. */
async function onSmallDisk(...args: string[]) {
  await mkdir(path.join(sandbox.work, 'disk'), { recursive: true });
  const program = [process.execPath, path.join(projectRoot, 'bin/opmate.js'), ...args];
  const commands = `mount -t tmpfs -o size=2m none disk\n${program.map((word) => `'${word}'`).join(' ')}`;
  return spawnSync('unshare', ['-Urm', 'sh', '-ec', commands], {
    cwd: sandbox.work,
    encoding: 'utf8',
    env: { ...process.env, HOME: sandbox.work },
  });
}

describe.skipIf(!hasNamespaces)('oci copy to a disk that gets full', () => {
  it.each(['oci:source:v1', 'oci-archive:source.tar:v1'])('says so, from %s', async (source) => {
    const { status, stdout, stderr } = await onSmallDisk('oci', 'copy', source, 'oci:disk/out:v1');
    expect([status, stdout]).toEqual([1, '']);
    expect(stderr).toMatch(/disk\/out: .*no space left on device/);
    expect(stderr).not.toMatch(/aborted|internal error/);
  });
});

describe('oci copy from an archive', () => {
  it('names the blob that is damaged, whatever else is read at the time', async () => {
    const file = path.join(sandbox.work, 'damaged.tar');
    await copyFile(path.join(sandbox.work, 'source.tar'), file);
    const bytes = await readFile(file);
    for (let at = 100_000; at < bytes.length - 100_000; at += 400_000) bytes[at] = (bytes[at] as number) ^ 1;
    await writeFile(file, bytes);
    for (let i = 0; i < 3; i++) {
      const result = await sandbox.run(['oci', 'copy', 'oci-archive:damaged.tar:v1', `oci:copy-${i}:v1`]);
      expect(result).toMatchObject({ code: 1, stdout: '' });
      expect(result.stderr).toMatch(/damaged\.tar: sha256:\w{64}: digest mismatch: expected /);
    }
  });
});
