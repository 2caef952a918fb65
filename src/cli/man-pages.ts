import { describeTree, environmentVariables, toSentences } from './command/loaded-tree.js';
import { exitStatus, exitStatusNote } from './exit-codes.js';

/**
 * Returns man pages by file name: `opmate.1`, and one for each command directly below it. The same tree results in the
 * same bytes; hidden commands and options are omitted.
 */
export async function manPages(version: string): Promise<Map<string, string>> {
  const { description, options, pages } = await describeTree();
  const main = [
    '.SH SYNOPSIS',
    '.B opmate',
    text('[options] command [arguments]'),
    '.SH COMMANDS',
    ...pages.flatMap((page) => ['.TP', `.BR opmate\\-${escape(page.name)} (1)`, text(page.description)]),
    '.SH GLOBAL OPTIONS',
    'Global options can be placed before or after the command.',
    ...termList('B', options),
    '.SH ENVIRONMENT',
    ...termList('B', environmentVariables),
    '.SH EXIT STATUS',
    ...termList('B', exitStatus),
    '.PP',
    text(exitStatusNote),
    '.SH SEE ALSO',
    seeAlso(pages.map(({ name }) => `opmate-${name}`)),
  ];
  const made = new Map([['opmate.1', createPage('opmate', version, description, main)]]);
  for (const { name, description, commands } of pages) {
    const isSelf = (command: string): boolean => command === `opmate ${name}`;
    const others = pages.filter((page) => page.name !== name).map((page) => `opmate-${page.name}`);
    const lines = [
      '.SH SYNOPSIS',
      ...commands.flatMap((command, index) => [
        ...(index === 0 ? [] : ['.br']),
        `.B ${escape(command.name)}`,
        text(command.usage),
      ]),
      '.SH DESCRIPTION',
      text(toSentences(description)),
      ...(commands.every((command) => isSelf(command.name)) ? [] : ['.SH COMMANDS']),
      ...commands.flatMap((command) => [
        ...(isSelf(command.name) ? [] : [`.SS ${escape(command.name)}`, text(command.description)]),
        ...termList('I', command.arguments),
        ...termList('B', command.options),
        ...(command.examples.length > 0 ? ['.PP', '.B Examples'] : []),
        ...command.examples.flatMap(([purpose, line]) => [
          '.PP',
          text(`${purpose}:`),
          '.RS 4',
          '.nf',
          text(line),
          '.fi',
          '.RE',
        ]),
      ]),
      '.SH SEE ALSO',
      seeAlso(['opmate', ...others]),
      '.PP',
      'Global options and exit codes are described in',
      '.BR opmate (1).',
    ];
    made.set(`opmate-${name}.1`, createPage(`opmate-${name}`, version, description, lines));
  }
  return made;
}

/** Returns a page without a date: the same version has the same page. */
function createPage(name: string, version: string, summary: string, lines: readonly string[]): string {
  const head = [
    `.TH ${quoted(name.toUpperCase())} 1 "" ${quoted(`opmate ${version}`)} "opmate manual"`,
    '.nh',
    '.ad l',
    '.SH NAME',
    `${escape(name)} \\- ${escape(summary.slice(0, 1).toLowerCase() + summary.slice(1))}`,
  ];
  return [...head, ...lines, ''].join('\n');
}

/** Returns a list of terms with their meanings; `font` is the macro for the terms. */
function termList(font: 'B' | 'I', terms: readonly (readonly string[])[]): string[] {
  return terms.flatMap(([term = '', meaning = '']) => ['.TP', `.${font} ${escape(term)}`, text(meaning)]);
}

function seeAlso(names: readonly string[]): string {
  return names
    .map((name, index) => `.BR ${escape(name)} (1)${index === names.length - 1 ? '' : ','}`)
    .join('\n');
}

/** Returns a line of text that does not start a request of roff. */
function text(plain: string): string {
  const line = escape(plain.replace(/\s+/g, ' ').trim());
  if (line === '') return '\\&';
  return /^[.']/.test(line) ? `\\&${line}` : line;
}

function quoted(plain: string): string {
  return `"${escape(plain).replaceAll('"', '""')}"`;
}

function escape(plain: string): string {
  return plain
    .replaceAll('\\', '\\e')
    .replaceAll('-', '\\-')
    .replaceAll('"', '\\(dq')
    .replaceAll('^', '\\(ha')
    .replaceAll('~', '\\(ti')
    .replaceAll('`', '\\(ga')
    .replace(/[^\x20-\x7e]/gu, (character) => {
      const code = character.codePointAt(0) as number;
      return code < 0x80 ? ' ' : `\\[u${code.toString(16).toUpperCase().padStart(4, '0')}]`;
    });
}
