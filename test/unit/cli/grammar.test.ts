import { describe, expect, it } from 'vitest';
import type { AnyCommand } from '../../../src/cli/command/declaration.js';
import type { Flag } from '../../../src/cli/command/flags.js';
import { globalFlags } from '../../../src/cli/command/global-flags.js';
import type { CommandTree } from '../../../src/cli/command/tree.js';
import { commands } from '../../../src/cli/tree.js';

type Declared = { name: string; command: AnyCommand; flags: [string, Flag<unknown>][] };

async function declaredIn(tree: CommandTree, path: readonly string[] = []): Promise<Declared[]> {
  const all: Declared[] = [];
  for (const [word, node] of Object.entries(tree)) {
    const name = [...path, word];
    const command = (await node.load?.())?.command;
    const flags = Object.entries((command?.flags ?? {}) as Record<string, Flag<unknown>>);
    if (command !== undefined) all.push({ name: name.join(' '), command, flags });
    if (node.commands !== undefined) all.push(...(await declaredIn(node.commands, name)));
  }
  return all;
}

const declared = await declaredIn(commands);

/** Returns the flags of all commands that break a rule, as `catalog filter --to`. */
function breaking(rule: (key: string, flag: Flag<unknown>, name: string) => boolean): string[] {
  return declared.flatMap(({ name, flags }) =>
    flags.filter(([key, flag]) => !rule(key, flag, name)).map(([key]) => `${name} --${key}`),
  );
}

describe('the grammar of flags', () => {
  it('has formats only for -o and --output', () => {
    expect(
      breaking(
        (key, flag) =>
          (key === 'output') === (flag.short === 'o') && (key !== 'output' || flag.choices !== undefined),
      ),
    ).toEqual([]);
  });

  it('writes to a file or directory that --to names', () => {
    // --output-db is beside --to in registry migrate, where that is a schema version.
    const older = /^(?:out|outputDir|outputFile|directory|downloadFolder)$/;
    expect(breaking((key, { group }) => group !== 'Output' || !older.test(key))).toEqual([]);
  });

  it('selects by --package, --channel and --version, never by the plural', () => {
    // A switch selects nothing: oc-mirror's list releases --channels.
    const plural = /^(?:packages|channels|versions|packageName)$/;
    expect(breaking((key, { value }) => value === undefined || !plural.test(key))).toEqual([]);
  });

  it('takes several packages and channels, each as a list or repeatedly', () => {
    const one = ['catalog deprecate', 'catalog remove', 'mirror list operators', 'mirror list releases'];
    const isList = ({ value = '' }: Flag<unknown>): boolean => value.includes('…');
    expect(
      breaking(
        (key, flag, name) =>
          !['package', 'channel'].includes(key) ||
          isList(flag) ||
          one.includes(name) ||
          (key === 'package' && / (?:generate|build)$/.test(name)),
      ),
    ).toEqual([]);
  });

  it('leaves the short names of global flags alone', () => {
    const global = new Set(Object.values(globalFlags).map(({ short }: Flag<unknown>) => short));
    global.delete(undefined);
    // As in opm: -v of bundle unpack skips the validation.
    expect(breaking((_, { short }, name) => name.endsWith('unpack') || !global.has(short))).toEqual([]);
  });

  it('keeps each long and short name for one flag of a command', () => {
    for (const { name, flags } of declared) {
      const names = flags.flatMap(([key, { short, aliases = [] }]) => [
        key.replace(/[A-Z]/g, (letter) => `-${letter.toLowerCase()}`),
        ...(short === undefined ? [] : [short]),
        ...aliases,
      ]);
      expect([name, names.length]).toEqual([name, new Set(names).size]);
    }
  });

  it('names a flag of the command for values that are no choice', () => {
    for (const { name, flags } of declared) {
      for (const [, { otherwise }] of flags) {
        if (otherwise !== undefined)
          expect([name, Object.fromEntries(flags)]).toHaveProperty(`1.${otherwise}`);
      }
    }
  });
});
