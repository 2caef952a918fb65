/* eslint-disable @typescript-eslint/no-unused-vars */
import type { Command } from 'commander';
import type { CommandContext } from './context.js';
import type { Runner } from './runner.js';

/** Adds `resolve` and `successors` to a group. */
export function addBundleResolveCommands(_bundle: Command, _context: CommandContext, _runner: Runner): void {}
