import type { Command } from 'commander';
import type { GlobalOptions } from './command/global-flags.js';

/** Runs a command with its options, for the commands that are not declared in files of their own yet. */
export interface Runner {
  run(command: Command, action: (options: GlobalOptions) => Promise<number | void>): Promise<void>;
}
