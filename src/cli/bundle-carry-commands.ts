/* eslint-disable @typescript-eslint/no-unused-vars */
import type { Command } from 'commander';
import type { CommandContext } from './context.js';
import type { Runner } from './runner.js';

/** Adds `unpack` and `extract` to a group: what carries a bundle elsewhere. */
export function addBundleCarryCommands(_group: Command, _context: CommandContext, _runner: Runner): void {}
