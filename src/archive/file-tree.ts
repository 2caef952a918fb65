/** A regular file of an image. */
export interface FileEntry {
  size: number;
  /**
   * The content. Throws OpmateError LIMIT for a file of more than `maxMetadataFileSize`, NOT_FOUND for a
   * symbolic link that leads to no file, UNSUPPORTED for a sparse file.
   */
  read(): Promise<Buffer>;
}

/** Part of the file system of an image, links resolved. */
export interface FileTree {
  /** By slash path relative to the image's root, in byte order. */
  files: Map<string, FileEntry>;
  /** In byte order; the image's root is left out. */
  directories: Set<string>;
}
