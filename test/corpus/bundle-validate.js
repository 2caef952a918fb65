// Compares `alpha bundle validate` with upstream's, plain and with operatorhub: the exit code, and the findings as a set.
import { readFileSync, readdirSync } from 'node:fs';
import path from 'node:path';
import { opmate } from './command.js';
import { withBundleImages } from './images.js';

export async function compareBundleValidate(corpus, report) {
  const folder = path.join(corpus, 'golden', 'bundle-validate');
  await withBundleImages(corpus, async ({ environment, directory }) => {
    for (const file of readdirSync(folder).sort()) {
      const [image, ...runs] = readFileSync(path.join(folder, file), 'utf8').split(/\n(?=## )/);
      for (const run of runs) {
        const [title, exit, ...lines] = run.split('\n');
        const flags = title.replace('## opm alpha bundle validate', '').trim().split(/\s+/);
        const args = ['alpha', 'bundle', 'validate', ...flags, '-t', image.trim()];
        const difference = differenceFrom(
          await opmate([...args, '--output', 'json'], directory, environment),
          Number(exit.replace('exit ', '')),
          lines,
        );
        report.check(`bundle-validate/${file} ${flags.slice(2).join(' ')}`.trim(), difference);
      }
    }
  });
}

function differenceFrom({ exit, stdout, stderr }, wantedExit, lines) {
  if (exit !== wantedExit) return `exit ${exit}, wanted ${wantedExit}: ${stderr}${stdout}`;
  const got = new Set(JSON.parse(stdout).findings.map(({ severity, message }) => `${severity}: ${message}`));
  const wanted = new Set(lines.flatMap(findingsOf));
  const missing = [...wanted].filter((one) => !got.has(one));
  const further = [...got].filter((one) => !wanted.has(one));
  if (missing.length > 0) return `${missing.length} missing, first ${missing[0]}`;
  return further.length > 0 ? `${further.length} too many, first ${further[0]}` : undefined;
}

/** The findings of a line: a warning of the log, or all errors. */
function findingsOf(line) {
  const warning = /^level=warning msg="((?:[^"\\]|\\.)*)"/.exec(line);
  if (warning !== null) return [`warning: ${JSON.parse(`"${warning[1]}"`)}`];
  const errors = /^Error: Bundle validation errors: (.*)$/.exec(line);
  return errors === null
    ? []
    : errors[1].split(/,(?=Error: )/).map((text) => `error: ${withoutValues(text)}`);
}

/** Without the values that are Go's own: structs and pointers, empty ones, and the field that is named once more. */
function withoutValues(text) {
  return text
    .replace(/^Error: /, '')
    .replace(/^Field ([^ ]+), Value .*?: (?=\1: )/, '')
    .replace(/^Value (?:\{[^}]*\})?: /, '');
}
