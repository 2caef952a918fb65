import path from 'node:path';
import type { Session } from '../../source/session.js';

/** Root directories of `file://` references. */
export interface FileRoots {
  /** Root of targets; default the working directory. */
  directory?: string | undefined;
  /** Root of sources; default that of targets. */
  fromDirectory?: string | undefined;
}

/** Returns the absolute root directories of sources and targets. */
export function resolveRoots(
  { directory = '.', fromDirectory = directory }: FileRoots,
  { workingDirectory }: Pick<Session, 'workingDirectory'>,
): { from: string; to: string } {
  return {
    from: path.resolve(workingDirectory, fromDirectory),
    to: path.resolve(workingDirectory, directory),
  };
}
