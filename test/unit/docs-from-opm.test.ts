import { readFile } from 'node:fs/promises';
import path from 'node:path';
import type { Command } from 'commander';
import { describe, expect, it } from 'vitest';
import { loadTree } from '../../src/cli/command/loaded-tree.js';
import { projectRoot } from '../support/command-line.js';

const page = await readFile(path.join(projectRoot, 'docs', 'from-opm.md'), 'utf8');
const commandLine = await loadTree();
const { program } = commandLine;

const commands = [...page.matchAll(/^\| `opm ([^`]+)` \| `opmate ([^`]+)`/gm)].map(
  ([, before, now]) => [before as string, now as string] as const,
);

function commandAt(words: string): Command | undefined {
  let at: Command | undefined = program;
  for (const word of words.split(' ')) at = at?.commands.find((sub) => sub.name() === word);
  return at;
}

describe('docs/from-opm.md', () => {
  it.each(commands)('leads from opm %s to opmate %s, which takes the same flags', (before, now) => {
    const flags = (words: string): string[] =>
      (commandAt(words)?.options ?? []).map((option) => option.long ?? option.flags).sort();
    expect(flags(before).length).toBeGreaterThan(0);
    expect(flags(now)).toEqual(expect.arrayContaining(flags(before)));
  });

  it('names every command that opm has', () => {
    const missing: string[] = [];
    const visit = (command: Command, words: readonly string[]): void => {
      const isOurs = words[0] === 'probe';
      if (command.commands.length === 0 && commandLine.findTool(command) === 'opm' && !isOurs) {
        const name = words.join(' ');
        if (!commands.some((row) => row.includes(name))) missing.push(name);
      }
      for (const sub of command.commands) visit(sub, [...words, sub.name()]);
    };
    visit(program, []);
    expect(missing).toEqual([]);
  });

  it('names the flags of opm that have no effect, and no others', () => {
    const named = [...page.matchAll(/^\| `(--[^`]+)` \| accepted/gm)].map(([, flag]) => flag as string);
    const idle = new Set<string>();
    const visit = (command: Command): void => {
      if (commandLine.findTool(command) === 'opm') {
        for (const { long, flags, description } of command.options) {
          if (!flags.includes('=') && /^(?:ignored|accepted)/.test(description)) idle.add(long ?? flags);
        }
      }
      command.commands.forEach(visit);
    };
    visit(program);
    expect(named.sort()).toEqual([...idle].sort());
  });
});
