// Compares opmate with the answers of a corpus directory: every answer there is for the commands that exist.
// Usage: OPMATE_CORPUS=DIR npm run test:corpus [-- FOLDER…]
import { existsSync, readdirSync } from 'node:fs';
import path from 'node:path';
import { Report } from './report.js';
import { compareBundleGenerate } from './bundle-generate.js';
import { compareBundleRender } from './bundle-render.js';
import { compareBundleValidate } from './bundle-validate.js';
import { compareCatalogs } from './catalogs.js';
import { compareCrdUpgrade } from './crd-upgrade.js';
import { compareConvertTemplate } from './convert-template.js';
import { compareCases } from './fbc-cases.js';
import { compareGraphql } from './graphql.js';
import { compareGrpc } from './grpc.js';
import { compareInitializer } from './initializer.js';
import { compareLists, compareRenderYaml } from './list.js';
import { compareMirrorExtra } from './mirror-extra.js';
import { comparePipelines } from './pipelines.js';
import { compareOcMirror } from './oc-mirror.js';
import { compareRenderDirectories, compareRenderImages } from './render.js';
import { compareCatalogMirror } from './oc-adm-catalog-mirror.js';
import { compareRandomPlans } from './random-plans.js';
import { compareRecordedSet, listRecordedSets } from './recorded-sets.js';
import { compareSqliteCombined } from './sqlite-combined.js';
import { compareSqliteMigrate } from './sqlite-migrate.js';
import { compareSqlite } from './sqlite.js';
import { compareTemplateBasic } from './template-basic.js';
import { compareTemplateSemver } from './template-semver.js';
import { compareVectors } from './vectors.js';

/** Answer folders and what compares them, in the order in which they are run. */
const comparers = {
  vectors: compareVectors,
  'bundle-generate': compareBundleGenerate,
  'bundle-render': compareBundleRender,
  'bundle-validate': compareBundleValidate,
  'crd-upgrade': compareCrdUpgrade,
  'render-dir': compareRenderDirectories,
  'render-image': compareRenderImages,
  'fbc-cases': compareCases,
  'catalogs-v4.18.tsv': compareCatalogs,
  list: compareLists,
  'render-yaml': compareRenderYaml,
  initializer: compareInitializer,
  'oc-adm-catalog-mirror': compareCatalogMirror,
  sqlite: compareSqlite,
  'sqlite-combined': compareSqliteCombined,
  'sqlite-migrate': compareSqliteMigrate,
  'oc-mirror': compareOcMirror,
  graphql: compareGraphql,
  grpc: compareGrpc,
  'template-semver': compareTemplateSemver,
  'template-basic': compareTemplateBasic,
  'convert-template': compareConvertTemplate,
};

const corpus = process.env.OPMATE_CORPUS;
if (corpus === undefined || !existsSync(path.join(corpus, 'golden'))) {
  console.error('OPMATE_CORPUS must name a directory with golden/ and the inputs that it answers');
  process.exit(2);
}

const wanted = process.argv.slice(2);
const report = new Report();
for (const name of readdirSync(path.join(corpus, 'golden')).sort()) {
  if (wanted.length > 0 && !wanted.includes(name)) continue;
  const compare = comparers[name];
  if (compare === undefined) {
    console.log(`${name}: not compared, its commands do not exist yet`);
    continue;
  }
  const start = performance.now();
  await compare(path.resolve(corpus), report);
  report.folder(name, (performance.now() - start) / 1000);
}
// Answers that lie beside golden/, with what they need.
const beside = {
  'mirror-extra/helm': (...given) => compareMirrorExtra('helm', ...given),
  pipelines: comparePipelines,
  'mirror-extra/platform': (...given) => compareMirrorExtra('platform', ...given),
  'olm-v0': compareRandomPlans,
};
for (const [name, compare] of Object.entries(beside)) {
  if (!existsSync(path.join(corpus, name)) || (wanted.length > 0 && !wanted.includes(name))) continue;
  const start = performance.now();
  await compare(path.resolve(corpus), report);
  report.folder(name, (performance.now() - start) / 1000);
}
for (const recorded of listRecordedSets(path.resolve(corpus))) {
  const name = `${recorded.folder}/${recorded.set}`;
  if (wanted.length > 0 && !wanted.some((one) => one === name || one === recorded.folder)) continue;
  const start = performance.now();
  const omitted = compareRecordedSet(path.resolve(corpus), recorded, report);
  if (omitted === undefined) report.folder(name, (performance.now() - start) / 1000);
  else console.log(`${name}: not compared, ${omitted}`);
}
const unneeded = wanted.length > 0 ? [] : report.unneeded();
for (const answer of unneeded)
  console.log(`${answer}: matches now; remove it from test/corpus/exceptions.json`);
const failed = report.failed + unneeded.length;
console.log(`${report.passed} passed, ${failed} failed`);
process.exitCode = failed === 0 ? 0 : 1;
