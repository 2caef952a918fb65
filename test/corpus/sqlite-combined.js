// An index of several packages, and the commands that change it, against what opm v1.73 left behind.
import { copyFileSync, readFileSync, readdirSync, rmSync } from 'node:fs';
import path from 'node:path';
import { opmate } from './command.js';
import { withBundleImages } from './images.js';
import { readTables, tablesDifference } from './tables.js';

const suffix = '.command.txt';

export async function compareSqliteCombined(corpus, report) {
  const folder = path.join(corpus, 'golden', 'sqlite-combined');
  const tablesOf = (name) => JSON.parse(readFileSync(path.join(folder, `${name}.tables.json`), 'utf8'));
  await withBundleImages(corpus, async ({ environment, directory }) => {
    const file = path.join(directory, 'index.db');
    report.check('sqlite-combined/base.tables.json', await rebuild(folder, file, environment));
    for (const entry of readdirSync(folder).sort()) {
      if (!entry.endsWith(suffix)) continue;
      const name = entry.slice(0, -suffix.length);
      const [command, code, ...answer] = readFileSync(path.join(folder, entry), 'utf8').split('\n');
      copyFileSync(path.join(folder, 'index.db'), file);
      const result = await opmate(command.split(' ').slice(1), directory, environment);
      const wanted = Number(code.replace('exit ', ''));
      const difference =
        refusalDifference(result, wanted, answer.join('\n')) ??
        tablesDifference(tablesOf(name), readTables(file));
      report.check(`sqlite-combined/${name}`, difference);
    }
  });
}

/** Adds all bundles in the steps in which opm added them, to a new database. */
async function rebuild(folder, file, environment) {
  const steps = JSON.parse(readFileSync(path.join(folder, 'steps.json'), 'utf8'));
  for (const { op, mode, refs } of steps) {
    const args = ['registry', 'add', '--mode', mode, '-b', refs.join(), '-d', file];
    const { exit, stderr } = await opmate(args, path.dirname(file), environment);
    if (exit !== 0) return `${op}: exit ${exit}: ${stderr}`;
  }
  const expected = JSON.parse(readFileSync(path.join(folder, 'base.tables.json'), 'utf8'));
  const difference = tablesDifference(expected, readTables(file));
  rmSync(file);
  return difference;
}

/** What a refusal does not name of what opm names: the package or the image, and what is the matter with it. */
function refusalDifference({ exit, stderr }, wanted, answer) {
  if (exit !== wanted) return `exit ${exit}, wanted ${wanted}: ${stderr}`;
  const patterns = [
    /no package found for packagename \S+?(?=")/,
    /Bundle \S+ already exists/,
    /error deprecating bundle \S+: [^"]+/,
  ];
  const missing = patterns
    .map((pattern) => pattern.exec(answer)?.[0])
    .filter((words) => words !== undefined && !stderr.includes(words));
  return missing.length === 0 ? undefined : `${missing.join(', ')}: not in: ${stderr}`;
}
