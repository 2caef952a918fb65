// `render --migrate` of a database, against what opm v1.73 made of the same rows.
import { existsSync, readFileSync } from 'node:fs';
import path from 'node:path';
import { opmate } from './command.js';
import { differenceOf } from './report.js';

/**
 * Compares the rendering of an operator's database with the answer. Where opm refused to render it, opmate
 * must refuse too, print nothing, and name the same stranded bundles.
 */
export async function compareRenderedDatabase(operator, databaseFile, corpus, report, environment = {}) {
  const answer = (suffix) => path.join(corpus, 'golden', 'sqlite', `${operator}.${suffix}`);
  const rendered = answer('fbc.migrated.json');
  if (!existsSync(rendered)) return;
  const { exit, stdout, stderr } = await opmate(
    ['render', '--migrate', path.basename(databaseFile)],
    path.dirname(databaseFile),
    environment,
  );
  const check = (difference) => report.check(`sqlite/${path.basename(rendered)}`, difference);
  const expected = readFileSync(rendered, 'utf8');
  const refusal = answer('render.stderr.txt');
  if (!existsSync(refusal) && expected !== '') {
    check(exit === 0 ? differenceOf(stdout.toString(), expected) : `exit ${exit}: ${stderr}`);
    return;
  }
  if (exit !== 1 || stdout.length > 0) {
    check(`exit ${exit} with ${stdout.length} bytes; the answer is a refusal`);
    return;
  }
  const said = existsSync(refusal) ? readFileSync(refusal, 'utf8') : '';
  const lines = said.match(/(?:invalid (?:index|package|channel|bundle)|stranded bundles).*$/gm) ?? [];
  const missing = lines.find((line) => !stderr.includes(line));
  check(missing && `stderr lacks ${JSON.stringify(missing)}: ${stderr.slice(0, 300)}`);
}
