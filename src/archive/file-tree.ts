/** A regular file of an image. */
export interface FileEntry {
  size: number;
  /**
   * Returns the content. Throws OpmateError LIMIT for a file of more than `maxMetadataFileSize`, NOT_FOUND for a
   * dangling symbolic link, UNSUPPORTED for a sparse file.
   */
  read(): Promise<Buffer>;
}

/** Part of the file system of an image, with links resolved. */
export interface FileTree {
  /** Files by slash-separated path from the root of the image, in byte order. */
  files: Map<string, FileEntry>;
  /** Directories in byte order, without the root of the image. */
  directories: Set<string>;
}
