import type { Readable, Writable } from 'node:stream';
import type { LogLevel } from '../core/log.js';

/** The outside world as a command sees it. Made once, by `main`; nothing below `cli` reads the process. */
export interface CommandContext {
  environment: Readonly<Record<string, string | undefined>>;
  workingDirectory: string;
  homeDirectory: string;
  temporaryDirectory: string;
  /** Opened when it is first asked for. */
  readonly stdin: Readable;
  stdout: Writable;
  stderr: Writable & { isTTY?: boolean; columns?: number };
  /** Fires on SIGINT and SIGTERM. */
  signal: AbortSignal;
  now: () => Date;
  /** The machine's architecture as Node.js names it. */
  architecture: string;
}

/** Options that every command takes, before or after its name. */
export interface GlobalOptions {
  debug?: boolean;
  verbose?: boolean;
  logLevel?: LogLevel;
  logFormat?: 'text' | 'json';
  authfile?: string;
  platform?: string;
  useHttp?: boolean;
  skipTlsVerify?: boolean;
  skipTls?: boolean;
  insecure?: boolean;
  /** The same for some registries. */
  insecureAt?: (registry: string) => boolean;
  caFile?: string;
  certDir?: string;
  /** Repeatable. */
  allowPrivateHost?: string[];
  retryTimeout?: number;
  maxEntries?: number;
  maxUnpackedSize?: number;
  maxRatio?: number;
  followLinks?: boolean;
}
