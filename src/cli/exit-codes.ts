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

/** The exit codes with their meaning, as help, man pages and the reference state them. */
export const exitStatus: readonly (readonly [code: string, meaning: string])[] = [
  ['0', 'Done.'],
  ['1', 'Failed.'],
  ['2', 'Wrong usage.'],
  ['3', 'Findings or differences: invalid or damaged input, changed inputs.'],
  ['4', 'Partly done; the rest is listed on stderr.'],
  ['130', 'Interrupted.'],
  ['141', 'Standard output was closed.'],
];

/** Commands whose exit codes differ from the table, and how. */
export const exitStatusNote =
  'Commands that opm, oc or oc-mirror have too keep the exit codes of these tools: 1 for findings and for wrong usage, ' +
  'also for unknown commands below alpha, catalog, generate, index, mirror and registry. ' +
  '"registry add" and "index add" end with 2 if an image, and with 3 if a version is in the index already. ' +
  '"mirror --locked" ends with 2 for a lock of another plan or configuration. "probe" ends ' +
  'with 1 on wrong usage, 2 if the server is unreachable, 3 if it does not respond and 4 if it is unhealthy.';

/** Errors that have an exit code of their own, by name: their modules are not loaded for every command. */
const codeOfError: Readonly<Record<string, number>> = {
  BundleImageAlreadyAddedError: exitCodes.imageAlreadyAdded,
  VersionAlreadyAddedError: exitCodes.versionAlreadyAdded,
};

/** The exit code of a failure that is neither wrong usage nor an interruption. */
export function getExitCode(error: unknown): number {
  return (error instanceof Error ? codeOfError[error.name] : undefined) ?? exitCodes.failed;
}
