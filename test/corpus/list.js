import { copyFileSync, mkdtempSync, readFileSync, readdirSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { opmate } from './command.js';
import { differenceOf } from './report.js';

const commands = {
  'list-packages': ['alpha', 'list', 'packages'],
  'list-channels': ['alpha', 'list', 'channels'],
  'list-bundles': ['alpha', 'list', 'bundles'],
  graph: ['alpha', 'render-graph'],
};

/** Calls `work` with a catalog directory that holds one operator's catalog. */
async function withCatalog(corpus, operator, work) {
  const directory = mkdtempSync(path.join(tmpdir(), 'opmate-corpus-'));
  try {
    const catalog = path.join(corpus, 'golden', 'sqlite', `${operator}.fbc.migrated.json`);
    copyFileSync(catalog, path.join(directory, 'catalog.json'));
    await work(directory);
  } finally {
    rmSync(directory, { recursive: true, force: true });
  }
}

export async function compareLists(corpus, report) {
  const folder = path.join(corpus, 'golden', 'list');
  for (const file of readdirSync(folder).sort()) {
    const [, operator, name] = /^(.*)\.([^.]+)\.txt$/.exec(file);
    await withCatalog(corpus, operator, async (directory) => {
      const { stdout, stderr } = await opmate([...commands[name], directory], corpus);
      const expected = readFileSync(path.join(folder, file), 'utf8');
      const difference = differenceOf(stdout.toString(), expected);
      report.check(`list/${file}`, difference && `${difference} ${stderr.split('\n')[0]}`);
    });
  }
}

export async function compareRenderYaml(corpus, report) {
  const folder = path.join(corpus, 'golden', 'render-yaml');
  for (const file of readdirSync(folder).sort()) {
    const operator = file.slice(0, -'.yaml'.length);
    await withCatalog(corpus, operator, async (directory) => {
      const { stdout } = await opmate(['render', '-o', 'yaml', directory], corpus);
      report.check(
        `render-yaml/${file}`,
        differenceOf(stdout.toString(), readFileSync(path.join(folder, file), 'utf8')),
      );
    });
  }
}
