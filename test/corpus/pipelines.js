// What CI of catalogs does, by opmate's commands: writes what check.py compares, for every case that there is.
// Usage: node test/corpus/pipelines.js DIR --write OUT [FAMILY…]
import { spawn } from 'node:child_process';
import {
  cpSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  readdirSync,
  rmSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { pathToFileURL } from 'node:url';
import { layerOf } from '../../dist/archive/tar-writer.js';
import { buildImage, pushImage } from '../../dist/oci/image/image-builder.js';
import { pullImage } from '../../dist/api/images/pull-image.js';
import { openSession, parseReference, startRegistry } from '../../dist/index.js';
import { openTarget } from '../../dist/oci/image/open.js';
import { opmate } from './command.js';

/** Families in the order in which they are written; each function writes the cases of one. */
const families = {
  'make-catalogs': writeMakeCatalogs,
  'make-catalogs-small': writeMakeCatalogsSmall,
  release: writeRelease,
  promote: writePromote,
  onboard: writeOnboard,
  changes: writeChanges,
  checks: writeChecks,
  'validate-fbc': writeValidateFbc,
  pruning: writePruning,
  fips: writeFips,
  iib: writeIib,
  versions: writeVersions,
};

/** A line of check.py: family, case, and what differs. */
const differing =
  /^DIFFERS (.+?) ((?:missing|bytes|fails|result|unread|values|no |wanted|verdict|findings|images|related|unreleased|compared|error|bundles|triage|failures|errors|unexpected).*)$/gm;

/** Compares the families that have functions, and reports each case that differs. */
export async function comparePipelines(corpus, report) {
  const half = path.join(corpus, 'pipelines');
  const out = mkdtempSync(path.join(tmpdir(), 'opmate-pipelines-'));
  try {
    const names = Object.keys(families).filter((name) => existsSync(path.join(half, name)));
    await writeFamilies(half, out, names);
    for (const name of names) {
      const script = path.join(half, 'check.py');
      const output = await run('python3', [script, half, '--actual', out, name, '--show', '1000']);
      const [, matched, total] = /^(\d+)\/(\d+)$/m.exec(output.stdout) ?? [];
      if (total === undefined) report.check(`pipelines/${name}`, output.stderr.trim().split('\n').at(-1));
      for (const [, answer, fault] of output.stdout.matchAll(differing))
        report.check(`pipelines/${answer}`, fault);
      for (let index = 0; index < Number(matched); index++) report.check(`pipelines/${name}/${index}`);
    }
  } finally {
    rmSync(out, { recursive: true, force: true });
  }
}

/** Writes what the commands make of the cases of `half` below `out`. */
async function writeFamilies(half, out, names) {
  await withImages(half, async (world) => {
    for (const name of names) await families[name]({ half, out, ...world });
  });
}

/** Runs `work` with the images of `half` in an embedded registry, which commands reach under their own names. */
async function withImages(half, work) {
  const directory = mkdtempSync(path.join(tmpdir(), 'opmate-pipelines-'));
  const registry = await startRegistry({ directory: path.join(directory, 'registry') });
  try {
    const { host } = new URL(registry.url);
    const pushed = await run('python3', [path.join(half, 'push.py'), half, host]);
    if (pushed.code !== 0) throw new Error(`push.py: ${pushed.stdout}${pushed.stderr}`);
    const images = readFileSync(path.join(half, 'images.tsv'), 'utf8').split('\n');
    const prefixes = new Set(images.filter((line) => line !== '').map((line) => line.split('/')[0]));
    const rules = [...prefixes].map(
      (prefix) => `[[registry]]\nprefix = "${prefix}"\nlocation = "${host}"\ninsecure = true\n`,
    );
    const conf = path.join(directory, 'registries.conf');
    writeFileSync(conf, rules.join(''));
    const environment = {
      CONTAINERS_REGISTRIES_CONF: conf,
      TMPDIR: directory,
      OPMATE_CACHE_DIR: path.join(directory, 'cache'),
      PATH: process.env.PATH,
    };
    mkdirSync(environment.OPMATE_CACHE_DIR, { mode: 0o700 });
    await work({ host, environment });
  } finally {
    await registry.close();
    rmSync(directory, { recursive: true, force: true });
  }
}

async function writeMakeCatalogs({ half, out, environment }) {
  for (const name of readdirSync(path.join(half, 'repos'))) {
    const target = path.join(out, 'make-catalogs', name);
    cpSync(path.join(half, 'repos', name), target, { recursive: true });
    const { exit, stderr } = await opmate(['repo', 'render'], target, environment);
    if (exit !== 0) console.error(`make-catalogs ${name}: ${stderr}`);
  }
}

async function writeMakeCatalogsSmall(world) {
  for (const { name, target } of copyCases('make-catalogs-small', world)) {
    const [operator] = readdirSync(path.join(target, 'operators'));
    const { exit, stderr } = await opmate(['repo', 'render', operator], target, world.environment);
    writeResult('make-catalogs-small', name, target, { exit, stderr });
  }
}

async function writeRelease(world) {
  for (const { name, target, parameters } of copyCases('release', world)) {
    const { operator, version, bundle_pullspec: image } = parameters;
    const args = ['repo', 'release', operator, version, '--image', image];
    const { exit, stderr } = await opmate(args, target, world.environment);
    const templates = path.join(target, 'operators', operator, 'catalog-templates');
    if (existsSync(templates)) cpSync(templates, path.join(target, 'catalog-templates'), { recursive: true });
    writeResult('release', name, target, { exit, error: exit === 0 ? null : stderr });
  }
}

async function writePromote(world) {
  for (const { name, target, parameters } of copyCases('promote', world)) {
    const args = [
      'repo',
      'promote',
      '--from',
      `v${parameters.source}`,
      '--to',
      `v${parameters.target}`,
      '-o',
      'json',
    ];
    const { stdout, stderr } = await opmate(args, target, world.environment);
    writeResult('promote', name, target, stdout.length > 0 ? JSON.parse(stdout) : { stderr });
  }
}

async function writeOnboard(world) {
  for (const { name, source, target, parameters } of copyCases('onboard', world)) {
    const args = ['repo', 'onboard', parameters.operator];
    for (const version of parameters.supported_catalogs) {
      const directory = path.join(target, 'index', version);
      mkdirSync(directory, { recursive: true });
      cpSync(path.join(source, 'index', `${version}.yaml`), path.join(directory, 'catalog.yaml'));
      args.push('--index', `v${version}=${directory}`);
    }
    const { exit, stderr } = await opmate(args, target, world.environment);
    // Bundles are not part of the answer.
    const operator = path.join(target, 'operators', parameters.operator);
    for (const entry of readdirSync(operator)) {
      if (/^\d/.test(entry)) rmSync(path.join(operator, entry), { recursive: true });
    }
    writeResult('onboard', name, target, { exit, stderr });
  }
}

async function writeChanges({ half, out, environment }) {
  for (const name of casesOf('changes', half)) {
    const source = path.join(half, 'changes', name);
    const target = path.join(out, 'changes', name);
    const work = path.join(target, 'work');
    cpSync(path.join(source, 'base'), work, { recursive: true });
    const git = (...args) => run('git', ['-C', work, '-c', 'user.name=a', '-c', 'user.email=a@b', ...args]);
    await git('init', '-q');
    await git('add', '-A');
    await git('commit', '-qm', 'base');
    for (const entry of readdirSync(work))
      if (entry !== '.git') rmSync(path.join(work, entry), { recursive: true });
    cpSync(path.join(source, 'head'), work, { recursive: true });
    const { files } = readJson(path.join(source, 'case.json'));
    const args = files.flatMap((file) => ['--file', file]);
    const { stdout, stderr } = await opmate(
      ['repo', 'changes', '--base', 'HEAD', ...args, '-o', 'json'],
      work,
      environment,
    );
    rmSync(work, { recursive: true });
    const { problems, ...result } = stdout.length > 0 ? JSON.parse(stdout) : { problems: [] };
    writeResult('changes', name, target, { result, errors: problems.map(({ message }) => message), stderr });
  }
}

async function writeChecks({ half, out, environment }) {
  for (const name of casesOf('checks', half)) {
    const source = path.join(half, 'checks', name);
    const { operator, bundle, catalogs, suites, skip } = readJson(path.join(source, 'case.json'));
    const args = ['repo', 'check', bundle === '' ? operator : `${operator}/${bundle}`, '-o', 'json'];
    for (const catalog of catalogs) args.push('--catalog', catalog.split('/')[0]);
    if (suites.includes('isv')) args.push('--suite', 'certified');
    if (skip.length > 0) args.push('--skip', skip.join(','));
    const { stdout, stderr } = await opmate(args, path.join(source, 'repo'), environment);
    const { passed, findings = [] } = stdout.length > 0 ? JSON.parse(stdout) : {};
    const outputs = findings.map(({ code, severity, message }) => ({ check: code, type: severity, message }));
    writeResult('checks', name, path.join(out, 'checks', name), { passed, outputs, stderr });
  }
}

async function writeValidateFbc({ half, out, environment }) {
  for (const name of casesOf('validate-fbc', half)) {
    const source = path.join(half, 'validate-fbc', name);
    const given = readJson(path.join(source, 'case.json'));
    const args = [
      'catalog',
      'gate',
      'configs',
      '--against',
      given.index,
      '--gate',
      'validate-fbc',
      '-o',
      'json',
    ];
    // A label takes precedence over the tag of the base image.
    if (given.fbc_openshift_version_label === null) args.push('--base-image', given.base_image);
    args.push('--probe', given.grpc_health_probe ? 'present' : 'missing');
    const { stdout, stderr } = await opmate(args, source, environment);
    const { gates = [], unreleasedImages = [] } = stdout.length > 0 ? JSON.parse(stdout) : {};
    const result = { test_output: gates[0], related_images_unreleased: unreleasedImages, stderr };
    writeResult('validate-fbc', name, path.join(out, 'validate-fbc', name), result);
  }
}

async function writePruning({ half, out, environment }) {
  for (const name of casesOf('pruning', half)) {
    const args = ['catalog', 'gate', 'fragment', '--against', 'index', '--gate', 'pruning', '-o', 'json'];
    const { stdout, stderr } = await opmate(args, path.join(half, 'pruning', name), environment);
    const { gates = [] } = stdout.length > 0 ? JSON.parse(stdout) : {};
    writeResult('pruning', name, path.join(out, 'pruning', name), { test_output: gates[0], stderr });
  }
}

async function writeFips({ half, out, environment }) {
  for (const name of casesOf('fips', half)) {
    const args = ['catalog', 'gate', 'fragment', '--against', 'index', '--gate', 'fips', '-o', 'json'];
    const { stdout, stderr } = await opmate(args, path.join(half, 'fips', name), environment);
    const { scan } = stdout.length > 0 ? JSON.parse(stdout) : {};
    const unreleased = (scan?.bundles ?? []).map(({ image, isScanned }) => [
      image,
      isScanned ? 'scan' : 'skip',
    ]);
    // The recorded indexes are of v4.18; new packages are compared with the version before.
    const compared = (scan?.newPackages ?? []).length > 0 ? 'v4.17' : 'v4.18';
    const result = {
      unreleased_bundles: unreleased,
      images_to_scan: scan?.images,
      compared_with: compared,
      stderr,
    };
    writeResult('fips', name, path.join(out, 'fips', name), result);
  }
}

/** Commands for the operations of index builds. */
const indexCommands = {
  'add-fragments': ({ fragments }, source) => {
    const packages = fragments.flatMap((name) => {
      const directory = path.join(source, name);
      return existsSync(directory) ? readdirSync(directory) : [];
    });
    const allowed = [...packages, ...allowedPackages].join(',');
    return ['add-fragment', ...fragments.map((name) => path.join(source, name)), '--allow-pruning', allowed];
  },
  rm: ({ packages }) => ['rm-package', ...packages],
  'create-empty': () => ['rm-package', '--all'],
  'add-bundles': ({
    bundles,
    deprecation_list: deprecated,
    graph_update_mode: mode,
    distribution_scope: scope,
  }) => [
    'add-bundle',
    ...bundles,
    ...(mode ? ['--mode', mode] : []),
    ...(deprecated.length > 0 ? ['--deprecate', deprecated.join(',')] : []),
    ...(scope === 'prod' ? [] : ['--overwrite-latest']),
  ],
  merge: (
    { deprecation_list: deprecated, labels, target_ocp_version: version, target },
    _source,
    schema,
    index,
  ) => {
    const file = path.join(path.dirname(schema), 'labels.json');
    writeFileSync(file, JSON.stringify(labels));
    return [
      'merge',
      `${index}:${target}`,
      '--openshift',
      version,
      '--labels',
      file,
      '--database-only',
      ...(deprecated.length > 0 ? ['--deprecate', deprecated.join(',')] : []),
    ];
  },
  'add-deprecations': (_parameters, _source, schema) => ['deprecate', '--schema', schema],
};

const allowedPackages = ['alpha', 'beta', 'gamma', 'delta', 'new'].map((name) => `${name}-operator`);
const hiddenDatabase = 'var/lib/iib/_hidden/do.not.edit.db';

async function writeIib({ half, out, environment, host }) {
  const session = await openSession({ environment, registry: { useHttp: true } });
  try {
    for (const name of casesOf('iib', half)) {
      const source = path.join(half, 'iib', name);
      const target = path.join(out, 'iib', name);
      mkdirSync(target, { recursive: true });
      const parameters = readJson(path.join(source, 'case.json'));
      const command = indexCommands[parameters.op];
      if (parameters.target) {
        const other = path.join(source, parameters.target);
        await pushIndex(`${host}/iib/${name}:${parameters.target}`, other, session);
      }
      await pushIndex(`${host}/iib/${name}:from`, path.join(source, 'from_index'), session);
      for (const fragment of parameters.fragments ?? [])
        mkdirSync(path.join(target, fragment), { recursive: true });
      const schema = path.join(target, 'schema.json');
      if (parameters.deprecation_schema) writeFileSync(schema, parameters.deprecation_schema);
      const index = `${host}/iib/${name}`;
      const [verb, ...args] = command(parameters, source, schema, index);
      const line = ['catalog', verb, `${index}:from`, ...args, '-t', `${index}:to`, '--use-http'];
      const { exit, stderr } = await opmate(line, target, environment);
      if (exit !== 0) writeResult('iib', name, target, { error: stderr });
      else await writeIndex(`${index}:to`, target, name, session);
    }
  } finally {
    await session.close();
  }
}

/** Pushes the image of an unpacked index with its hidden database. */
async function pushIndex(name, directory, session) {
  const configs = path.join(directory, 'configs');
  const files = filesBelow(configs).map((file) => ({
    path: `configs/${file}`,
    content: readFileSync(path.join(configs, file)),
  }));
  files.push({ path: hiddenDatabase, content: readFileSync(path.join(directory, 'index.db')) });
  const labels = { 'operators.operatorframework.io.index.configs.v1': '/configs' };
  const target = await openTarget(parseReference(name), session);
  await pushImage(
    target.repository,
    target.reference,
    await buildImage({ layers: [await layerOf(files)], labels }),
  );
  await target.close();
}

/** Writes the catalog of an index image, and the bundles in its hidden database that are not deprecated. */
async function writeIndex(name, target, answer, session) {
  const { files } = await pullImage(name, session, { roots: ['configs', hiddenDatabase] });
  const database = path.join(target, 'index.db');
  for (const [file, entry] of files.files) {
    const place = file === hiddenDatabase ? database : path.join(target, file);
    mkdirSync(path.dirname(place), { recursive: true });
    writeFileSync(place, await entry.read());
  }
  const query =
    'import sqlite3,sys; print("\\n".join(r[0] for r in sqlite3.connect(sys.argv[1]).execute("select name from operatorbundle where name not in (select operatorbundle_name from deprecated)")))';
  const { stdout } = await run('python3', ['-c', query, database]);
  const bundles = stdout.split('\n').filter(Boolean).sort();
  rmSync(database);
  writeResult('iib', answer, target, { db_bundles_after: bundles });
}

function filesBelow(directory) {
  if (!existsSync(directory)) return [];
  return readdirSync(directory, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile())
    .map((entry) => path.relative(directory, path.join(entry.parentPath, entry.name)));
}

async function writeVersions({ half, out, environment }) {
  const lines = readFileSync(path.join(half, 'versions/labels.jsonl'), 'utf8').split('\n').filter(Boolean);
  const rows = [];
  for (const line of lines) {
    const { label, index, allow_no_label: allow } = JSON.parse(line);
    const args = ['bundle', 'openshift-versions', '-o', 'json', '--supported', index.replace(/^v/, '')];
    if (allow) args.push('--allow-missing');
    const { stdout } = await opmate([...args, '--', label ?? ''], half, environment);
    const [verdict] = stdout.length > 0 ? JSON.parse(stdout).versions : [];
    rows.push({ label, index, allow_no_label: allow, included: verdict?.isIncluded });
  }
  mkdirSync(path.join(out, 'versions'), { recursive: true });
  writeFileSync(
    path.join(out, 'versions/labels.jsonl'),
    rows.map((row) => `${JSON.stringify(row)}\n`).join(''),
  );
}

const readJson = (file) => JSON.parse(readFileSync(file, 'utf8'));

function casesOf(family, half) {
  const directory = path.join(half, family);
  return readdirSync(directory)
    .filter((name) => existsSync(path.join(directory, name, 'expected.json')))
    .sort();
}

/** Copies the repository of each case to where its answer is compared. */
function* copyCases(family, { half, out }) {
  for (const name of casesOf(family, half)) {
    const source = path.join(half, family, name);
    const target = path.join(out, family, name);
    cpSync(path.join(source, 'repo'), target, { recursive: true });
    const file = path.join(source, 'case.json');
    const parameters = existsSync(file) ? readJson(file) : {};
    yield { name, source, target, parameters };
  }
}

function writeResult(family, name, target, result) {
  mkdirSync(target, { recursive: true });
  writeFileSync(path.join(target, 'result.json'), JSON.stringify(result, null, 1));
}

function run(program, args) {
  const child = spawn(program, args);
  let [stdout, stderr] = ['', ''];
  child.stdout.on('data', (chunk) => (stdout += chunk));
  child.stderr.on('data', (chunk) => (stderr += chunk));
  return new Promise((resolve) => {
    child.on('error', (error) => resolve({ code: 1, stdout, stderr: `${program}: ${error.message}` }));
    child.on('close', (code) => resolve({ code, stdout, stderr }));
  });
}

async function main([half, flag, out, ...names]) {
  if (out === undefined || flag !== '--write') {
    console.error('usage: node test/corpus/pipelines.js DIR --write OUT [FAMILY…]');
    process.exit(2);
  }
  const there = Object.keys(families).filter((name) => existsSync(path.join(half, name)));
  await writeFamilies(path.resolve(half), path.resolve(out), names.length > 0 ? names : there);
}

if (import.meta.url === pathToFileURL(process.argv[1] ?? '').href) await main(process.argv.slice(2));
