import { stat } from 'node:fs/promises';
import path from 'node:path';
import { withOpen } from '../../core/concurrency.js';
import type { Logger } from '../../core/log.js';
import { readBytes } from '../../files/file-region.js';
import { openIfRegularFile } from '../../files/read-file.js';
import { openArchiveSets } from '../../oci/archive-set/archive-set-reader.js';
import { type ArchiveProof, archiveIndexName } from '../../oci/archive-set/archive-index.js';
import { LayoutStore } from '../../oci/layout/layout-store.js';

/** Images and blobs that a registry serves. */
export interface RegistryStore {
  content: Pick<
    LayoutStore,
    'directory' | 'generation' | 'entries' | 'knownEntries' | 'blobSize' | 'claimBlob'
  >;
  /** Returns the place of an existing blob. */
  locate(digest: string): { file: string; offset: number };
  /** Layout to write to; undefined for a read-only store. */
  layout: LayoutStore | undefined;
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
  if (isArchive || bases.length > 0 || proof.id !== undefined || proof.key !== undefined) {
    return openArchive(directory, bases, logger, proof);
  }
  const layout = await LayoutStore.open(directory, { create: true });
  return { content: layout, locate: (digest) => ({ file: layout.blobPath(digest), offset: 0 }), layout };
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
  const findSize = async (digest: string): Promise<number | undefined> => archive.locate(digest)?.size;
  return {
    content: {
      directory,
      generation: 0,
      entries: async () => entries,
      knownEntries: entries,
      blobSize: findSize,
      claimBlob: findSize,
    },
    locate: (digest) => archive.locate(digest) as { file: string; offset: number },
    layout: undefined,
  };
}

/** Reads a piece of a file, shorter at the end; undefined if the file does not exist. */
export async function readPiece(file: string, start: number, length: number): Promise<Buffer | undefined> {
  const handle = await openIfRegularFile(file);
  return handle && withOpen(handle, (opened) => readBytes(opened, start, length));
}
