/* eslint-disable @typescript-eslint/no-unused-vars */
import type { Command } from 'commander';
import type { CommandContext } from './context.js';
import type { Runner } from './runner.js';

/** Adds `generate`, `build` and `push` to a group: what makes a bundle. */
export function addBundleAuthorCommands(_group: Command, _context: CommandContext, _runner: Runner): void {}
