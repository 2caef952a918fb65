/** Exit codes. Commands of `opm` use 0 and 1, and those named here. */
export const exitCodes = {
  done: 0,
  failed: 1,
  usage: 2,
  /** `registry add`, `index add`: an image is already in the index. */
  imageAlreadyAdded: 2,
  /** `registry add`, `index add`: a bundle name or version is already in the index. */
  versionAlreadyAdded: 3,
  /** Commands of opmate only: invalid, damaged or unexpected input. */
  findings: 3,
  /** Partly done, e.g. with `--permissive`; the rest is listed on stderr. */
  partly: 4,
  interrupted: 130,
  /** Closed standard output, as for a process ended by SIGPIPE. */
  outputClosed: 141,
} as const;

/** Exit codes with their meaning, for help, man pages and the reference. */
export const exitStatus: readonly (readonly [code: string, meaning: string])[] = [
  ['0', 'Done.'],
  ['1', 'Failed.'],
  ['2', 'Invalid usage.'],
  ['3', 'Findings or differences: invalid or damaged input, changed inputs.'],
  ['4', 'Partial success; failures are listed on stderr.'],
  ['130', 'Interrupted.'],
  ['141', 'Standard output was closed.'],
];

/** Exit codes that differ from the table. */
export const exitStatusNote =
  'Commands shared with opm, oc or oc-mirror keep their exit codes: 1 for findings and invalid usage, ' +
  'also for unknown commands below alpha, catalog, generate, index, mirror and registry. ' +
  '"registry add" and "index add" exit with 2 if the image already exists in the index, and with 3 if the bundle or ' +
  'version does. "mirror --locked" exits with 2 for a lock of another plan or configuration. "probe" exits ' +
  'with 1 on invalid usage, 2 if the server is unreachable, 3 if it does not respond and 4 if it is unhealthy.';

/** Exit codes of errors by name, because their modules are loaded lazily. */
const codeOfError: Readonly<Record<string, number>> = {
  BundleImageAlreadyAddedError: exitCodes.imageAlreadyAdded,
  VersionAlreadyAddedError: exitCodes.versionAlreadyAdded,
};

/** Returns the exit code of a failure other than wrong usage and interruption. */
export function getExitCode(error: unknown): number {
  return (error instanceof Error ? codeOfError[error.name] : undefined) ?? exitCodes.failed;
}
