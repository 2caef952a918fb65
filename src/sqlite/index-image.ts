import { open } from 'node:fs/promises';
import path from 'node:path';
import { extractLayers } from '../archive/layers.js';
import { type ArchiveLimits, defaultArchiveLimits } from '../archive/limits.js';
import type { CancelOptions } from '../core/concurrency.js';
import { OpmateError } from '../core/errors.js';
import { quoteGo } from '../core/go-json.js';
import type { Logger } from '../core/log.js';
import { imageLabels, pathOfLabel } from '../model/image-labels.js';
import { type Image, layersOf } from '../oci/image.js';

export interface ExtractDatabaseOptions extends CancelOptions {
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
  const hint = 'the label must name the database file, such as /database/index.db';
  // The whole image would be unpacked to find that this is not a file.
  if (name === '') throw new OpmateError('INVALID', `${named} is not a file`, { hint });
  const journal = `${name}-journal`;
  const unpacked = await extractLayers(layersOf(image, signal), directory, {
    roots: [name, `${name}-wal`, journal],
    limits: { ...limits, maxFileSize: limits.maxUnpackedSize },
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
      { hint: 'render, list, graph, validate and migrate take it' },
    );
  }
  const isBundle = labels[imageLabels.bundlePackage] !== undefined;
  throw new OpmateError('INVALID', `index image ${name} missing label ${imageLabels.database}`, {
    hint: isBundle
      ? 'this is the image of a bundle: add it with --bundles'
      : 'give an image that opm index made',
  });
}

/** What ends a journal that names a super-journal: https://www.sqlite.org/fileformat2.html, section 3.3. */
const superJournalMagic = Buffer.from('d9d505f920a163d7', 'hex');

/** Sqlite deletes the super-journal that a journal names, wherever it is: the image may not choose that. */
async function checkJournal(file: string, subject: string): Promise<void> {
  const handle = await open(file, 'r');
  try {
    const { size } = await handle.stat();
    const end = Buffer.alloc(superJournalMagic.length);
    if (size < end.length) return;
    await handle.read(end, 0, end.length, size - end.length);
    if (!end.equals(superJournalMagic)) return;
  } finally {
    await handle.close();
  }
  throw new OpmateError('UNSAFE', `${subject}: the journal of its database names a file outside the image`, {
    hint: 'build the index image from a database that nobody writes to',
  });
}
