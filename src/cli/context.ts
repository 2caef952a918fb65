import path from 'node:path';
import type { Readable, Writable } from 'node:stream';
import type { SessionOptions } from '../source/session.js';

/** Environment of a command. Created once, by `main`; nothing below `cli` reads the process. */
export interface CommandContext extends Pick<
  SessionOptions,
  'environment' | 'homeDirectory' | 'temporaryDirectory' | 'architecture'
> {
  workingDirectory: string;
  // Each stream is opened on first use.
  readonly stdin: Readable;
  readonly stdout: Writable & { isTTY?: boolean; columns?: number };
  readonly stderr: Writable & { isTTY?: boolean; columns?: number };
  /** Fires on SIGINT, SIGTERM and SIGHUP. */
  signal: AbortSignal;
  now: () => Date;
}

/** Returns the user's cache directory: `$XDG_CACHE_HOME/opmate` or `~/.cache/opmate`. */
export function userCacheDirectory({ environment, homeDirectory }: CommandContext): string {
  const own = environment['XDG_CACHE_HOME'];
  return path.join(own && path.isAbsolute(own) ? own : path.join(homeDirectory, '.cache'), 'opmate');
}
