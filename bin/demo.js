// The main job from end to end, on bundles that come with the project: push them to an embedded registry,
// render them from their images into a catalog, check it, list it, draw it, and write it out; then the same
// bundles as a sqlite index image, a part of that mirrored by way of the disk, and the catalog served.
// Run it with `npm run demo`. Everything happens in a temporary directory, which is removed at the end, or with --keep
// in a directory that is kept.
import { spawn, spawnSync } from 'node:child_process';
import {
  appendFileSync,
  cpSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  readdirSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs';
import { homedir, tmpdir } from 'node:os';
import path from 'node:path';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';

const root = path.dirname(path.dirname(fileURLToPath(import.meta.url)));
const command = path.join(root, 'bin', 'opmate.cjs');
const bundles = path.join(root, 'fixtures', 'bundles');
const usage = `Usage: npm run demo -- [--keep DIRECTORY]

Runs opmate on real bundles and an embedded registry, from end to end.

Options:
  --keep DIRECTORY  write to this new or empty directory and keep it:
                    catalog/, published/, migrated/, broken/, carry/, registry/
  -h, --help        print help
`;
const { keep } = readArguments(process.argv.slice(2));
const work = keep === undefined ? mkdtempSync(path.join(tmpdir(), 'opmate-demo-')) : makeDirectory(keep);

function readArguments(args) {
  try {
    const options = { keep: { type: 'string' }, help: { type: 'boolean', short: 'h' } };
    const { values } = parseArgs({ args, options });
    if (values.help !== true) return values;
    process.stdout.write(usage);
    process.exit(0);
  } catch (error) {
    process.stderr.write(`${error.message}\n\n${usage}`);
    process.exit(2);
  }
}

/** Creates a directory, or takes an empty one. */
function makeDirectory(name) {
  const directory = path.resolve(process.env.INIT_CWD ?? '', name);
  mkdirSync(directory, { recursive: true });
  if (readdirSync(directory).length === 0) return directory;
  process.stderr.write(`${name}: not empty\n`);
  process.exit(1);
}

function removeWork() {
  if (keep === undefined) rmSync(work, { recursive: true, force: true });
}

// `npm run demo | head`: nobody reads any more. Servers end with this process, whatever ends it.
const servers = new Set();
process.stdout.on('error', () => process.exit(0));
for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP']) process.on(signal, () => process.exit(1));
process.on('exit', () => {
  for (const child of servers) child.kill('SIGKILL');
  removeWork();
});

/** The bundles of the demo by package, oldest first, and the channel that they are installed from. */
const packages = [
  { name: 'skupper-operator', channel: 'stable', versions: ['1.8.2', '1.8.3', '1.8.4', '1.9.0'] },
  { name: 'microcks', channel: 'stable', versions: ['0.2.1', '0.3.0'] },
];

function say(text) {
  console.log(`\n\u001b[1m${text}\u001b[0m`.replace(/\u001b\[\d+m/g, process.stdout.isTTY ? '$&' : ''));
}

/** Runs opmate in the work directory, shows the command and the first lines of what it printed. */
function opmate(args, { lines = 12, expect = 0, show = true } = {}) {
  if (show) console.log(`$ opmate ${args.join(' ')}`);
  const { status, stdout, stderr } = spawnSync(process.execPath, [command, ...args], {
    cwd: work,
    encoding: 'utf8',
    maxBuffer: 256 * 1024 * 1024,
  });
  if (status !== expect) {
    console.error(`${stderr}\nthe demo failed: opmate ${args[0]} ended with exit code ${status}`);
    throw new Error('demo failed');
  }
  if (!show) return stdout;
  const printed = (stdout + stderr).split('\n').slice(0, -1);
  for (const line of printed.slice(0, lines)) console.log(`  ${line}`);
  const rest = printed.length - lines;
  if (rest > 0) console.log(`  … ${rest} more ${rest === 1 ? 'line' : 'lines'}`);
  return stdout;
}

/** Starts the embedded registry and waits for the address that it prints. */
function startRegistry() {
  console.log('$ opmate oci serve registry --port 0 &');
  const child = spawn(process.execPath, [command, 'oci', 'serve', 'registry', '--port', '0'], { cwd: work });
  servers.add(child);
  return new Promise((resolve, reject) => {
    child.stdout.setEncoding('utf8').once('data', (line) => {
      console.log(`  ${line.trim()}`);
      resolve({ child, host: new URL(line.trim()).host });
    });
    child.stderr.pipe(process.stderr);
    child.once('exit', (code) => reject(new Error(`the registry ended with exit code ${code}`)));
  });
}

/** Serves the catalog with both APIs, asks the HTTP one for the packages, and ends it. */
async function serveAndAsk() {
  const args = ['serve', 'catalog', '--port', '0', '--http', '127.0.0.1:0'];
  console.log(`$ opmate ${args.join(' ')} &`);
  const child = spawn(process.execPath, [command, ...args], {
    cwd: work,
    stdio: ['ignore', 'pipe', 'ignore'],
  });
  servers.add(child);
  try {
    const url = await new Promise((resolve, reject) => {
      child.stdout.setEncoding('utf8').once('data', (line) => resolve(line.trim()));
      child.once('exit', (code) => reject(new Error(`the server ended with exit code ${code}`)));
    });
    console.log(`  ${url}`);
    const query = `${url}/api/v1/metas?schema=olm.package`;
    console.log(`$ curl ${query}`);
    for (const line of (await (await globalThis.fetch(query)).text()).trimEnd().split('\n'))
      console.log(`  ${line}`);
  } finally {
    child.removeAllListeners('exit');
    child.kill('SIGTERM');
  }
}

function filesOf(directory, prefix) {
  return readdirSync(directory).map((name) => ({
    path: `${prefix}/${name}`,
    content: readFileSync(path.join(directory, name)),
  }));
}

/** Labels of a bundle image: the pairs of its `annotations.yaml`. */
function labelsOf(annotations) {
  return Object.fromEntries(
    [...annotations.matchAll(/^ +([\w./-]+): *(.+)$/gm)].map(([, key, value]) => [key, value]),
  );
}

/** Makes the image of a bundle directory and pushes it, with the library behind the commands. */
async function pushBundle(library, session, directory, reference) {
  const metadata = path.join(directory, 'metadata');
  const layers = [
    await library.layerOf(filesOf(path.join(directory, 'manifests'), 'manifests')),
    await library.layerOf(filesOf(metadata, 'metadata')),
  ];
  const labels = labelsOf(readFileSync(path.join(metadata, 'annotations.yaml'), 'utf8'));
  const image = await library.buildImage({ layers, labels });
  const target = await library.openTarget(library.parseReference(reference), session);
  await library.pushImage(target.repository, target.reference, image);
}

async function main() {
  say('1. A registry on a directory, no container engine needed');
  const { child, host } = await startRegistry();
  try {
    say('2. Push six real bundles to it as images');
    const library = await import('../dist/index.js');
    const session = await library.openSession({
      environment: process.env,
      homeDirectory: homedir(),
      temporaryDirectory: work,
      architecture: process.arch,
      registry: { useHttp: true },
    });
    for (const { name, versions } of packages) {
      for (const version of versions) {
        const reference = `${host}/demo/${name}:${version}`;
        await pushBundle(library, session, path.join(bundles, name, version), reference);
        console.log(`  ${reference}`);
      }
    }
    await session.close();

    say('3. Make a catalog: a package, a channel, and the bundles rendered from their images');
    for (const { name, channel, versions } of packages) {
      const folder = path.join(work, 'catalog', name);
      mkdirSync(folder, { recursive: true });
      const images = versions.map((version) => `${host}/demo/${name}:${version}`);
      const rendered = opmate(['render', '--use-http', '--migrate', ...images], { lines: 4 });
      const names = rendered
        .split(/(?<=\n})\n/)
        .filter(Boolean)
        .map((blob) => JSON.parse(blob).name);
      const inOrder = versions.map((version) => names.find((bundle) => bundle.endsWith(version)));
      const entries = inOrder.map((bundle, i) =>
        i === 0 ? { name: bundle } : { name: bundle, replaces: inOrder[i - 1] },
      );
      const file = path.join(folder, 'catalog.json');
      writeFileSync(file, opmate(['init', name, '--default-channel', channel], { show: false }));
      appendFileSync(file, JSON.stringify({ schema: 'olm.channel', package: name, name: channel, entries }));
      appendFileSync(file, `\n${rendered}`);
    }

    say('4. Check it');
    opmate(['validate', 'catalog']);
    console.log('  exit code 0: the catalog is valid');

    say('5. List it');
    opmate(['list', 'packages', 'catalog']);
    opmate(['list', 'channels', 'catalog']);
    opmate(['list', 'bundles', 'catalog', 'microcks']);

    say('6. Draw its upgrade graph');
    opmate(['graph', 'catalog', '--package', 'skupper-operator'], { lines: 16 });

    say('7. Write it out as YAML, one file per package');
    opmate(['migrate', 'catalog', 'published', '--output', 'yaml']);
    for (const { name } of packages) {
      const file = path.join('published', name, 'catalog.yaml');
      console.log(`  ${file}: ${statSync(path.join(work, file)).size} bytes`);
    }

    say('8. Older clusters: the same bundles as a sqlite index image, and back to a file-based catalog');
    const images = packages.flatMap(({ name, versions }) =>
      versions.map((version) => `${host}/demo/${name}:${version}`),
    );
    const index = `${host}/demo/index:v1`;
    const from = ['--bundles', images.join(), '--mode', 'semver', '--binary-image', 'scratch'];
    opmate(['index', 'add', '--use-http', ...from, '--tag', index], { lines: 6 });
    opmate(['list', 'channels', '--use-http', index]);
    opmate(['migrate', '--use-http', index, 'migrated']);

    say('9. Carry one package over a gap: plan it, write it to disk, check it, copy it from there');
    const imageSet = {
      kind: 'ImageSetConfiguration',
      apiVersion: 'mirror.openshift.io/v2alpha1',
      mirror: {
        operators: [{ catalog: index, packages: [{ name: 'skupper-operator', minVersion: '1.8.4' }] }],
        // What the operators run is elsewhere, and this demo works without network.
        blockedImages: [{ name: '^(?:quay|docker|gcr|ghcr)[.]io/' }, { name: '^registry[.]' }],
      },
    };
    writeFileSync(path.join(work, 'imageset.yaml'), JSON.stringify(imageSet));
    const set = ['--config', 'imageset.yaml', '--use-http'];
    opmate(['mirror', 'plan', `docker://${host}/mirror`, ...set], { lines: 20 });
    opmate(['mirror', 'file://carry', ...set], { show: true, lines: 4 });
    opmate(['archive', 'verify', 'carry']);
    opmate(['mirror', '--from', 'file://carry', `docker://${host}/mirror`, '--use-http'], { lines: 8 });
    opmate(['list', 'channels', '--use-http', `${host}/mirror/demo/index:v1`]);

    say('10. Serve it: gRPC for OLM v0, HTTP for OLM v1');
    await serveAndAsk();

    say('11. Break a copy, and check it');
    cpSync(path.join(work, 'catalog'), path.join(work, 'broken'), { recursive: true });
    const file = path.join(work, 'broken', 'microcks', 'catalog.json');
    writeFileSync(file, readFileSync(file, 'utf8').replace(/"replaces":"([^"]+)"/, '"replaces":"$1-typo"'));
    opmate(['validate', 'broken'], { expect: 1, lines: 20 });
  } finally {
    child.removeAllListeners('exit');
    child.kill('SIGTERM');
  }
  say(keep === undefined ? 'Done. Next: README.md' : `Done. Files: ${keep}. Next: README.md`);
}

try {
  await main();
} catch (error) {
  if (error.message !== 'demo failed') console.error(error.message);
  process.exitCode = 1;
} finally {
  removeWork();
}
