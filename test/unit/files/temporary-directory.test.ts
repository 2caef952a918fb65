import { mkdir, readdir, utimes, writeFile } from 'node:fs/promises';
import path from 'node:path';
import { describe, expect, it } from 'vitest';
import { makeTemporaryDirectory } from '../../../src/files/temporary-directory.js';
import { failureOf } from '../../support/connect.js';
import { directoryWith } from '../../support/temporary.js';

describe('archive/temporary-directory', () => {
  it('sweeps what killed runs left long ago, and nothing else', async () => {
    const parent = await directoryWith({
      'mine/file': '',
      'opmate-tmp-old/image/x': '',
      'opmate-tmp-new/x': '',
    });
    const now = new Date();
    const old = new Date(now.getTime() - 8 * 24 * 60 * 60 * 1000);
    for (const name of ['opmate-tmp-old/image', 'opmate-tmp-old', 'mine'])
      await utimes(path.join(parent, name), old, old);
    const temporary = await makeTemporaryDirectory(parent, now);
    expect((await readdir(parent)).sort()).toEqual(
      ['mine', path.basename(temporary.path), 'opmate-tmp-new'].sort(),
    );
    await mkdir(path.join(temporary.path, 'deep/er'), { recursive: true });
    await writeFile(path.join(temporary.path, 'deep/er/file'), 'x');
    await temporary.remove();
    await temporary.remove();
    expect((await readdir(parent)).sort()).toEqual(['mine', 'opmate-tmp-new']);
  });

  it('says what to do when there is no place for temporary files', async () => {
    const parent = path.join(await directoryWith(), 'none');
    const error = await failureOf(makeTemporaryDirectory(parent, new Date()));
    expect(error).toMatchObject({ code: 'IO', hint: expect.stringContaining('TMPDIR') as string });
    expect(error.message).toContain(parent);
  });
});
