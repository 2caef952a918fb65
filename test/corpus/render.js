import { createHash } from 'node:crypto';
import { readFileSync, readdirSync } from 'node:fs';
import path from 'node:path';
import { opmate } from './command.js';
import { withBundleImages } from './images.js';
import { differenceOf } from './report.js';

/** Version directories of an operator, ascending as the answers were made. */
export function versionsOf(corpus, operator) {
  const { compareVersions, parseTolerantVersion } = versionTools;
  return readdirSync(path.join(corpus, 'bundles', operator), { withFileTypes: true })
    .filter((entry) => entry.isDirectory())
    .map((entry) => entry.name)
    .sort((a, b) => compareVersions(parseTolerantVersion(a), parseTolerantVersion(b)));
}
const versionTools = await import('../../dist/core/semver.js');

export async function compareRenderDirectories(corpus, report) {
  const folder = path.join(corpus, 'golden', 'render-dir');
  const sums = readFileSync(path.join(folder, 'SHA256SUMS.txt'), 'utf8');
  for (const line of sums.split('\n').filter(Boolean)) {
    const [sum, length, exit, input] = line.split(/\s+/);
    const { exit: code, stdout, stderr } = await opmate(['render', input], corpus);
    const got = `${createHash('sha256').update(stdout).digest('hex')} ${stdout.length} exit=${code}`;
    const same = got === `${sum} ${length} ${exit}`;
    report.check(
      `render-dir/${input}`,
      same ? undefined : `got ${got} ${stderr.split('\n')[0]}, wanted ${sum} ${length} ${exit}`,
    );
  }
  await compareMigrated(
    corpus,
    report,
    'render-dir',
    (operator, version) => `bundles/${operator}/${version}`,
    [],
  );
}

export async function compareRenderImages(corpus, report) {
  await withBundleImages(corpus, async ({ environment }) => {
    const reference = (operator, version) =>
      `registry.test:5000/bundles/${operator}:${version.replaceAll('+', '_')}`;
    await compareMigrated(corpus, report, 'render-image', reference, ['--use-http'], environment);
  });
}

async function compareMigrated(corpus, report, folder, referenceOf, flags, environment) {
  for (const file of readdirSync(path.join(corpus, 'golden', folder)).sort()) {
    if (!file.endsWith('.migrated.json')) continue;
    const operator = file.slice(0, -'.migrated.json'.length);
    const references = versionsOf(corpus, operator).map((version) => referenceOf(operator, version));
    const { stdout, stderr, exit } = await opmate(
      ['render', ...flags, '--migrate', ...references],
      corpus,
      environment,
    );
    const expected = readFileSync(path.join(corpus, 'golden', folder, file), 'utf8');
    report.check(
      `${folder}/${file}`,
      exit === 0 ? differenceOf(stdout.toString(), expected) : `exit ${exit}: ${stderr}`,
    );
  }
}
