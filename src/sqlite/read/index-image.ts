import { open, rm, stat } from 'node:fs/promises';
import path from 'node:path';
import { type ArchiveLimits, defaultArchiveLimits } from '../../archive/limits.js';
import { writeLayer } from '../../archive/tar-writer.js';
import { type CancelOptions, withOpen } from '../../core/concurrency.js';
import { OpmateError } from '../../core/errors.js';
import { quoteGo } from '../../document/go-json.js';
import type { Logger } from '../../core/log.js';
import { readBytes } from '../../files/file-region.js';
import { replaceFileBy } from '../../files/replace-file.js';
import { imageLabels, getLabelPath } from '../../model/image-labels.js';
import { type Image, extractImage } from '../../oci/image/image.js';
import { type BuiltImage, buildImage } from '../../oci/image/image-builder.js';
import type { Platform } from '../../oci/image/types.js';
import { openDatabase } from '../schema/database.js';

/**
 * Extracts the database of an index image with the files of an unfinished writer, and returns its path. `directory`
 * must be missing or empty, and holds nothing else afterwards. The database may be as large as an unpacked image.
 * Throws OpmateError: UNSUPPORTED for an image of a file-based catalog; INVALID without the database label or its
 * file; UNSAFE for a label that leaves the image and for a journal that names files outside of it; and as reading the
 * image.
 */
export async function extractDatabase(
  image: Image,
  directory: string,
  options: CancelOptions & { limits?: ArchiveLimits | undefined; logger?: Logger | undefined } = {},
): Promise<string> {
  const { limits = defaultArchiveLimits, signal, logger } = options;
  const label = databaseLabel(image);
  const name = getLabelPath(image.name, imageLabels.database, label);
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
      { hint: 'use api.render, api.listCatalog, api.drawGraph, api.validate or api.migrateCatalog' },
    );
  }
  const isBundle = labels[imageLabels.bundlePackage] !== undefined;
  throw new OpmateError('INVALID', `index image ${name} missing label ${imageLabels.database}`, {
    hint: isBundle ? 'add the bundle image with options.bundles' : 'use an index image created by opm index',
  });
}

/** End of a journal that names a super-journal: https://www.sqlite.org/fileformat2.html, section 3.3. */
const superJournalMagic = Buffer.from('d9d505f920a163d7', 'hex');

/** Rejects a journal with a super-journal: sqlite deletes that file, and an image must not choose it. */
async function checkJournal(file: string, subject: string): Promise<void> {
  const end = await withOpen(open(file, 'r'), async (handle) => {
    const { length } = superJournalMagic;
    return readBytes(handle, Math.max(0, (await handle.stat()).size - length), length);
  });
  if (!end.equals(superJournalMagic)) return;
  throw new OpmateError('UNSAFE', 'the journal of its database refers to a file outside the image', {
    subject,
    hint: 'build the index image from a database that is not in use',
  });
}

/** Path of the database in an index image. */
const databasePath = '/database/index.db';

/**
 * Default base of index images: the last release of opm that can serve a database. By version, since later ones have
 * no such command; a digest may replace it.
 */
export const defaultBinaryImage = 'quay.io/operator-framework/opm:v1.73.0';

/** Start command of an index image. (Source: the Dockerfile of `opm index add`.) */
const start = {
  entrypoint: ['/bin/opm'],
  cmd: ['registry', 'serve', '--database', databasePath],
  port: 50051,
} as const;

/**
 * Returns the Dockerfile of an index image with its database at `database`, relative to the build context. (Source:
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
 * Brings the file of a database in exclusive use into its form for images: equal content created in the same way has
 * equal bytes. Sets the time of the last migration to 1970, releases free pages, and leaves no other files. Throws as
 * opening.
 */
export async function settleDatabase(file: string, name: string): Promise<void> {
  await replaceFileBy(file, async (settled) => {
    await withOpen(openDatabase(file, { access: 'write', name }), (database) => {
      database.run('UPDATE schema_migrations SET timestamp = ?', '1970-01-01 00:00:00');
      // In place it would be written three times, and leave a write-ahead log that the image lacks.
      database.run('VACUUM INTO ?', settled);
    });
    for (const suffix of ['-wal', '-shm', '-journal']) await rm(file + suffix, { force: true });
  });
}

interface IndexImageOptions extends CancelOptions {
  /** Base images, one per platform; none for a data-only image. */
  bases: readonly Image[];
  /** Platform of an image without a base; default: linux/amd64. */
  platform?: Platform | undefined;
  /** Directory of the layer until the images are pushed, which the caller removes. */
  directory: string;
}

/**
 * Builds index images, one per base: its layers, one with the database, and a command that serves the database over
 * gRPC, if there is a base. Equal inputs make equal images. Streams the database. Throws as image building and layer
 * writing.
 */
export async function buildIndexImages(file: string, options: IndexImageOptions): Promise<BuiltImage[]> {
  const { bases, platform, directory, signal } = options;
  const content = { file, size: (await stat(file)).size };
  const entries = [{ path: databasePath.slice(1), content }];
  const layers = [await writeLayer(path.join(directory, 'layer.tar.gz'), entries, { signal })];
  // Labels of a base with a catalog would make the image one.
  const labels = { [imageLabels.database]: databasePath, [imageLabels.configs]: undefined };
  if (bases.length === 0) return [await buildImage({ layers, labels, platform })];
  const { entrypoint, cmd, port } = start;
  return Promise.all(
    bases.map((base) => buildImage({ layers, labels, base, entrypoint, cmd, exposedPorts: [`${port}/tcp`] })),
  );
}
