import type { AnyCommand } from './declaration.js';

/** Loads the module of one command. */
type CommandLoader = () => Promise<{ command: AnyCommand }>;

/** A command, or a group of them, by its place in the tree; nothing of it is loaded before it is named. */
export interface CommandNode {
  /** Of a group; a command's own declaration has it. */
  readonly summary?: string;
  /** The command itself; a group may be one too. */
  readonly load?: CommandLoader;
  readonly commands?: CommandTree;
  readonly aliases?: readonly string[];
  /** Works, and is not shown; by the environment where `HELP_ALPHA=true` shows it. */
  readonly hidden?: boolean | 'alpha';
  /** The command of this group that takes a reference, for those who leave it out: `packages` in `list ./catalog`. */
  readonly referenceCommand?: string;
  /** The heading of the root's help below which it is listed. */
  readonly helpGroup?: string;
  /** Of a group: the commands below it whose first example its help shows. */
  readonly exampleOf?: readonly string[];
  /** The tool that has this group too; see `CommandDeclaration.tool`. */
  readonly tool?: AnyCommand['tool'];
}

/** Commands by name, in the order of help. */
export type CommandTree = Readonly<Record<string, CommandNode>>;

type Traits = Omit<CommandNode, 'summary' | 'load' | 'commands'>;

/** A place for one command. */
export function leaf(load: CommandLoader, traits: Traits = {}): CommandNode {
  return { ...traits, load };
}

/** A place for commands under one noun. */
export function group(
  summary: string,
  commands: CommandTree,
  traits: Traits & { load?: CommandLoader } = {},
): CommandNode {
  return { ...traits, summary, commands };
}
