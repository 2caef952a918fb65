import { readFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { describe, expect, it } from 'vitest';
import { type OpenedIndex, openIndexFile } from '../../../../src/sqlite/read/images.js';
import { indexFile } from '../../../support/index-file.js';

async function withIndex<T>(file: string, work: (index: OpenedIndex) => T): Promise<T> {
  const index = await openIndexFile(
    file,
    {
      temporaryDirectory: tmpdir(),
      now: () => new Date(),
    },
    { name: 'db' },
  );
  try {
    return work(index);
  } finally {
    await index.close();
  }
}

describe('sqlite/images', () => {
  it('lists images sorted and once, without entries that name none', async () => {
    const file = await indexFile(
      "INSERT INTO related_image VALUES ('', 'widget.v1.2.0'), (NULL, 'widget.v1.2.0'), ('a/b', 'other'), ('a/b', 'x')",
    );
    const before = await readFile(file);
    expect(await withIndex(file, (index) => index.listImages())).toEqual([
      'a/b',
      'quay.io/widget/bundle:1.1.0',
      'quay.io/widget/bundle:1.2.0',
      'quay.io/widget/operand:1.0.0',
      'quay.io/widget/operand:1.1.0',
      'quay.io/widget/operand:1.2.0',
    ]);
    expect(await withIndex(file, (index) => index.getImagesForBundle('widget.v1.1.0'))).toEqual([
      'quay.io/widget/bundle:1.1.0',
      'quay.io/widget/operand:1.1.0',
    ]);
    expect(await readFile(file)).toEqual(before);
  });

  it.each(['a/b\nquay.io/forged/image:1', 'a/b\x1b[2K', 'a/b\r', 'a/b\u0085'])(
    'refuses an index with an image that would make other lines: %j',
    async (image) => {
      const shown = { code: 'INVALID', message: expect.stringMatching(/^db: image "a\/b[^\n]*characters$/) };
      const needed = await indexFile(`INSERT INTO related_image VALUES ('${image}', 'widget.v1.2.0')`);
      await expect(withIndex(needed, (index) => index.listImages())).rejects.toMatchObject(shown);
      const ofBundle = withIndex(needed, (index) => index.getImagesForBundle('widget.v1.2.0'));
      await expect(ofBundle).rejects.toMatchObject(shown);
      const own = await indexFile(
        `UPDATE operatorbundle SET bundlepath = '${image}' WHERE name = 'widget.v1.2.0'`,
      );
      await expect(withIndex(own, (index) => index.listBundleReferences())).rejects.toMatchObject(shown);
    },
  );

  it('suggests a bundle for an unknown name', async () => {
    const ask = async (name: string): Promise<unknown> =>
      withIndex(await indexFile(), (index) => index.getImagesForBundle(name));
    await expect(ask('wdget.v1.1.0')).rejects.toMatchObject({
      code: 'NOT_FOUND',
      message: 'db: bundle "wdget.v1.1.0" not found',
      hint: 'did you mean "widget.v1.1.0"?',
    });
    await expect(ask('widget.v9.9.9')).rejects.toMatchObject({
      hint: expect.stringContaining('"widget.v1.2.0"') as unknown,
    });
    await expect(ask('')).rejects.toMatchObject({ code: 'NOT_FOUND' });
  });
});
