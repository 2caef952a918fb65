/** Exit codes of the command line. A command that `opm` has too uses 0 and 1 only, as `opm` does. */
export const exitCodes = {
  done: 0,
  failed: 1,
  usage: 2,
  interrupted: 130,
  /** Whoever read standard output went away, as when a process ends by SIGPIPE. */
  outputClosed: 141,
} as const;
