import { createHash } from 'node:crypto';
import { readFileSync } from 'node:fs';
import path from 'node:path';
import { opmate } from './command.js';

/** The command of each column. */
const commands = {
  'render-json': ['render'],
  'render-yaml': ['render', '-o', 'yaml'],
  'render-migrate-json': ['render', '--migrate'],
  validate: ['validate'],
  'list-channels': ['alpha', 'list', 'channels'],
  'list-bundles': ['alpha', 'list', 'bundles'],
  'render-graph': ['alpha', 'render-graph'],
};

/** Real catalogs: exit code, digest and length of what each command prints. */
export async function compareCatalogs(corpus, report) {
  const table = readFileSync(path.join(corpus, 'golden', 'catalogs-v4.18.tsv'), 'utf8');
  const [header, ...rows] = table
    .split('\n')
    .filter(Boolean)
    .map((line) => line.split('\t'));
  for (const [operator, ...answers] of rows) {
    for (const [index, expected] of answers.entries()) {
      const column = header[index + 1];
      const { exit, stdout, stderr } = await opmate(
        [...commands[column], `catalogs/v4.18/${operator}`],
        corpus,
      );
      const got = `${exit}:${createHash('sha256').update(stdout).digest('hex')}:${stdout.length}`;
      const difference =
        got === expected ? undefined : `got ${got} ${stderr.split('\n')[0]}, wanted ${expected}`;
      report.check(`catalogs-v4.18.tsv/${operator}/${column}`, difference);
    }
  }
}
