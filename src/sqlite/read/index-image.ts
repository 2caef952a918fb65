import { open, rm, stat } from 'node:fs/promises';
import path from 'node:path';
import { type ArchiveLimits, defaultArchiveLimits } from '../../archive/limits.js';
import { writeLayer } from '../../archive/tar-writer.js';
import type { CancelOptions } from '../../core/concurrency.js';
import { OpmateError } from '../../core/errors.js';
import { quoteGo } from '../../document/go-json.js';
import type { Logger } from '../../core/log.js';
import { readBytes } from '../../files/file-region.js';
import { replaceFileBy } from '../../files/replace-file.js';
import { imageLabels, pathOfLabel } from '../../model/image-labels.js';
import { type Image, extractImage } from '../../oci/image/image.js';
import { type BuiltImage, buildImage } from '../../oci/image/image-builder.js';
import type { Platform } from '../../oci/image/types.js';
import { openDatabase } from '../schema/database.js';

interface ExtractDatabaseOptions extends CancelOptions {
  limits?: ArchiveLimits | undefined;
  logger?: Logger | undefined;
}

/**
 * Unpacks the database of an index image, with what an unfinished writer has left beside it, and returns the
 * path of its file. `directory` must be missing or empty, and holds nothing else afterwards. The database may
 * be as large as an image may unpack to. Throws OpmateError: UNSUPPORTED for an image of a file-based
 * catalog; INVALID for one without the label of a database, or without the file that it names; UNSAFE for a
 * label that leaves the image and for a journal that names files outside of it; and what reading the image
 * throws.
 */
export async function extractDatabase(
  image: Image,
  directory: string,
  options: ExtractDatabaseOptions = {},
): Promise<string> {
  const { limits = defaultArchiveLimits, signal, logger } = options;
  const label = databaseLabel(image);
  const name = pathOfLabel(image.name, imageLabels.database, label);
  const named = `${image.name}: ${quoteGo(label)}, which the label ${imageLabels.database} names,`;
  const hint = 'set the label to the database file, such as /database/index.db';
  // The whole image would be unpacked to find that this is not a file.
  if (name === '') throw new OpmateError('INVALID', `${named} is not a file`, { hint });
  const journal = `${name}-journal`;
  const unpacked = await extractImage(image, directory, {
    roots: [name, `${name}-wal`, journal],
    limits: { ...limits, maxFileSize: Infinity },
    signal,
    logger,
  });
  for (const problem of unpacked.problems.values()) throw problem;
  if (!unpacked.files.includes(name)) {
    const isDirectory =
      unpacked.directories.includes(name) || unpacked.files.some((file) => file.startsWith(`${name}/`));
    throw new OpmateError('INVALID', `${named} ${isDirectory ? 'is a directory' : 'is not in the image'}`, {
      hint,
    });
  }
  if (unpacked.files.includes(journal)) await checkJournal(path.join(directory, journal), image.name);
  return path.join(directory, name);
}

function databaseLabel({ name, labels }: Image): string {
  const label = labels[imageLabels.database];
  if (label !== undefined) return label;
  if (labels[imageLabels.configs] !== undefined) {
    throw new OpmateError(
      'UNSUPPORTED',
      `index image ${name}: is a file-based catalog; only sqlite-based catalogs are supported here`,
      { hint: 'use opmate render, list, graph, validate or migrate' },
    );
  }
  const isBundle = labels[imageLabels.bundlePackage] !== undefined;
  throw new OpmateError('INVALID', `index image ${name} missing label ${imageLabels.database}`, {
    hint: isBundle ? 'add the bundle image with --bundles' : 'use an index image created by opm index',
  });
}

/** What ends a journal that names a super-journal: https://www.sqlite.org/fileformat2.html, section 3.3. */
const superJournalMagic = Buffer.from('d9d505f920a163d7', 'hex');

/** Sqlite deletes the super-journal that a journal names, wherever it is: the image may not choose that. */
async function checkJournal(file: string, subject: string): Promise<void> {
  const handle = await open(file, 'r');
  try {
    const { size } = await handle.stat();
    const { length } = superJournalMagic;
    if (size < length || !(await readBytes(handle, size - length, length)).equals(superJournalMagic)) return;
  } finally {
    await handle.close();
  }
  throw new OpmateError('UNSAFE', 'the journal of its database names a file outside the image', {
    subject,
    hint: 'build the index image from a database that is not in use',
  });
}

/** Where an index image has its database. */
const databasePath = '/database/index.db';

/**
 * The image that index images are built on: the last release of opm that can serve a database. By version,
 * because later ones have no command for it; a digest may be given in its place.
 */
export const defaultBinaryImage = 'quay.io/operator-framework/opm:v1.73.0';

/** How the container of an index image starts. (Source: the Dockerfile of `opm index add`.) */
const start = {
  entrypoint: ['/bin/opm'],
  cmd: ['registry', 'serve', '--database', databasePath],
  port: 50051,
} as const;

/**
 * The Dockerfile of an index image whose database is at `database`, relative to the build context. (Source:
 * `opm index add --generate`.)
 */
export function indexDockerfile(base: string, database: string): string {
  const lines = [
    `FROM ${base}`,
    `LABEL ${imageLabels.database}=${databasePath}`,
    `ADD ${database} ${databasePath}`,
  ];
  if (base !== 'scratch') {
    lines.push(
      `EXPOSE ${start.port}`,
      `ENTRYPOINT ${execForm(start.entrypoint)}`,
      `CMD ${execForm(start.cmd)}`,
    );
  }
  return `${lines.join('\n')}\n`;
}

function execForm(words: readonly string[]): string {
  return `[${words.map((word) => JSON.stringify(word)).join(', ')}]`;
}

/**
 * Brings the file of a database, which nobody else may use, into the form that goes into images: equal contents
 * that came about in the same way have equal bytes. The time of the last migration becomes 1970, free pages are
 * given back, and nothing is left beside the file. Throws what opening throws.
 */
export async function settleDatabase(file: string, name: string): Promise<void> {
  await replaceFileBy(file, async (settled) => {
    const database = await openDatabase(file, { access: 'write', name });
    try {
      database.run('UPDATE schema_migrations SET timestamp = ?', '1970-01-01 00:00:00');
      // In place it would be written three times; and a log of writes, which would not be in the image, is left.
      database.run('VACUUM INTO ?', settled);
    } finally {
      database.close();
    }
    for (const suffix of ['-wal', '-shm', '-journal']) await rm(file + suffix, { force: true });
  });
}

interface IndexImageOptions extends CancelOptions {
  /** What to build on, an image a platform; none makes an image of the data only. */
  bases: readonly Image[];
  /** Platform of an image without base; linux/amd64 unless told. */
  platform?: Platform | undefined;
  /** Where the layer waits until the images are pushed; whoever names it removes it. */
  directory: string;
}

/**
 * Makes the images of an index, one a base: its layers, one with the database, and a command that serves the
 * database over gRPC, unless there is no base that could. Equal inputs make equal images. The database is
 * streamed. Throws what building an image and writing its layer throw.
 */
export async function buildIndexImages(file: string, options: IndexImageOptions): Promise<BuiltImage[]> {
  const { bases, platform, directory, signal } = options;
  const { size } = await stat(file);
  const content = { file, size };
  const layer = await writeLayer(
    path.join(directory, 'layer.tar.gz'),
    [{ path: databasePath.slice(1), content }],
    { signal },
  );
  const layers = [layer];
  // A base that carries a catalog would have the image taken for that.
  const labels = { [imageLabels.database]: databasePath, [imageLabels.configs]: undefined };
  if (bases.length === 0) return [await buildImage({ layers, labels, platform })];
  const { entrypoint, cmd, port } = start;
  return Promise.all(
    bases.map((base) => buildImage({ layers, labels, base, entrypoint, cmd, exposedPorts: [`${port}/tcp`] })),
  );
}
