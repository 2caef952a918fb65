import { readFile, readdir } from 'node:fs/promises';
import path from 'node:path';
import { describe, expect, it } from 'vitest';
import { defaultArchiveLimits } from '../../../src/archive/limits.js';
import { imageLabels } from '../../../src/model/image-labels.js';
import { openImage } from '../../../src/oci/image.js';
import { openLayout } from '../../../src/oci/layout.js';
import { extractDatabase } from '../../../src/sqlite/index-image.js';
import { type ImageContent, makeImage, storeImage } from '../../e2e/images.js';
import { failureOf } from '../../support/connect.js';
import { directoryWith } from '../../support/temporary.js';

const hostPlatform = { os: 'linux', architecture: 'amd64' };
const databaseLabel = (name: string): Record<string, string> => ({ [imageLabels.database]: name });

async function imageWith(content: ImageContent) {
  const layout = path.join(await directoryWith(), 'layout');
  await storeImage(layout, 'v1', await makeImage(content));
  return openImage(await openLayout(layout), 'v1', { hostPlatform });
}

/** Unpacks the database of an image with this content; returns its path below the directory, and what is there. */
async function extract(content: ImageContent, limits = defaultArchiveLimits) {
  const image = await imageWith(content);
  const directory = path.join(await directoryWith(), 'image');
  const file = await extractDatabase(image, directory, { limits });
  const names = (await readdir(directory, { recursive: true, withFileTypes: true }))
    .filter((entry) => entry.isFile())
    .map((entry) => entry.name)
    .sort();
  return { name: path.relative(directory, file), text: await readFile(file, 'utf8'), names };
}

describe('sqlite/index-image: extractDatabase', () => {
  it('finds the database by its label, and takes only what belongs to it', async () => {
    const files = {
      'database/index.db': 'db',
      'database/index.db-wal': 'wal',
      'database/index.db-journal': 'journal',
      'database/other': 'other',
      'bin/opm': 'opm',
    };
    expect(await extract({ files, labels: databaseLabel('/database/index.db') })).toEqual({
      name: 'database/index.db',
      text: 'db',
      names: ['index.db', 'index.db-journal', 'index.db-wal'],
    });
    expect(await extract({ files: { 'index.db': 'db' }, labels: databaseLabel('./index.db') })).toMatchObject(
      {
        name: 'index.db',
        text: 'db',
      },
    );
  });

  it('follows links inside the image, and takes the uppermost layer', async () => {
    const content: ImageContent = {
      files: { 'data/real.db': 'real' },
      raw: [[{ name: 'database/index.db', flag: '2', linkName: '../data/real.db' }]],
      labels: databaseLabel('/database/index.db'),
    };
    expect(await extract(content)).toMatchObject({ text: 'real' });
    content.raw?.push([{ name: 'database/index.db', content: 'upper' }]);
    expect(await extract(content)).toMatchObject({ text: 'upper' });
  });

  it.each<[string, ImageContent, object]>([
    [
      'no label',
      { files: { 'database/index.db': 'db' } },
      { code: 'INVALID', message: /missing label operators\.operatorframework\.io\.index\.database\.v1$/ },
    ],
    [
      'a file-based catalog',
      { labels: { [imageLabels.configs]: '/configs' } },
      { code: 'UNSUPPORTED', message: /file-based catalog; only sqlite-based/, hint: /render, list/ },
    ],
    [
      'a bundle',
      { labels: { [imageLabels.bundlePackage]: 'etcd' } },
      { code: 'INVALID', message: /missing label/, hint: /image of a bundle/ },
    ],
    ['a label outside the image', { labels: databaseLabel('../../etc/passwd') }, { code: 'UNSAFE' }],
    [
      'a label that names the root',
      { labels: databaseLabel('/') },
      { code: 'INVALID', message: /not a file/ },
    ],
    [
      'a missing file',
      { files: { 'database/other': '' }, labels: databaseLabel('/database/index.db') },
      { code: 'INVALID', message: /"\/database\/index\.db".* is not in the image$/ },
    ],
    [
      'a directory',
      { files: { 'database/index.db': '' }, labels: databaseLabel('/database') },
      { code: 'INVALID', message: /is a directory$/ },
    ],
    [
      'a link that leads nowhere',
      {
        raw: [[{ name: 'database/index.db', flag: '2', linkName: '/etc/none' }]],
        labels: databaseLabel('/database/index.db'),
      },
      { code: 'NOT_FOUND' },
    ],
    [
      'a journal that would have sqlite delete a file',
      {
        files: {
          'index.db': 'db',
          'index.db-journal': Buffer.concat([
            Buffer.from('/home/user/precious'),
            Buffer.from('d9d505f920a163d7', 'hex'),
          ]),
        },
        labels: databaseLabel('/index.db'),
      },
      { code: 'UNSAFE', message: /names a file outside the image$/ },
    ],
  ])('refuses %s', async (_, content, expected) => {
    const failure = await failureOf(extract(content));
    for (const [key, value] of Object.entries(expected)) {
      expect(failure[key as 'code']).toEqual(value instanceof RegExp ? expect.stringMatching(value) : value);
    }
  });

  it('takes a database larger than other files may be, and refuses one larger than an image may be', async () => {
    const content = { files: { 'index.db': 'x'.repeat(5000) }, labels: databaseLabel('/index.db') };
    const limits = { ...defaultArchiveLimits, maxFileSize: 1000 };
    expect((await extract(content, limits)).text.length).toBe(5000);
    const failure = await failureOf(extract(content, { ...limits, maxUnpackedSize: 4000 }));
    expect(failure).toMatchObject({ code: 'LIMIT', hint: expect.stringContaining('--max-unpacked-size') });
  });
});
