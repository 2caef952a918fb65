/* eslint-disable @typescript-eslint/no-unused-vars */
import type { Command } from 'commander';
import type { CommandContext } from './context.js';
import type { Runner } from './runner.js';

/** Adds `render-template` and `convert-template` to `alpha`, and `template …`. */
export function addTemplateCommands(
  _program: Command,
  _alpha: Command,
  _context: CommandContext,
  _runner: Runner,
): void {}
