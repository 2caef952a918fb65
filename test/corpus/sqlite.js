// `registry add` into a new database, an operator at a time, and `render` of it, against opm v1.73.
import { existsSync, readFileSync } from 'node:fs';
import path from 'node:path';
import { opmate } from './command.js';
import { withBundleImages } from './images.js';
import { compareRenderedDatabase } from './sqlite-render.js';
import { readTables, tablesDifference } from './tables.js';

const read = (file) => readFileSync(file, 'utf8');

export async function compareSqlite(corpus, report) {
  const folder = path.join(corpus, 'golden', 'sqlite');
  await withBundleImages(corpus, async ({ environment, directory }) => {
    for (const { op, mode, refs, exit } of JSON.parse(read(path.join(folder, 'summary.json')))) {
      const file = path.join(directory, `${op}.db`);
      const args = ['registry', 'add', '--mode', mode, '-b', refs.join(), '-d', file];
      const result = await opmate(args, directory, environment);
      if (exit === 0) {
        const tables = path.join(folder, `${op}.tables.json`);
        report.check(
          `sqlite/${op}.tables.json`,
          result.exit === 0
            ? tablesDifference(JSON.parse(read(tables)), readTables(file))
            : `exit ${result.exit}: ${result.stderr}`,
        );
        await compareRenderedDatabase(op, file, corpus, report, environment);
      } else {
        // The tables of a refusal hold what opm leaves half done; ours is not there at all.
        const answer = read(path.join(folder, `${op}.add.stderr.txt`));
        report.check(
          `sqlite/${op}.add.stderr.txt`,
          refusalDifference(result, exit, answer, existsSync(file)),
        );
      }
    }
  });
}

function refusalDifference({ exit, stderr }, wanted, answer, isThere) {
  if (exit !== wanted) return `exit ${exit}, wanted ${wanted}: ${stderr}`;
  if (isThere) return 'the database was made';
  const missing = namesIn(answer).filter((name) => !stderr.includes(name));
  return missing.length === 0 ? undefined : `${missing.join(', ')} not named in: ${stderr}`;
}

/** Bundles and images that a refusal names. */
function namesIn(text) {
  const patterns = [
    /add prunes bundle (\S+) \(/g,
    /add prunes bundle \S+ \(([^)]+)\)/g,
    /incorrect channel head \(([^,]+),/g,
    /failed to add bundle "([^"]+)"/g,
  ];
  const names = new Set(patterns.flatMap((pattern) => [...text.matchAll(pattern)].map(([, name]) => name)));
  if (names.size === 0) throw new Error(`a refusal without names: ${text}`);
  return [...names];
}
