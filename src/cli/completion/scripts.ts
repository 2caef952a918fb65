import type { Command } from 'commander';
import { kindOfArgument, kindOfOption } from './words.js';

/** The shells that completion scripts are made for. */
export const shells = ['bash', 'zsh', 'fish'] as const;
/** One of `shells`. */
type Shell = (typeof shells)[number];

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
    /** Whether the value is a name from a catalog. */
    isName: boolean;
  }[];
  /** What the arguments may be, where that is a list. */
  values: readonly string[];
  /** Whether an argument may be a name from a catalog. */
  takesName: boolean;
}

/**
 * A completion script for the whole command tree. File names complete wherever no word of ours does. For names of
 * packages and channels it calls the hidden command `__complete`, only where the tree has a place for such a name.
 */
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
      isName: kindOfOption(option) !== undefined,
    })),
    values: command.registeredArguments.flatMap((argument) => argument.argChoices ?? []),
    takesName: command.registeredArguments.some((argument) => kindOfArgument(argument) !== undefined),
  };
  const below = command.commands.filter((sub) => node.commands.some((known) => known.name === sub.name()));
  return [node, ...below.flatMap((sub) => collect(sub, [...path, sub.name()]))];
}

/** The flags of a node whose value is a name, each with the path that it is typed after. */
function nameFlags(node: Node): string[] {
  return node.options
    .filter(({ isName }) => isName)
    .flatMap(({ flag, short }) => [flag, ...(short === undefined ? [] : [short])])
    .map((flag) => `${node.path.join(' ')} ${flag}`);
}

function namePaths(nodes: Node[]): string[] {
  return nodes.filter(({ takesName }) => takesName).map(({ path }) => path.join(' '));
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
  // bash takes words apart at "=" and ":"; `line` has them as they were typed, without the command itself.
  return `# bash completion for ${name}
_${name}() {
  local current=\${COMP_WORDS[COMP_CWORD]} path='' names='' joins='' flag word words i
  local -a line=()
  for ((i = 1; i <= COMP_CWORD; i++)); do
    word=\${COMP_WORDS[i]}
    if ((\${#line[@]})) && [[ $joins || $word == [:=]* ]]; then line[-1]+=$word; else line+=("$word"); fi
    if [[ $word == *[:=] ]]; then joins=1; else joins=; fi
    ((i < COMP_CWORD)) || break
    case "\${path:+$path }$word" in
      ${commands.join(' | ')}) path="\${path:+$path }$word" ;;
    esac
  done
  case "$path" in
${cases.join('\n')}
  esac
  flag=\${COMP_WORDS[COMP_CWORD - 1]}
  if [[ \${line[-1]} == --*=* ]]; then
    flag=\${line[-1]%%=*}
    [[ $current != = ]] || current=''
  fi
  case "$path $flag" in
${[...values, caseOf(nodes.flatMap(nameFlags), 'names=1')].join('\n')}
  esac
  if [[ \${line[-1]} != -* ]]; then
    case "$path" in
${caseOf(namePaths(nodes), 'names=1')}
    esac
  fi
  if [[ $names ]]; then
    mapfile -t COMPREPLY < <(command ${name} __complete -- "\${line[@]}" 2>/dev/null)
    ((\${#COMPREPLY[@]} == 0)) || return 0
  fi
  mapfile -t COMPREPLY < <(compgen -W "$words" -- "$current")
}
complete -o default -F _${name} ${name}
`;
}

/** A branch of `case` for any of these words, as bash and zsh have it. */
function caseOf(words: readonly string[], then: string): string {
  return `    ${words.length === 0 ? "''" : words.map(quote).join(' | ')}) ${then} ;;`;
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
  local -a commands options found
  local command_path='' names='' word
  for word in "\${(@)words[2,CURRENT-1]}"; do
    case "\${command_path:+$command_path }$word" in
      ${known.join('|')}) command_path="\${command_path:+$command_path }$word" ;;
    esac
  done
  case "$command_path" in
${cases.join('\n')}
  esac
  word=\${words[CURRENT-1]}
  [[ $PREFIX != --*=* ]] || word=\${PREFIX%%=*}
  case "$command_path $word" in
${caseOf(nodes.flatMap(nameFlags), 'names=1')}
  esac
  if [[ $PREFIX != -* ]]; then
    case "$command_path" in
${caseOf(namePaths(nodes), 'names=1')}
    esac
  fi
  if [[ -n $names ]]; then
    found=("\${(@f)$(command ${name} __complete -- "\${(@)words[2,CURRENT-1]}" "$PREFIX" 2>/dev/null)}")
    if [[ -n $found[1] ]]; then
      compset -P '--*='
      compadd -a found
      return
    fi
  fi
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
    `    if contains -- (string join ' ' -- $found $word) ${known.map(quote).join(' ')}`,
    '      set -a found $word',
    '    end',
    '  end',
    "  string join ' ' -- $found",
    'end',
    `function __${name}_names`,
    '  set -l words (commandline -opc)[2..-1]',
    `  command ${name} __complete -- $words (commandline -ct) 2>/dev/null`,
    'end',
  ];
  for (const node of nodes) {
    const at = `-n ${quote(`test (__${name}_path) = "${node.path.join(' ')}"`)}`;
    for (const sub of node.commands) {
      lines.push(`complete -c ${name} ${at} -f -a ${quote(sub.name)} -d ${quote(sub.description)}`);
    }
    for (const value of node.values) lines.push(`complete -c ${name} ${at} -f -a ${quote(value)}`);
    if (node.takesName) lines.push(`complete -c ${name} ${at} -a '(__${name}_names)'`);
    for (const option of node.options) {
      const choices = option.choices.length > 0 ? ` -x -a ${quote(option.choices.join(' '))}` : '';
      let value = option.takesValue && choices === '' ? ' -r' : choices;
      if (option.isName) value = ` -x -a '(__${name}_names)'`;
      const short = option.short === undefined ? '' : ` -s ${option.short.slice(1)}`;
      const flag = option.flag.replace(/^--/, '');
      lines.push(
        `complete -c ${name} ${at} -l ${quote(flag)}${short}${value} -d ${quote(option.description)}`,
      );
    }
  }
  return `${lines.join('\n')}\n`;
}

/** Single quotes for all three shells; a single quote itself is left out, none of our texts needs one. */
function quote(text: string): string {
  return `'${text.replaceAll("'", '')}'`;
}
