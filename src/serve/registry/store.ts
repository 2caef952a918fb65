import { stat } from 'node:fs/promises';
import path from 'node:path';
import { systemCode } from '../../core/errors.js';
import type { Logger } from '../../core/log.js';
import { readBytes } from '../../files/file-region.js';
import { openRegularFile } from '../../files/read-file.js';
import { openArchiveSets } from '../../oci/archive-set/archive-set-reader.js';
import { type ArchiveProof, archiveIndexName } from '../../oci/archive-set/archive-index.js';
import { LayoutStore } from '../../oci/layout/layout-store.js';
import type { Descriptor } from '../../oci/image/types.js';

/** Content by digest with a list of images, which a registry serves. */
export interface RegistryStore {
  readonly directory: string;
  /** Number of changes by other processes. */
  readonly generation: number;
  /** Returns the current entries of `index.json`. */
  entries(): Promise<readonly Descriptor[]>;
  /** Entries as last read. */
  readonly knownEntries: readonly Descriptor[];
  /** Returns the size of a blob; undefined if missing. */
  blobSize(digest: string): Promise<number | undefined>;
  /** As `blobSize`; protects the blob from garbage collection for a while, as a manifest is about to refer to it. */
  claimBlob(digest: string): Promise<number | undefined>;
  /** Returns the place of an existing blob. */
  locate(digest: string): { file: string; offset: number };
  /** Layout to write to; undefined for a read-only store. */
  readonly layout: LayoutStore | undefined;
}

/**
 * Opens an archive set with its `bases`, or else a layout directory, which is created if missing. Throws OpmateError.
 */
export async function openRegistryStore(
  directory: string,
  bases: readonly string[],
  logger: Logger,
  proof: ArchiveProof = {},
): Promise<RegistryStore> {
  const isArchive = await stat(path.join(directory, archiveIndexName)).then(
    () => true,
    () => false,
  );
  return isArchive || bases.length > 0 || proof.id !== undefined || proof.key !== undefined
    ? await openArchive(directory, bases, logger, proof)
    : createLayoutStore(await LayoutStore.open(directory, { create: true }));
}

function createLayoutStore(layout: LayoutStore): RegistryStore {
  return {
    layout,
    directory: layout.directory,
    get generation() {
      return layout.generation;
    },
    entries: () => layout.entries(),
    get knownEntries() {
      return layout.knownEntries;
    },
    blobSize: (digest) => layout.blobSize(digest),
    claimBlob: (digest) => layout.claimBlob(digest),
    locate: (digest) => ({ file: layout.blobPath(digest), offset: 0 }),
  };
}

async function openArchive(
  directory: string,
  bases: readonly string[],
  logger: Logger,
  proof: ArchiveProof,
): Promise<RegistryStore> {
  const archive = await openArchiveSets([directory, ...bases], proof);
  const { entries, index } = archive;
  const missing = archive.missing().size;
  if (missing > 0) {
    logger.log('warn', `${directory}: ${missing} blobs unavailable without base archive ${index.base}`);
  }
  return {
    layout: undefined,
    directory,
    generation: 0,
    entries: async () => entries,
    knownEntries: entries,
    blobSize: async (digest) => archive.locate(digest)?.size,
    claimBlob: async (digest) => archive.locate(digest)?.size,
    locate: (digest) => archive.locate(digest) as { file: string; offset: number },
  };
}

/** Reads a piece of a file, shorter at the end; undefined if the file does not exist. */
export async function readPiece(file: string, start: number, length: number): Promise<Buffer | undefined> {
  const handle = await openRegularFile(file).catch((error: unknown) => {
    if (systemCode(error) === 'ENOENT') return undefined;
    throw error;
  });
  if (handle === undefined) return undefined;
  try {
    return await readBytes(handle, start, length);
  } finally {
    await handle.close();
  }
}
