/* eslint-disable @typescript-eslint/no-unused-vars */
import type { Command } from 'commander';
import type { CommandContext } from './context.js';
import type { Runner } from './runner.js';

/** Adds `show` to a group. */
export function addBundleShowCommand(_group: Command, _context: CommandContext, _runner: Runner): void {}
