import type { Command } from 'commander';
import { loadTree } from './loaded-tree.js';
import { commandPath, loadExamples } from '../help.js';
import type { Example } from './declaration.js';

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

/** Returns the examples in the help of each group by path, `opmate` included. */
export async function groupExamples(): Promise<Record<string, readonly Example[]>> {
  const commandLine = await loadTree();
  const examples: Record<string, readonly Example[]> = {};
  const add = async (command: Command): Promise<void> => {
    if (command.commands.length > 0)
      examples[commandPath(command)] = await loadExamples(commandLine, command);
    for (const sub of command.commands) await add(sub);
  };
  await add(commandLine.program);
  return examples;
}
