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

/** Content by digest, and a list of what it is for: what a registry serves. */
export interface RegistryStore {
  /** How messages name it. */
  readonly directory: string;
  /** Counts how often somebody else has changed the list. */
  readonly generation: number;
  /** Images as an `index.json` lists them, as they are now. */
  entries(): Promise<readonly Descriptor[]>;
  /** The same, without looking at the disk. */
  readonly knownEntries: readonly Descriptor[];
  /** Bytes of a blob, or undefined if missing. */
  blobSize(digest: string): Promise<number | undefined>;
  /** The same, and keeps the blob from being collected for a while: something is about to refer to it. */
  claimBlob(digest: string): Promise<number | undefined>;
  /** Where the content of a blob that is there lies. */
  locate(digest: string): { file: string; offset: number };
  /** What can be written to; undefined where the content is for reading only. */
  readonly layout: LayoutStore | undefined;
}

/**
 * Opens what is to be served: archive sets where the directory holds one, `bases` being directories of those that
 * it is based on; else a layout directory, which is created if missing. Throws OpmateError.
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
    : serveLayout(await LayoutStore.open(directory, { create: true }));
}

function serveLayout(layout: LayoutStore): RegistryStore {
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
    const where = `in its base ${index.base}, which is not at hand`;
    logger.log('warn', `${directory}: ${missing} of its blobs are ${where}: they cannot be pulled`);
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

/** Reads a piece of a file, which may be shorter than wanted at its end; undefined if it does not exist. */
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
