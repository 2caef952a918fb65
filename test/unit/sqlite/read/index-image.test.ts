import { readFile, readdir } from 'node:fs/promises';
import path from 'node:path';
import { describe, expect, it } from 'vitest';
import { defaultArchiveLimits } from '../../../../src/archive/limits.js';
import { imageLabels } from '../../../../src/model/image-labels.js';
import { openImage } from '../../../../src/oci/image/image.js';
import { openLayout } from '../../../../src/oci/layout/layout.js';
import { openDatabase } from '../../../../src/sqlite/schema/database.js';
import { editDatabase } from '../../../../src/sqlite/schema/edit.js';
import { openBases, pushImage, pushImageIndex } from '../../../../src/oci/image/image-builder.js';
import {
  buildIndexImages,
  extractDatabase,
  indexDockerfile,
  settleDatabase,
} from '../../../../src/sqlite/read/index-image.js';
import { type ImageContent, makeImage, storeImage } from '../../../e2e/images.js';
import { failureOf } from '../../../support/connect.js';
import { directoryWith } from '../../../support/temporary.js';

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
      {
        code: 'UNSUPPORTED',
        message: /file-based catalog; only sqlite-based/,
        hint: /api\.render, api\.listCatalog/,
      },
    ],
    [
      'a bundle',
      { labels: { [imageLabels.bundlePackage]: 'etcd' } },
      { code: 'INVALID', message: /missing label/, hint: /bundle image/ },
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
      { code: 'UNSAFE', message: /refers to a file outside the image$/ },
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
    expect(failure).toMatchObject({ code: 'LIMIT', hint: expect.stringContaining('limits.maxUnpackedSize') });
  });
});

async function newIndex(file: string): Promise<string> {
  await editDatabase(file, { create: true }, () => undefined);
  return file;
}

describe('sqlite/index-image: buildIndexImages', () => {
  it('makes equal images of databases that were made at different times', async () => {
    const digests = [];
    for (const [i, time] of ['2020-01-01 00:00:00', '2030-01-01 00:00:00'].entries()) {
      const directory = await directoryWith();
      const file = await newIndex(path.join(directory, `${i}.db`));
      const database = await openDatabase(file, { access: 'write' });
      database.all('PRAGMA journal_mode = WAL');
      database.run('UPDATE schema_migrations SET timestamp = ?', time);
      database.close();
      await settleDatabase(file, 'index');
      expect((await readdir(directory)).length).toBe(1);
      const [image] = await buildIndexImages(file, { bases: [], directory });
      expect(JSON.parse(String(image?.config))).toMatchObject({
        os: 'linux',
        architecture: 'amd64',
        config: { Labels: { [imageLabels.database]: '/database/index.db' } },
      });
      expect(String(image?.config)).not.toContain('Entrypoint');
      digests.push(image?.descriptor.digest);
    }
    expect(digests[0]).toBe(digests[1]);
  });

  it('builds on every platform of its base, and takes the label of a catalog away', async () => {
    const directory = await directoryWith();
    const layout = await openLayout(path.join(directory, 'layout'), { create: true });
    const platforms = ['amd64', 's390x'].map((architecture) => ({ os: 'linux', architecture }));
    const bases = await Promise.all(
      platforms.map((platform) =>
        makeImage({
          files: { 'bin/opm': platform.architecture },
          labels: { [imageLabels.configs]: '/c' },
          platform,
        }),
      ),
    );
    await pushImageIndex(layout, 'base', bases);
    const file = await newIndex(path.join(directory, 'index.db'));
    const images = await buildIndexImages(file, {
      bases: await openBases(layout, 'base', { hostPlatform }),
      directory,
    });
    expect(images.map(({ platform }) => platform)).toEqual(platforms);
    await pushImageIndex(layout, 'index', images);
    for (const platform of platforms) {
      const image = await openImage(layout, 'index', { hostPlatform, platform });
      expect(image.config).toMatchObject({ architecture: platform.architecture });
      expect(image.config.config).toEqual({
        ExposedPorts: { '50051/tcp': {} },
        Entrypoint: ['/bin/opm'],
        Cmd: ['registry', 'serve', '--database', '/database/index.db'],
        Labels: { [imageLabels.database]: '/database/index.db' },
      });
      const unpacked = await extractDatabase(image, path.join(directory, platform.architecture));
      expect((await readFile(unpacked)).equals(await readFile(file))).toBe(true);
    }
  });

  it('builds on the only image of a base, or on that of the asked platform', async () => {
    const layout = await openLayout(path.join(await directoryWith(), 'layout'), { create: true });
    const platforms = ['amd64', 's390x'].map((architecture) => ({ os: 'linux', architecture }));
    const images = await Promise.all(platforms.map((platform) => makeImage({ files: { a: '1' }, platform })));
    for (const image of images) await pushImage(layout, image.platform.architecture, image);
    await pushImageIndex(layout, 'both', images);
    const open = (reference: string, platform?: (typeof platforms)[0]) =>
      openBases(layout, reference, { hostPlatform, platform });
    expect((await open('s390x')).map((image) => image.platform)).toEqual([platforms[1]]);
    expect((await open('both', platforms[1])).map((image) => image.platform)).toEqual([platforms[1]]);
    const other = { os: 'linux', architecture: 'arm64' };
    expect(await failureOf(open('both', other))).toMatchObject({ code: 'NOT_FOUND' });
  });
});

describe('sqlite/index-image: indexDockerfile', () => {
  it('has the lines of opm', () => {
    expect(indexDockerfile('base:1', 'database/index.db')).toBe(`FROM base:1
LABEL operators.operatorframework.io.index.database.v1=/database/index.db
ADD database/index.db /database/index.db
EXPOSE 50051
ENTRYPOINT ["/bin/opm"]
CMD ["registry", "serve", "--database", "/database/index.db"]
`);
  });

  it('starts nothing where there is nothing to start', () => {
    expect(indexDockerfile('scratch', 'database/index.db')).not.toMatch(/CMD|ENTRYPOINT|EXPOSE/);
  });
});
