import { execFileSync } from 'node:child_process';
import { lstat, mkdir, readFile, readdir, symlink, writeFile } from 'node:fs/promises';
import path from 'node:path';
import { describe, expect, it } from 'vitest';
import { openOciArchive } from '../../../../src/oci/archive-set/archive-source.js';
import { openLayout } from '../../../../src/oci/layout/layout.js';
import { packLayout } from '../../../../src/oci/layout/layout-pack.js';
import { makeImage, storeImage } from '../../../e2e/images.js';
import { failureOf } from '../../../support/connect.js';
import { readAll } from '../../../support/images.js';
import { directoryWith } from '../../../support/temporary.js';

async function layoutWithImage(directory: string) {
  const image = await makeImage({ files: { 'configs/index.json': '{}' }, labels: { a: '1' } });
  await storeImage(directory, 'v1', image);
  return image;
}

describe('oci/layout-pack', () => {
  it('packs a layout into a reproducible archive of the same image', async () => {
    const directory = await directoryWith();
    const [first, second] = [path.join(directory, 'a.tar'), path.join(directory, 'b.tar')];
    for (const [i, file] of [first, second].entries()) {
      const layout = path.join(directory, `layout${i}`);
      const image = await layoutWithImage(layout);
      await writeFile(path.join(layout, 'index.json.lock'), '');
      await writeFile(path.join(layout, '.opmate-left-over'), 'left over');
      await packLayout(layout, file);
      const archive = await openOciArchive(file);
      try {
        expect((await archive.getManifest('v1')).descriptor.digest).toBe(image.descriptor.digest);
        const [layer] = image.layers;
        if (layer === undefined) throw new Error('no layer');
        expect((await readAll(await archive.openBlob(layer.descriptor))).equals(layer.bytes)).toBe(true);
      } finally {
        await archive.close();
      }
    }
    expect((await readFile(first)).equals(await readFile(second))).toBe(true);
    expect(String(await readFile(first))).not.toMatch(/left-over|left over|lock/);
  });

  it('replaces a file only when the new one is complete', async () => {
    const directory = await directoryWith({ 'out.tar': 'old' });
    const [layout, file] = [path.join(directory, 'layout'), path.join(directory, 'out.tar')];
    await layoutWithImage(layout);
    const aborted = AbortSignal.abort();
    expect(await failureOf(packLayout(layout, file, { signal: aborted }))).toMatchObject({
      code: 'CANCELLED',
    });
    expect(await failureOf(packLayout(path.join(directory, 'none'), file))).toMatchObject({
      code: 'NOT_FOUND',
    });
    expect(String(await readFile(file))).toBe('old');
    await mkdir(path.join(directory, 'is-a-directory', 'x'), { recursive: true });
    const failure = await failureOf(packLayout(layout, path.join(directory, 'is-a-directory')));
    expect(failure).toMatchObject({ code: 'IO', message: expect.stringContaining('is-a-directory') });
    expect((await readdir(directory)).sort()).toEqual(['is-a-directory', 'layout', 'out.tar']);
    await packLayout(layout, file);
    await (await openOciArchive(file)).close();
    await openLayout(layout);
  });

  it('follows a symbolic link and refuses a pipe', async () => {
    const directory = await directoryWith({ 'out.tar': 'old' });
    const [layout, link, pipe] = ['layout', 'link.tar', 'pipe'].map((name) => path.join(directory, name)) as [
      string,
      string,
      string,
    ];
    await layoutWithImage(layout);
    await symlink('out.tar', link);
    await packLayout(layout, link);
    expect((await lstat(link)).isSymbolicLink()).toBe(true);
    await (await openOciArchive(path.join(directory, 'out.tar'))).close();
    execFileSync('mkfifo', [pipe]);
    expect(await failureOf(packLayout(layout, pipe))).toMatchObject({ message: `${pipe}: is not a file` });
    expect((await lstat(pipe)).isFIFO()).toBe(true);
    await symlink('nothing', path.join(directory, 'dangling'));
    expect(await failureOf(packLayout(layout, path.join(directory, 'dangling')))).toMatchObject({
      code: 'NOT_FOUND',
      message: expect.stringContaining('a link to a file that does not exist'),
    });
    expect((await readdir(directory)).sort()).toEqual(['dangling', 'layout', 'link.tar', 'out.tar', 'pipe']);
  });
});
