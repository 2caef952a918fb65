import type { Command } from 'commander';

/** The shells that completion scripts are made for. */
export const shells = ['bash', 'zsh', 'fish'] as const;
/** One of `shells`. */
export type Shell = (typeof shells)[number];

/** One command of the tree, with what may be typed after it. */
interface Node {
  path: string[];
  commands: { name: string; description: string }[];
  options: {
    flag: string;
    short: string | undefined;
    description: string;
    takesValue: boolean;
    choices: readonly string[];
  }[];
  /** What the arguments may be, where that is a list. */
  values: readonly string[];
}

/** A completion script for the whole command tree. File names complete wherever no word of ours does. */
export function completionScript(shell: Shell, program: Command): string {
  const nodes = collect(program, []);
  const name = program.name();
  if (shell === 'bash') return bashScript(name, nodes);
  if (shell === 'zsh') return zshScript(name, nodes);
  return fishScript(name, nodes);
}

function collect(command: Command, path: string[]): Node[] {
  const help = command.createHelp();
  help.showGlobalOptions = true;
  const options = [
    ...help.visibleOptions(command),
    ...(path.length > 0 ? help.visibleGlobalOptions(command) : []),
  ];
  const node: Node = {
    path,
    commands: help
      .visibleCommands(command)
      .filter((sub) => sub.name() !== 'help')
      .map((sub) => ({ name: sub.name(), description: sub.description() })),
    options: options.map((option) => ({
      flag: option.long ?? option.short ?? option.flags,
      short: option.short,
      description: option.description,
      takesValue: option.required || option.optional,
      choices: option.argChoices ?? [],
    })),
    values: command.registeredArguments.flatMap((argument) => argument.argChoices ?? []),
  };
  const below = command.commands.filter((sub) => node.commands.some((known) => known.name === sub.name()));
  return [node, ...below.flatMap((sub) => collect(sub, [...path, sub.name()]))];
}

function bashScript(name: string, nodes: Node[]): string {
  const cases = nodes.map((node) => {
    const words = [
      ...node.commands.map((sub) => sub.name),
      ...node.values,
      ...node.options.map(({ flag }) => flag),
    ];
    return `    ${quote(node.path.join(' '))}) words=${quote(words.join(' '))} ;;`;
  });
  const commands = nodes
    .filter((node) => node.path.length > 0)
    .map((node) => `${quote(node.path.join(' '))}`);
  const values = nodes.flatMap((node) =>
    node.options
      .filter(({ choices }) => choices.length > 0)
      .map(({ flag, short, choices }) => {
        const at = [flag, short]
          .filter((name) => name !== undefined)
          .map((name) => quote(`${node.path.join(' ')} ${name}`));
        return `    ${at.join(' | ')}) words=${quote(choices.join(' '))} ;;`;
      }),
  );
  return `# bash completion for ${name}
_${name}() {
  local current=\${COMP_WORDS[COMP_CWORD]} path='' word words i
  for ((i = 1; i < COMP_CWORD; i++)); do
    word=\${COMP_WORDS[i]}
    case "\${path:+$path }$word" in
      ${commands.join(' | ')}) path="\${path:+$path }$word" ;;
    esac
  done
  case "$path" in
${cases.join('\n')}
  esac
  case "$path \${COMP_WORDS[COMP_CWORD - 1]}" in
${values.join('\n')}
  esac
  mapfile -t COMPREPLY < <(compgen -W "$words" -- "$current")
}
complete -o default -F _${name} ${name}
`;
}

function zshScript(name: string, nodes: Node[]): string {
  const cases = nodes.map((node) => {
    const listed = [...node.commands, ...node.values.map((name) => ({ name, description: name }))];
    const commands = listed.map((sub) => quote(`${sub.name}:${sub.description}`)).join(' ');
    const options = node.options.map((option) => quote(option.flag)).join(' ');
    return `    ${quote(node.path.join(' '))}) commands=(${commands}); options=(${options}) ;;`;
  });
  const known = nodes.filter((node) => node.path.length > 0).map((node) => quote(node.path.join(' ')));
  return `#compdef ${name}
_${name}() {
  local -a commands options
  local command_path='' word
  for word in "\${(@)words[2,CURRENT-1]}"; do
    case "\${command_path:+$command_path }$word" in
      ${known.join('|')}) command_path="\${command_path:+$command_path }$word" ;;
    esac
  done
  case "$command_path" in
${cases.join('\n')}
  esac
  if [[ $PREFIX == -* ]]; then
    compadd -a options
  elif (( \${#commands} )); then
    _describe 'command' commands
  else
    _files
  fi
}
if [[ $funcstack[1] == _${name} ]]; then _${name} "$@"; else compdef _${name} ${name}; fi
`;
}

function fishScript(name: string, nodes: Node[]): string {
  const known = nodes.filter((node) => node.path.length > 0).map((node) => node.path.join(' '));
  const lines = [
    `# fish completion for ${name}`,
    `function __${name}_path`,
    '  set -l found',
    '  for word in (commandline -opc)[2..-1]',
    `    if contains -- (string join ' ' $found $word) ${known.map(quote).join(' ')}`,
    '      set -a found $word',
    '    end',
    '  end',
    "  string join ' ' $found",
    'end',
  ];
  for (const node of nodes) {
    const at = `-n ${quote(`test (__${name}_path) = "${node.path.join(' ')}"`)}`;
    for (const sub of node.commands) {
      lines.push(`complete -c ${name} ${at} -f -a ${quote(sub.name)} -d ${quote(sub.description)}`);
    }
    for (const value of node.values) lines.push(`complete -c ${name} ${at} -f -a ${quote(value)}`);
    for (const option of node.options) {
      const choices = option.choices.length > 0 ? ` -x -a ${quote(option.choices.join(' '))}` : '';
      const value = option.takesValue && choices === '' ? ' -r' : choices;
      const flag = option.flag.replace(/^--/, '');
      lines.push(`complete -c ${name} ${at} -l ${quote(flag)}${value} -d ${quote(option.description)}`);
    }
  }
  return `${lines.join('\n')}\n`;
}

/** Single quotes for all three shells; a single quote itself is left out, none of our texts needs one. */
function quote(text: string): string {
  return `'${text.replaceAll("'", '')}'`;
}
