/** Shells with a completion script. */
export const shells = ['bash', 'zsh', 'fish'] as const;
/** One of `shells`. */
type Shell = (typeof shells)[number];

/** Returns a completion script, which calls the hidden command `__complete` for candidates. */
export function completionScript(shell: Shell, name: string): string {
  return { bash: bashScript, zsh: zshScript, fish: fishScript }[shell](name);
}

// bash takes words apart at "=" and ":"; `line` has them as they were typed, without the command itself.
function bashScript(name: string): string {
  return `# bash completion for ${name}
_${name}() {
  local joins='' word i
  local -a line=() found=()
  COMPREPLY=()
  for ((i = 1; i <= COMP_CWORD; i++)); do
    word=\${COMP_WORDS[i]}
    if ((\${#line[@]})) && [[ $joins || $word == [:=]* ]]; then line[-1]+=$word; else line+=("$word"); fi
    if [[ $word == *[:=] ]]; then joins=1; else joins=; fi
  done
  mapfile -t found < <(command ${name} __complete -- "\${line[@]}" 2>/dev/null)
  ((\${#found[@]})) || return 0
  case \${found[-1]} in
    :files) compopt -o default ;;
    :directories) compopt -o dirnames ;;
  esac
  unset 'found[-1]'
  COMPREPLY=("\${found[@]%%$'\\t'*}")
}
complete -F _${name} ${name}
`;
}

function zshScript(name: string): string {
  return `#compdef ${name}
_${name}() {
  local -a found offered
  local line word
  found=("\${(@f)$(command ${name} __complete -- "\${(@)words[2,CURRENT-1]}" "$PREFIX" 2>/dev/null)}")
  (( \${#found} )) || return 1
  for line in "\${(@)found[1,-2]}"; do
    word=\${\${line%%$'\\t'*}//:/\\\\:}
    offered+=("$word\${\${line#*$'\\t'}:+:\${line#*$'\\t'}}")
  done
  compset -P '--*='
  (( \${#offered} )) && _describe 'completion' offered
  case $found[-1] in
    :files) _files ;;
    :directories) _path_files -/ ;;
  esac
}
if [[ $funcstack[1] == _${name} ]]; then _${name} "$@"; else compdef _${name} ${name}; fi
`;
}

function fishScript(name: string): string {
  return `# fish completion for ${name}
function __${name}_complete
  set -l token (commandline -ct)
  set -l words (commandline -opc)
  set -l found (command ${name} __complete -- $words[2..-1] $token 2>/dev/null)
  set -q found[1]; or return
  set -l flag ''
  set -l value "$token"
  if string match -qr '^--[^=]+=' -- $token
    set flag (string replace -r '=.*' '=' -- $token)
    set value (string replace -r '^[^=]*=' '' -- $token)
  end
  for line in $found[1..-2]
    printf '%s\\n' "$flag$line"
  end
  set -l paths
  switch $found[-1]
    case ':files'
      set paths (__fish_complete_path "$value")
    case ':directories'
      set paths (__fish_complete_directories "$value" '')
  end
  for line in $paths
    printf '%s\\n' "$flag$line"
  end
end
complete -c ${name} -f -a '(__${name}_complete)'
`;
}
