/** Exit codes of the command line. A command that `opm` has too uses 0 and 1, and what is said here. */
export const exitCodes = {
  done: 0,
  failed: 1,
  usage: 2,
  /** `registry add`, `index add`: an image is in the index already. */
  imageAlreadyAdded: 2,
  /** `registry add`, `index add`: a bundle of that name or version is in the index already. */
  versionAlreadyAdded: 3,
  /** Commands of opmate's own: what was read is damaged, not valid, or not what was asked for. */
  findings: 3,
  /** With `--permissive`: done in part, the rest is listed on stderr. */
  partly: 4,
  interrupted: 130,
  /** Whoever read standard output went away, as when a process ends by SIGPIPE. */
  outputClosed: 141,
} as const;

/** Errors that have an exit code of their own, by name: their modules are not loaded for every command. */
const codeOfError: Readonly<Record<string, number>> = {
  BundleImageAlreadyAddedError: exitCodes.imageAlreadyAdded,
  VersionAlreadyAddedError: exitCodes.versionAlreadyAdded,
};

/** The exit code of a failure that is neither wrong usage nor an interruption. */
export function exitCodeOf(error: unknown): number {
  return (error instanceof Error ? codeOfError[error.name] : undefined) ?? exitCodes.failed;
}
