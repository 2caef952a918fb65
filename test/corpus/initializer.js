// Compares `registry init` with what initializer made of trees of package manifests.
import { mkdtempSync, readFileSync, readdirSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { opmate } from './command.js';
import { readTables, tablesDifference } from './tables.js';

export async function compareInitializer(corpus, report) {
  const folder = path.join(corpus, 'golden', 'initializer');
  const directory = mkdtempSync(path.join(tmpdir(), 'opmate-corpus-'));
  try {
    const operators = readdirSync(folder)
      .filter((name) => name.endsWith('.tables.json'))
      .map((name) => name.slice(0, -'.tables.json'.length));
    for (const operator of operators.sort()) {
      const file = path.join(directory, `${operator}.db`);
      const { exit, stderr } = await opmate(
        ['registry', 'init', '-m', `package-manifests/${operator}`, '-o', file],
        corpus,
      );
      const wanted = Number(readFileSync(path.join(folder, `${operator}.exit.txt`), 'utf8').match(/\d+/)[0]);
      const expected = JSON.parse(readFileSync(path.join(folder, `${operator}.tables.json`), 'utf8'));
      report.check(
        `initializer/${operator}`,
        exit === wanted
          ? tablesDifference(expected, readTables(file))
          : `got exit ${exit}, wanted ${wanted}: ${stderr.split('\n')[0]}`,
      );
    }
  } finally {
    rmSync(directory, { recursive: true, force: true });
  }
}
