import { describe, expect, it } from 'vitest';
import { wrapExample } from '../../../src/cli/command/help-format.js';
import { run } from '../../../src/cli/main.js';
import { commandsIn } from './declared.js';
import { directoryWith } from '../../support/temporary.js';
import { createWorld } from './world.js';

const declared = await commandsIn();

const examplesIn = (text: string): number => text.match(/^ {2}# /gm)?.length ?? 0;

async function helpOf(...words: string[]): Promise<string> {
  const world = createWorld();
  expect([words, await run(words, world), world.stderr.text]).toEqual([words, 0, '']);
  return world.stdout.text;
}

/** Lines that are wider than a terminal and could be broken. */
function wideLines(text: string): string[] {
  return text.split('\n').filter((line) => line.length > 80 && line.trim().includes(' '));
}

describe('help', () => {
  it.each(declared.map(({ name }) => name).filter((name) => name !== '__complete'))(
    'of %s fits into 80 columns, with two to four examples',
    async (name) => {
      const text = await helpOf(...name.split(' '), '--help');
      expect(wideLines(text).filter((line) => !/^ {2,4}\S+(?: \\)?$/.test(line))).toEqual([]);
      const examples = text.match(/^ {2}# /gm) ?? [];
      expect(examples.length).toBeGreaterThanOrEqual(2);
      expect(examples.length).toBeLessThanOrEqual(4);
      expect(text).toMatch(/\nSee "opmate help options" for global options/);
    },
  );

  it.each([
    ['--help'],
    ['help', 'options'],
    ['help', 'versions'],
    ['help', 'exit-codes'],
    ['mirror', '--help'],
  ])('of %s %s fits into 80 columns', async (...words) => {
    expect(wideLines(await helpOf(...words.filter((word) => word !== undefined)))).toEqual([]);
  });

  it.each<[Record<string, string>, string]>([
    [{}, 'opmate list packages quay.io/operatorhubio/catalog:latest'],
    [{ 'manifests/a.yaml': '', 'metadata/b.yaml': '' }, 'opmate bundle validate .'],
    [{ 'operators/demo/ci.yaml': '' }, 'opmate repo check'],
    [{ 'set a.yaml': 'kind: ImageSetConfiguration\n' }, "opmate mirror plan -c 'set a.yaml' docker://"],
    [{ 'c.json': '{"schema":"olm.package","name":"a"}' }, 'opmate catalog doctor .'],
  ])('without a command says what to do next in a directory with %j', async (files, line) => {
    const world = { ...createWorld(), workingDirectory: await directoryWith(files) };
    expect(await run([], world)).toBe(0);
    expect(world.stdout.text).toContain(`\nNext, in this directory:\n`);
    expect(world.stdout.text).toContain(`  ${line}`);
  });

  const groups = new Set(
    declared
      .map(({ name }) => name.split(' ').slice(0, -1).join(' '))
      .filter((name) => name !== '' && !/^(?:alpha|bundle deployment)/.test(name)),
  );

  it.each(['', ...groups])('of the group "%s" has two to four examples of its commands', async (name) => {
    const text = await helpOf(...(name === '' ? [] : name.split(' ')), '--help');
    const lines = [...text.matchAll(/^ {2}# .*\n {2}(.*)$/gm)].map(([, line]) => line as string);
    expect(lines.length).toBeGreaterThanOrEqual(2);
    expect(lines.length).toBeLessThanOrEqual(4);
    for (const line of lines) expect(line.startsWith(`opmate ${name}`.trim())).toBe(true);
    const purposes = [...text.matchAll(/^ {2}# (.*)$/gm)].map(([, purpose]) => purpose);
    expect(new Set(purposes).size).toBe(purposes.length);
    if (name !== '') expect(text).not.toContain('display help');
  });

  const optionsIn = (text: string): string[] => text.match(/^ {2}(?:-\w, )?--[\w.-]+/gm) ?? [];
  const visible = declared.filter(({ name }) => !/^(?:__complete|alpha|bundle deployment)/.test(name));

  it('is longer than 40 lines only for ten options and two examples, and begins in lower case', async () => {
    const lines = await Promise.all(
      declared
        .filter(({ name }) => name !== '__complete')
        .map(async ({ name }) => [name, await helpOf(...name.split(' '), '--help')] as const),
    );
    const long = lines.filter(([, text]) => text.split('\n').length - 1 > 40);
    expect(long.filter(([, text]) => optionsIn(text).length > 10 || examplesIn(text) > 2)).toEqual([]);
    const summaries = [['', await helpOf('--help')] as const, ...lines];
    expect(summaries.filter(([, text]) => /^Usage: .*\n\n(?!OLM |OpenShift )[A-Z]/.test(text))).toEqual([]);
  });

  it.each(visible)('of $name shows at most twelve options where it is long', async ({ name, command }) => {
    const [short, long] = [
      await helpOf(...name.split(' '), '--help'),
      await helpOf(...name.split(' '), '--help-all'),
    ];
    if (long.split('\n').length > 41) expect(optionsIn(short).length).toBeLessThanOrEqual(12);
    const left = [
      [optionsIn(long).length - optionsIn(short).length, 'option'] as const,
      [examplesIn(long) - examplesIn(short), 'example'] as const,
    ].filter(([number]) => number > 0);
    const parts = left.map(([number, noun]) => `${number} more ${noun}${number === 1 ? '' : 's'}`);
    const note = `\nSee "opmate ${name} --help-all" for ${parts.join(' and ')}.\n`;
    expect([name, short.replace('--help-all"\nfor', '--help-all" for').includes(note)]).toEqual([
      name,
      left.length > 0,
    ]);
    expect(short.includes('--help-all')).toBe(left.length > 0);
    const keys = Object.keys((command.flags ?? {}) as object);
    for (const key of command.commonFlags ?? []) expect(keys).toContain(key);
  });

  it('lists the groups of options in one order, without --help, which is a global option', async () => {
    const order = [
      'Options',
      'Selection',
      'Input',
      'Output',
      'Behavior',
      'Cluster',
      'Server',
      'Registry',
      'Limits',
    ];
    for (const { name } of declared.filter((one) => one.name !== '__complete')) {
      const text = await helpOf(...name.split(' '), '--help');
      const headings = [...text.matchAll(/^([A-Z]\w+):$/gm)].map(([, heading]) => heading as string);
      const groups = headings.filter((heading) => order.includes(heading));
      expect([name, groups]).toEqual([name, order.filter((heading) => groups.includes(heading))]);
      expect(text).not.toContain('--help ');
    }
    expect(await helpOf('help', 'options')).toContain('-h, --help');
  });

  it('shows an example over several lines that a shell reads as one', () => {
    for (const { command } of declared) {
      for (const line of Object.values(command.examples ?? {})) {
        expect(
          wrapExample(line)
            .replace(/ \\\n {4}/g, ' ')
            .trim(),
        ).toBe(line);
      }
    }
  });

  it('marks required options', async () => {
    const marked = declared.filter(({ flags }) => flags.some(([, { isRequired }]) => isRequired === true));
    expect(marked.length).toBeGreaterThan(10);
    for (const { name, flags } of marked) {
      const text = (await helpOf(...name.split(' '), '--help')).replace(/\s+/g, ' ');
      for (const [, { summary, requiredUnless }] of flags.filter(([, item]) => item.isRequired === true)) {
        expect(text).toContain(`${summary} (required${requiredUnless === undefined ? ')' : ' unless '}`);
      }
    }
    expect((await helpOf('catalog', 'filter', '--help')).replace(/\s+/g, ' ')).toContain(
      '(required unless --output or --dry-run)',
    );
  });

  it('explains both forms of version ranges, and all exit codes', async () => {
    expect(await helpOf('help', 'versions')).toMatch(/blang[^]*Masterminds/);
    const codes = await helpOf('help', 'exit-codes');
    for (const code of [0, 1, 2, 3, 4, 130, 141]) expect(codes).toMatch(new RegExp(`^ {2}${code} `, 'm'));
  });
});
