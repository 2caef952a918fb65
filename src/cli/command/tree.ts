import type { AnyCommand } from './declaration.js';

/** Loads the module of one command. */
type CommandLoader = () => Promise<{ command: AnyCommand }>;

/** Command or group of commands in the tree, loaded lazily. */
export interface CommandNode {
  /** Summary of a group. */
  readonly summary?: string;
  readonly load?: CommandLoader;
  readonly commands?: CommandTree;
  readonly aliases?: readonly string[];
  /** Omitted from help; `alpha` unless `HELP_ALPHA=true`. */
  readonly hidden?: boolean | 'alpha';
  /** Command of this group to suggest for a reference: `packages` for `list ./catalog`. */
  readonly referenceCommand?: string;
  /** Heading in the help of the program. */
  readonly helpGroup?: string;
  /** Subcommands whose first example the help of the group shows. */
  readonly exampleOf?: readonly string[];
  /** Tool that also has this group; see `CommandDeclaration.tool`. */
  readonly tool?: AnyCommand['tool'];
}

/** Commands by name, in the order of help. */
export type CommandTree = Readonly<Record<string, CommandNode>>;

type Traits = Omit<CommandNode, 'summary' | 'load' | 'commands'>;

/** Returns a node of one command. */
export function leaf(load: CommandLoader, traits: Traits = {}): CommandNode {
  return { ...traits, load };
}

/** Returns a node of several commands. */
export function group(
  summary: string,
  commands: CommandTree,
  traits: Traits & { load?: CommandLoader } = {},
): CommandNode {
  return { ...traits, summary, commands };
}
