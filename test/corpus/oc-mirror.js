// `mirror --config … --dry-run` against oc-mirror v2, on the catalog of `catalogs/dev` as an image.
import { existsSync, readFileSync, readdirSync } from 'node:fs';
import path from 'node:path';
import { parseYaml } from '../../dist/document/yaml.js';
import { opmate } from './command.js';
import { withCatalogImage } from './images.js';
import { differenceOf } from './report.js';

const read = (file) => readFileSync(file, 'utf8');

/** The registry of oc-mirror's own cache: ours has none. */
const cache = 'docker://localhost:55017/';

export async function compareOcMirror(corpus, report) {
  const folder = path.join(corpus, 'golden', 'oc-mirror');
  await withCatalogImage(corpus, async ({ digest, ...world }) => {
    for (const name of readdirSync(folder))
      await compareCase(name, path.join(folder, name), digest, report, world);
  });
}

async function compareCase(name, folder, digest, report, { directory, environment }) {
  const config = path.join(folder, 'imageset-config.yaml');
  const target = 'docker://registry.test:5001/ocm';
  const args = ['mirror', '--config', config, target, '--dry-run', '--workspace', `file://${name}`];
  const result = await opmate(args, directory, environment);
  const exit = Number(read(path.join(folder, 'exit.txt')));
  const stderr = result.exit === exit ? undefined : `exit ${result.exit}: ${result.stderr}`;
  report.check(`oc-mirror/${name}/exit.txt`, stderr);
  if (stderr !== undefined) return;
  const working = path.join(directory, name, 'working-dir');
  report.check(
    `oc-mirror/${name}/mapping.txt`,
    mappingDifference(
      read(path.join(working, 'dry-run', 'mapping.txt')),
      read(path.join(folder, 'mapping.txt')),
      digest,
    ),
  );
  const resources = path.join(working, 'cluster-resources');
  const wanted = readdirSync(folder).filter((file) => /^(cs|cc|idms|itms)-/.test(file));
  for (const file of new Set([...wanted, ...readdirSync(resources)])) {
    report.check(
      `oc-mirror/${name}/${file}`,
      resourceDifference(path.join(resources, file), path.join(folder, file)),
    );
  }
}

function mappingDifference(actual, answer, digest) {
  // The catalog's image was made anew, so its digest is another one.
  const recorded = answer.replaceAll(/(catalogs\/dev@)sha256:[0-9a-f]{64}/g, `$1${digest}`);
  const wanted = linesOf(recorded).filter((line) => !rightOf(line).startsWith(cache));
  // What comes from the cache was put there by oc-mirror itself: the rebuilt catalog.
  const cached = wanted.filter((line) => line.startsWith(cache)).map(rightOf);
  const lines = linesOf(actual);
  const own = lines.filter((line) => cached.includes(rightOf(line)));
  if (own.length !== cached.length) return `wanted ${cached.join(' ')}, got ${own.join(' ')}`;
  const foreign = own.filter(
    (line) => !line.startsWith(`docker://registry.test:5000/catalogs/dev@${digest}=`),
  );
  if (foreign.length > 0) return `not the pinned source: ${foreign.join(' ')}`;
  const rest = (all) => all.filter((line) => !cached.includes(rightOf(line))).join('\n');
  return actual === `${[...lines].sort().join('\n')}\n`
    ? differenceOf(rest(lines), rest(wanted))
    : 'the lines are not sorted';
}

const linesOf = (text) => text.split('\n').filter((line) => line !== '');
const rightOf = (line) => line.slice(line.indexOf('=docker://') + 1);

function resourceDifference(actual, answer) {
  if (!existsSync(answer)) return 'there is no such file in the answer';
  if (!existsSync(actual)) return 'was not written';
  return differenceOf(comparable(read(actual)), comparable(read(answer)));
}

/** Documents without annotations, the entries of mirror sets sorted: their order is random upstream. */
function comparable(text) {
  const documents = text
    .split(/^---\n/m)
    .filter((part) => part.trim() !== '')
    .map((part) => {
      const document = parseYaml(part);
      delete document.metadata.annotations;
      for (const list of [document.spec.imageDigestMirrors, document.spec.imageTagMirrors])
        list?.sort((a, b) => (a.source < b.source ? -1 : 1));
      return JSON.stringify(document, null, 1);
    });
  return documents.sort().join('\n');
}
