/** Maximum bytes of a manifest or other file of a bundle: the largest of public bundles have a few MiB. */
export const maxFileSize = 64 * 1024 * 1024;

/** Maximum bytes of the files of a bundle, which are in memory together. */
export const maxBundleSize = 256 * 1024 * 1024;

/** Maximum number of files in a directory of a bundle. */
export const maxFiles = 10_000;

/** Maximum number of files read at the same time. */
export const filesAtOnce = 8;
