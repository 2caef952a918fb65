import { readFileSync, readdirSync } from 'node:fs';
import path from 'node:path';
import type { Command } from 'commander';
import { expect, it } from 'vitest';
import { createCommandLine } from '../../src/cli/program.js';
import { createWorld } from './cli/world.js';

const root = path.resolve(import.meta.dirname, '../..');
const commandLine = createCommandLine(createWorld(), 'opmate', {
  run: () => Promise.resolve(),
  onCommand: () => undefined,
  print: () => undefined,
});
const { program } = commandLine;
await commandLine.loadBelow(program, { deeply: true });

function filesOf(directory: string): string[] {
  return readdirSync(path.join(root, directory), { recursive: true, encoding: 'utf8' })
    .filter((name) => /\.(?:md|ya?ml|sh)$/.test(name))
    .map((name) => path.join(directory, name));
}

/** Options that a command takes, global ones included. */
function optionsOf(command: Command): Set<string> {
  const options = new Set(['--help', '-h']);
  for (let at: Command | null = command; at !== null; at = at.parent) {
    for (const { long, short } of at.options) for (const flag of [long, short]) if (flag) options.add(flag);
  }
  return options;
}

it.each(['README.md', 'CONTRIBUTING.md', ...filesOf('docs')])(
  'names commands and options that exist: %s',
  (file) => {
    const text = readFileSync(path.join(root, file), 'utf8').replace(/\\\n\s*/g, ' ');
    const unknown: string[] = [];
    // Code only: in prose the name of the project is followed by any word.
    for (const [, line = ''] of text.matchAll(/(?:^|[`$|&;(]) *opmate ([a-z][^`|;#\n]*)/gm)) {
      const words = line.trim().split(/\s+/);
      let command: Command = program;
      while (words[0] !== undefined) {
        const next = command.commands.find((sub) =>
          [sub.name(), ...sub.aliases()].includes(words[0] as string),
        );
        if (next === undefined) break;
        command = next;
        words.shift();
      }
      if (command === program) continue;
      const options = optionsOf(command);
      for (const word of words) {
        const flag = /^--?[a-zA-Z][\w.-]*/.exec(word)?.[0];
        if (flag !== undefined && !options.has(flag)) unknown.push(`opmate ${line}: ${flag}`);
      }
    }
    expect(unknown).toEqual([]);
  },
);
