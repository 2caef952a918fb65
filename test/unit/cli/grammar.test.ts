import { readFileSync, readdirSync } from 'node:fs';
import path from 'node:path';
import { describe, expect, it } from 'vitest';
import type { Argument } from '../../../src/cli/command/declaration.js';
import type { Flag } from '../../../src/cli/command/flags.js';
import { UsageError } from '../../../src/core/errors.js';
import { longName } from '../../../src/cli/command/command-line.js';
import { globalFlags } from '../../../src/cli/command/global-flags.js';
import { optionWords } from '../../../src/cli/reports/option-words.js';
import { projectRoot } from '../../support/command-line.js';
import { commandsIn } from './declared.js';

const declared = await commandsIn();

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

  it('names a place with --to, never a version or revision', () => {
    expect(
      // Promotion and updates lead from one version to another.
      breaking(
        (key, { value = '' }) => key !== 'to' || /file|directory|reference|registry/.test(value),
      ).filter((name) => !['repo promote --to', 'cluster upgrade --to'].includes(name)),
    ).toEqual([]);
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

  it('depends on flags, values and arguments of the command', () => {
    for (const { name, command, flags } of declared) {
      const known = new Map<string, Flag<unknown>>([...Object.entries(globalFlags), ...flags]);
      const words = ((command.arguments ?? []) as Argument[]).map(({ spec }) =>
        spec.replace(/[[<](.*?)(?:\.\.\.)?[\]>]/, '<$1>'),
      );
      const isKnown = (depended: string): boolean => {
        const [key = '', value] = depended.split('=');
        const choices = known.get(key)?.choices;
        return (
          words.includes(key) ||
          (known.has(key) && (value === undefined || choices?.includes(value) === true))
        );
      };
      for (const [key, { needs = [], excludes = [], requiredUnless = [] }] of flags) {
        const unknown = [needs, excludes, requiredUnless].flat().filter((depended) => !isKnown(depended));
        expect([name, key, unknown]).toEqual([name, key, []]);
      }
    }
  });

  it('describes each in at most 72 characters before its default', () => {
    expect(
      breaking(
        (_, { summary, hidden }) =>
          hidden === true || summary.replace(/(?: \(default.*|, repeatable)$/, '').length <= 72,
      ),
    ).toEqual([]);
  });

  it('states a default once, as it is typed', () => {
    expect(
      breaking(
        (_, { summary, choices, default: value, defaultText }) =>
          !summary.includes('(default') ||
          (choices === undefined &&
            (value === undefined || typeof value === 'boolean') &&
            defaultText === undefined),
      ),
    ).toEqual([]);
  });
});

describe('messages', () => {
  it('name flags and commands that exist', () => {
    const keys = [...Object.keys(globalFlags), ...declared.flatMap(({ flags }) => flags.map(([key]) => key))];
    const flags = new Set(keys.map(longName));
    const commands = declared.map(({ name }) => `opmate ${name} `);
    for (const words of Object.values(optionWords)) {
      for (const flag of words.match(/--[a-z-]+/g) ?? []) expect(flags).toContain(flag);
      // A group has no command of its own, and arguments follow one.
      const isKnown = commands.some((name) => name.startsWith(`${words} `) || `${words} `.startsWith(name));
      expect([words, isKnown]).toEqual([words, words.startsWith('opmate ')]);
    }
  });
});

describe('numbers', () => {
  const wrongNumbers = ['', '-2', '1.5', '1e3', '0x10', ' 1', '1,5', '9'.repeat(40), 'x'];
  const numbers = declared.flatMap(({ name, flags }) =>
    flags
      .filter(
        ([, { value = '', summary }]) =>
          /^<(?:count|n|bytes|port|seconds|ratio)>$/.test(value) && !/compatibility/.test(summary),
      )
      .map(([key, flag]) => [`${name} --${key}`, flag] as const),
  );
  const refusalOf = (flag: Flag<unknown>, text: string): string => {
    try {
      return `accepted as ${String(flag.parse?.(text, undefined, '--flag'))}`;
    } catch (error) {
      return error instanceof UsageError ? error.message : String(error);
    }
  };

  it.each([...numbers, ...Object.entries(globalFlags).filter(([key]) => /^max(?:Entries|Ratio)$/.test(key))])(
    'are refused alike by %s',
    (_, flag) => {
      for (const text of wrongNumbers) {
        expect(refusalOf(flag, text)).toMatch(/^--flag ".*": expected an integer from -?\d+ to \d+$/);
      }
    },
  );

  it.each(
    declared.flatMap(({ name, flags }) =>
      [...flags, ...Object.entries(globalFlags)]
        .filter(([, { value }]) => value === '<duration>')
        .map(([key, flag]) => [`${name} --${key}`, flag] as const),
    ),
  )('and durations by %s', (_, flag) => {
    for (const text of ['', '-5s', '1e3', '5 s', '1d', 'x', `${'9'.repeat(40)}h`]) {
      expect(refusalOf(flag, text)).toMatch(/^--flag ".*": expected a duration from \d+m?s? to \d+h$/);
    }
  });
});

describe('commands', () => {
  it('have a summary of one line that begins with a verb, and no full stop', () => {
    const wrong = declared.filter(
      ({ command: { summary } }) =>
        !/^[a-z]+(?:-[a-z]+)* [^\n]{0,100}[^.\n]$/.test(summary) || /^(?:a|an|the) /.test(summary),
    );
    expect(wrong.map(({ name, command }) => `${name}: ${command.summary}`)).toEqual([]);
  });

  it('do not import each other', () => {
    const root = path.join(projectRoot, 'src/cli');
    const modules = readdirSync(root, { recursive: true, encoding: 'utf8' }).filter((name) =>
      name.endsWith('.ts'),
    );
    const texts = new Map(modules.map((name) => [name, readFileSync(path.join(root, name), 'utf8')]));
    const isCommand = (name: string): boolean =>
      /^export const \w+ = defineCommand\(/m.test(texts.get(name) ?? '');
    expect(modules.filter(isCommand).length).toBeGreaterThan(60);
    const imports = modules.flatMap((name) =>
      [...(texts.get(name) ?? '').matchAll(/(?:from|import\()\s*'(\.[^']*)\.js'/g)].map(([, place = '']) => ({
        name,
        imported: `${path.join(path.dirname(name), place)}.ts`,
      })),
    );
    const wrong = imports.filter(({ name, imported }) => name !== 'tree.ts' && isCommand(imported));
    expect(wrong).toEqual([]);
  });

  it('declare their options once: no interface names flags again, and no value is cast to them', () => {
    for (const file of readdirSync(path.join(projectRoot, 'src/cli'), {
      recursive: true,
      encoding: 'utf8',
    })) {
      if (!file.endsWith('.ts')) continue;
      const text = readFileSync(path.join(projectRoot, 'src/cli', file), 'utf8');
      expect([file, /\boptions as\b|\bas \w*Options\b/.exec(text)?.[0]]).toEqual([file, undefined]);
    }
  });
});
