// Renders the templates of a folder of answers: as alpha render-template with and without a type, and as template render.
import { readFileSync, readdirSync } from 'node:fs';
import path from 'node:path';
import { opmate } from './command.js';
import { withBundleImages } from './images.js';
import { differenceOf } from './report.js';

const flags = ['-o', 'yaml', '--migrate-level', 'all'];

export async function compareTemplates(corpus, report, name, type) {
  const folder = path.join(corpus, 'golden', name);
  await withBundleImages(corpus, async ({ environment }) => {
    for (const file of readdirSync(folder).sort()) {
      if (!file.endsWith('.template.yaml')) continue;
      const answer = file.replace('.template.yaml', '.out.yaml');
      const template = path.join(folder, file);
      const expected = readFileSync(path.join(folder, answer), 'utf8');
      const command = ['alpha', 'render-template'];
      for (const args of [[...command, type], command, ['template', 'render']]) {
        const { stdout, stderr, exit } = await opmate([...args, template, ...flags], corpus, environment);
        const difference = exit === 0 ? differenceOf(stdout.toString(), expected) : `exit ${exit}: ${stderr}`;
        report.check(`${name}/${answer}`, difference && `${args.join(' ')}: ${difference}`);
      }
    }
  });
}
