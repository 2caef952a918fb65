import type { Command } from 'commander';
import type { GlobalOptions } from './context.js';

/**
 * How the tree hands a command over: `starts` before its options are checked, `run` with its options. `say`
 * takes the texts that commander would print.
 */
export interface Runner {
  say(text: string): void;
  starts(command: Command): void;
  run(command: Command, action: (options: GlobalOptions) => Promise<number | void>): Promise<void>;
}
