// Compares the answers of answer.js with recorded ones, by the check.py that lies beside them.
import { spawnSync } from 'node:child_process';
import { existsSync } from 'node:fs';
import path from 'node:path';
import { fileURLToPath } from 'node:url';

const here = fileURLToPath(new URL('.', import.meta.url));

/** Recorded sets by folder, with the arguments of check.py that select one. */
const folders = {
  'olm-v0': {
    'olm-v0': (program) => ['--run', program],
    skew: (program) => ['--skew', program],
    cel: (program) => ['--cel', program],
  },
  'olm-v1': Object.fromEntries(
    ['bundle-cos', 'validation', 'probes', 'migration', 'cluster', 'extension'].map((set) => [
      set,
      (program) => ['--set', set, '--run', program],
    ]),
  ),
};

/** Returns the recorded sets of a corpus as FOLDER/SET. */
export function listRecordedSets(corpus) {
  return Object.entries(folders)
    .filter(([folder]) => existsSync(path.join(corpus, folder, 'check.py')))
    .flatMap(([folder, sets]) => Object.keys(sets).map((set) => ({ folder, set })));
}

/** Returns why a set is not compared; undefined if it was. */
export function compareRecordedSet(corpus, { folder, set }, report) {
  if (!existsSync(path.join(here, 'answers', `${set}.js`))) return 'nothing answers it yet';
  const directory = path.join(corpus, folder);
  // check.py of olm-v1 appends the name of the set itself.
  const program = [process.execPath, path.join(here, 'answer.js'), ...(folder === 'olm-v0' ? [set] : [])]
    .map((word) => `'${word.replaceAll("'", String.raw`'\''`)}'`)
    .join(' ');
  const where = folder === 'olm-v0' ? ['--dir', directory] : [directory];
  const args = [path.join(directory, 'check.py'), ...where, ...folders[folder][set](program)];
  const { error, status, stdout, stderr } = spawnSync('python3', [...args, '--show', '1000000'], {
    encoding: 'utf8',
    maxBuffer: 1024 * 1024 * 1024,
    env: { ...process.env, BUNDLES: path.join(corpus, 'bundles'), PLAN_ROOT: corpus },
  });
  if (error?.code === 'ENOENT') return 'python3 not found';
  const result = readResult(stdout ?? '');
  if (result === undefined) {
    report.check(`${folder}/${set}`, `check.py ended with ${status}: ${stderr?.trim().split('\n').at(-1)}`);
    return undefined;
  }
  for (const [id, difference] of result.differences) report.check(`${folder}/${set}/${id}`, difference);
  for (let matched = result.total - result.differences.size; matched > 0; matched--) {
    report.check(`${folder}/${set}`, undefined);
  }
  return undefined;
}

/** Reads what check.py prints: the ids of differing cases, each with details below it, and a total. */
function readResult(text) {
  const differences = new Map();
  let total;
  let id;
  for (const line of text.split('\n')) {
    const counted = /^[a-z-]+: \d+\/(\d+)(?: agree|$)/.exec(line) ?? /^TOTAL +(\d+) /.exec(line);
    const named = /^--- (\S+)/.exec(line) ?? /^([\w.-]+)$/.exec(line);
    if (counted !== null) total = Number(counted[1]);
    else if (named !== null) {
      id = named[1];
      differences.set(id, '');
    } else if (line.startsWith(' ') && differences.get(id) === '') {
      differences.set(id, line.trim().slice(0, 240));
    }
  }
  return total === undefined ? undefined : { differences, total };
}
