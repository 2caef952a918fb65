import { readFileSync, readdirSync } from 'node:fs';
import path from 'node:path';
import { opmate } from './command.js';
import { differenceOf } from './report.js';

export async function compareConvertTemplate(corpus, report) {
  const folder = path.join(corpus, 'golden', 'convert-template');
  for (const file of readdirSync(folder).sort()) {
    const operator = file.replace(/\.basic\.yaml$/, '');
    const catalog = `catalogs/dev/${operator}`;
    const expected = readFileSync(path.join(folder, file), 'utf8');
    // The file is what upstream takes; the directory stands for the same.
    for (const reference of [`${catalog}/catalog.json`, catalog]) {
      const args = ['alpha', 'convert-template', 'basic', '-o', 'yaml', reference];
      const { stdout, stderr, exit } = await opmate(args, corpus);
      const difference = exit === 0 ? differenceOf(stdout.toString(), expected) : `exit ${exit}: ${stderr}`;
      report.check(`convert-template/${file}`, difference && `${reference}: ${difference}`);
    }
  }
}
