/**
 * An archive set: a directory with `mirror_000001.tar`, `mirror_000002.tar` … and the index `mirror_archive.json`,
 * which together hold images by name. Each part is an ordinary uncompressed tar of an OCI layout's files; a blob is
 * never divided. The last part has the layout's `oci-layout` and `index.json`, so that a set of one part is an
 * `oci-archive:`. A set may have a base: another set that it needs blobs of.
 */
export {
  type ArchiveIndex,
  type ArchiveProof,
  archiveIndexName,
  readArchiveIndex,
  signArchive,
} from './archive-index.js';
export { type BlobPlace, type OpenedArchive, openArchiveSets } from './archive-set-reader.js';
export {
  type ArchivedBlob,
  type ArchivedImage,
  type WriteArchiveOptions,
  type WrittenArchive,
  writeArchiveSet,
} from './archive-set-writer.js';
export { type ArchiveDiagnostic, verifyArchiveSet } from './archive-verify.js';
