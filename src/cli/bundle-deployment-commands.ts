/* eslint-disable @typescript-eslint/no-unused-vars */
import type { Command } from 'commander';
import type { CommandContext } from './context.js';
import type { Runner } from './runner.js';

/** Adds `deployment …` to a group. */
export function addBundleDeploymentCommands(
  _bundle: Command,
  _context: CommandContext,
  _runner: Runner,
): void {}
