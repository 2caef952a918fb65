import type { AnyCommand } from '../../../src/cli/command/declaration.js';
import type { Flag } from '../../../src/cli/command/flags.js';
import type { CommandTree } from '../../../src/cli/command/tree.js';
import { commands } from '../../../src/cli/tree.js';

export interface DeclaredCommand {
  name: string;
  command: AnyCommand;
  flags: [string, Flag<unknown>][];
}

/** Returns every command of the tree with its flags. */
export async function commandsIn(
  tree: CommandTree = commands,
  path: readonly string[] = [],
): Promise<DeclaredCommand[]> {
  const all: DeclaredCommand[] = [];
  for (const [word, node] of Object.entries(tree)) {
    const name = [...path, word];
    const command = (await node.load?.())?.command;
    const flags = Object.entries((command?.flags ?? {}) as Record<string, Flag<unknown>>);
    if (command !== undefined) all.push({ name: name.join(' '), command, flags });
    if (node.commands !== undefined) all.push(...(await commandsIn(node.commands, name)));
  }
  return all;
}
