import type { Command } from 'commander';
import { loadTree } from './loaded-tree.js';
import { commandPath } from '../help.js';

/** Returns the summaries of all commands by path, for help that loads no command. */
export async function commandSummaries(): Promise<Record<string, string>> {
  const { program } = await loadTree();
  const summaries: Record<string, string> = {};
  const add = (command: Command): void => {
    for (const sub of command.commands) {
      summaries[commandPath(sub)] = sub.summary() || sub.description();
      add(sub);
    }
  };
  add(program);
  return summaries;
}
