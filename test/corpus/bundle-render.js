// Compares `bundle render` with the manifests, or the refusals, of operator-controller's own renderer.
import { readFileSync, readdirSync } from 'node:fs';
import path from 'node:path';
import { opmate } from './command.js';
import { differenceOf } from './report.js';

export async function compareBundleRender(corpus, report) {
  const folder = path.join(corpus, 'golden', 'bundle-render');
  for (const operator of readdirSync(folder).sort()) {
    for (const file of readdirSync(path.join(folder, operator)).sort()) {
      const text = readFileSync(path.join(folder, operator, file), 'utf8');
      const end = text.indexOf('\n') + 1;
      const result = await opmate(argumentsOf(text.slice(0, end)), corpus);
      const isRefused = file.endsWith('.error.txt');
      const difference = (isRefused ? refusalFrom : manifestsFrom)(result, text.slice(end));
      report.check(`bundle-render/${operator}/${file}`, difference);
    }
  }
}

/** The command for a first line such as `# DIR install-namespace=A watch-namespace=- cert-provider=none`. */
function argumentsOf(line) {
  const [directory, ...options] = line.slice(2).trim().split(' ');
  const flags = options.map((option) => `--${option}`).filter((flag) => flag !== '--watch-namespace=-');
  return ['bundle', 'render', directory, ...flags];
}

function manifestsFrom({ exit, stdout, stderr }, expected) {
  if (exit !== 0) return `exit ${exit}: ${stderr}`;
  return differenceOf(stdout.toString(), expected);
}

function refusalFrom({ exit, stdout, stderr }, expected) {
  if (exit !== 3) return `exit ${exit}, wanted 3`;
  if (stdout.length > 0) return 'wrote to stdout';
  const sentence = expected.replace(/^render: /, '').trim();
  return stderr.includes(sentence)
    ? undefined
    : `${JSON.stringify(stderr)} lacks ${JSON.stringify(sentence)}`;
}
