// Compares `bundle generate` with the files and exit codes of `opm alpha bundle generate`.
import { cpSync, existsSync, mkdtempSync, readFileSync, readdirSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { opmate } from './command.js';
import { differenceOf } from './report.js';

const files = { 'annotations.yaml': 'metadata/annotations.yaml', 'bundle.Dockerfile': 'bundle.Dockerfile' };

export async function compareBundleGenerate(corpus, report) {
  const folder = path.join(corpus, 'golden', 'bundle-generate');
  for (const operator of readdirSync(folder).sort()) {
    const work = mkdtempSync(path.join(tmpdir(), 'opmate-corpus-'));
    try {
      cpSync(path.join(corpus, newestBundle(corpus, operator), 'manifests'), path.join(work, 'manifests'), {
        recursive: true,
      });
      for (const group of [['bundle'], ['alpha', 'bundle']]) {
        const args = [...group, 'generate', '-d', 'manifests', '-p', operator];
        const result = await opmate([...args, '-c', 'alpha,stable', '-e', 'stable'], work);
        const difference = differenceTo(path.join(folder, operator), work, result);
        report.check(`bundle-generate/${operator} (${group.join(' ')})`, difference);
        for (const made of Object.values(files)) rmSync(path.join(work, made), { force: true });
      }
    } finally {
      rmSync(work, { recursive: true });
    }
  }
}

/** Its directory, as the answers of `bundle-render` name it. */
function newestBundle(corpus, operator) {
  const folder = path.join(corpus, 'golden', 'bundle-render', operator);
  const text = readFileSync(path.join(folder, readdirSync(folder)[0]), 'utf8');
  return text.slice(2).split(' ', 1)[0];
}

function differenceTo(expected, work, { exit, stderr }) {
  const wanted = Number(readFileSync(path.join(expected, 'exit.txt'), 'utf8'));
  if (exit !== wanted) return `exit ${exit}, wanted ${wanted}: ${stderr}`;
  for (const [answer, made] of Object.entries(files)) {
    const file = path.join(work, made);
    const text = existsSync(file) ? readFileSync(file, 'utf8') : '';
    const difference = differenceOf(text, readFileSync(path.join(expected, answer), 'utf8'));
    if (difference !== undefined) return `${answer}: ${difference}`;
  }
  return undefined;
}
