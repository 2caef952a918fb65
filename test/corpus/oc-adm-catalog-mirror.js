// Compares `catalog mirror` with what `oc adm catalog mirror --manifests-only` wrote.
import { existsSync, readFileSync, readdirSync } from 'node:fs';
import path from 'node:path';
import { parseYaml } from '../../dist/document/yaml.js';
import { opmate } from './command.js';
import { withCatalogImage } from './images.js';
import { differenceOf } from './report.js';

const mirrorSets = ['imageContentSourcePolicy.yaml', 'imageDigestMirrorSet.yaml'];

export async function compareCatalogMirror(corpus, report) {
  await withCatalogImage(corpus, async ({ environment, directory }) => {
    const folder = path.join(corpus, 'golden', 'oc-adm-catalog-mirror');
    for (const name of readdirSync(folder).sort()) {
      const answer = path.join(folder, name);
      const [command, exit] = readFileSync(path.join(answer, 'command.txt'), 'utf8').trim().split(/\s*\n/);
      const out = path.join(directory, name);
      const args = command.split(/\s+/).slice(2);
      const flags = args.map((arg) => (arg.startsWith('--to-manifests=') ? `--to-manifests=${out}` : arg));
      const result = await opmate(flags, directory, environment);
      report.check(`oc-adm-catalog-mirror/${name}`, differenceFrom(answer, out, result, exit));
    }
  });
}

function differenceFrom(answer, out, { exit, stderr }, wantedExit) {
  if (`exit ${exit}` !== wantedExit) return `exit ${exit}, wanted ${wantedExit}: ${stderr}`;
  const files = readdirSync(answer).filter((file) => file !== 'command.txt');
  const got = existsSync(out) ? readdirSync(out).sort().join(' ') : 'nothing';
  if (got !== files.sort().join(' ')) return `wrote ${got}, wanted ${files.join(' ')}`;
  for (const file of files) {
    const [actual, expected] = [out, answer].map((place) => readFileSync(path.join(place, file), 'utf8'));
    const form = mirrorSets.includes(file) ? entriesOf : (text) => text;
    const difference = differenceOf(form(actual), form(expected));
    if (difference !== undefined) return `${file}: ${difference}`;
  }
  return undefined;
}

/** All documents of a mirror set as one sorted list of what they say, after what they have in common. */
function entriesOf(text) {
  const documents = text.split(/^---\n/m).filter((document) => document !== '');
  const lines = documents.flatMap((document, i) => {
    const { spec, metadata, ...kind } = parseYaml(document);
    const heads = JSON.stringify({ ...kind, metadata, fields: Object.keys(spec) });
    const entries = Object.values(spec).flat();
    return [`${i} ${heads}`, ...entries.map(({ source, mirrors }) => `${source} ${mirrors.join(' ')}`)];
  });
  return lines.sort().join('\n');
}
