/* eslint-disable @typescript-eslint/no-unused-vars */
import type { Command } from 'commander';
import type { CommandContext } from './context.js';
import type { Runner } from './runner.js';

/** Adds what authors do with whole catalogs to `catalog`. */
export function addCatalogCommands(_catalog: Command, _context: CommandContext, _runner: Runner): void {}
