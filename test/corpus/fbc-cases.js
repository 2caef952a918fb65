import { existsSync, readFileSync, readdirSync } from 'node:fs';
import path from 'node:path';
import { opmate } from './command.js';
import { differenceOf } from './report.js';

/** Texts that show the inside of the reference's own parsers: verdict, names and positions count, not words. */
const guide = /%!|declcfg\.|Go struct|Go value|yaml:|json: offset/;

/** Small catalogs with one thing special or wrong each. */
export async function compareCases(corpus, report) {
  const folder = path.join(corpus, 'golden', 'fbc-cases');
  for (const name of readdirSync(folder).sort()) {
    const answer = (file) => path.join(folder, name, file);
    const input = `fbc-cases/${name}`;
    if (existsSync(answer('validate.txt'))) {
      const got = await opmate(['validate', input], corpus);
      report.check(
        `${input}/validate.txt`,
        verdictDifference(got, readFileSync(answer('validate.txt'), 'utf8')),
      );
    }
    for (const [file, flags] of [
      ['render.json', []],
      ['render.yaml', ['-o', 'yaml']],
    ]) {
      if (!existsSync(answer(file))) continue;
      const { stdout, stderr } = await opmate(['render', ...flags, input], corpus);
      const difference = differenceOf(stdout.toString(), readFileSync(answer(file), 'utf8'));
      report.check(`${input}/${file}`, difference && `${difference} ${stderr.split('\n')[0]}`);
    }
    if (existsSync(answer('render.error.txt'))) {
      const got = await opmate(['render', input], corpus);
      report.check(
        `${input}/render.error.txt`,
        errorDifference(got, readFileSync(answer('render.error.txt'), 'utf8')),
      );
    }
    if (existsSync(answer('list-channels.txt'))) {
      const got = await opmate(['alpha', 'list', 'channels', input], corpus);
      const shown = `exit ${got.exit}\n${got.stdout.toString()}`;
      report.check(
        `${input}/list-channels.txt`,
        differenceOf(shown.trimEnd(), readFileSync(answer('list-channels.txt'), 'utf8').trimEnd()),
      );
    }
  }
}

function verdictDifference(got, expected) {
  const [first, ...message] = expected.trimEnd().split('\n');
  if (`exit ${got.exit}` !== first)
    return `got exit ${got.exit}: ${got.stderr.split('\n')[0]}, wanted ${first}`;
  if (got.stdout.length > 0) return 'stdout is not empty';
  return missingLine(got.stderr, message);
}

function errorDifference(got, expected) {
  if (got.exit !== 1) return `got exit ${got.exit}`;
  if (got.stdout.length > 0) return 'stdout is not empty';
  return missingLine(
    got.stderr,
    expected
      .trimEnd()
      .replace(/^\S+ \S+ /, '')
      .split('\n'),
  );
}

function missingLine(stderr, message) {
  const lines = stderr.replace(/^error: /gm, '').split('\n');
  for (const line of message) {
    if (lines.includes(line)) continue;
    if (guide.test(message.join('\n')) && namesOf(line).every((name) => stderr.includes(name))) continue;
    return `stderr has no line ${JSON.stringify(line)}: ${JSON.stringify(stderr.slice(0, 300))}`;
  }
  return undefined;
}

/** What a message names: quoted names and numbers. */
function namesOf(line) {
  return line.match(/"[^"]+"|\boffset \d+|\bline \d+/g) ?? [];
}
