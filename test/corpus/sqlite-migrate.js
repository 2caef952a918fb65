// A database of an old schema version: migrated, and rendered as it is, against opm v1.73.
import { copyFileSync, mkdtempSync, readFileSync, readdirSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { opmate } from './command.js';
import { differenceOf } from './report.js';
import { readTables, tablesDifference } from './tables.js';

export async function compareSqliteMigrate(corpus, report) {
  const folder = path.join(corpus, 'golden', 'sqlite-migrate');
  const directory = mkdtempSync(path.join(tmpdir(), 'opmate-corpus-'));
  const answer = (name) => readFileSync(path.join(folder, name), 'utf8');
  const environment = { TMPDIR: directory };
  try {
    const before = path.join(directory, 'index.db');
    const after = path.join(directory, 'after.db');
    copyFileSync(path.join(folder, 'old.db'), before);

    const migrated = await opmate(
      ['registry', 'migrate', before, '--output-db', after],
      directory,
      environment,
    );
    report.check(
      'sqlite-migrate/after.tables.json',
      migrated.exit === 0
        ? tablesDifference(JSON.parse(answer('after.tables.json')), readTables(after))
        : `exit ${migrated.exit}: ${migrated.stderr}`,
    );
    rmSync(after, { force: true });

    const rendered = await opmate(['render', before], directory, environment);
    report.check(
      'sqlite-migrate/render.json',
      rendered.exit === 0
        ? differenceOf(rendered.stdout.toString(), answer('render.json'))
        : `exit ${rendered.exit}: ${rendered.stderr}`,
    );

    // Neither has changed what it read, nor left anything.
    const same = readFileSync(before).equals(readFileSync(path.join(folder, 'old.db')));
    const left = readdirSync(directory).join();
    report.check(
      'sqlite-migrate/before.tables.json',
      !same || left !== 'index.db'
        ? `the input ${same ? 'is the same' : 'has changed'}, there is ${left}`
        : tablesDifference(JSON.parse(answer('before.tables.json')), readTables(before)),
    );
  } finally {
    rmSync(directory, { recursive: true, force: true });
  }
}
