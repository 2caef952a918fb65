// The main job from end to end, on bundles that come with the project: push them to an embedded registry,
// render them from their images into a catalog, check it, list it, draw it, and write it out; then the same
// bundles as a sqlite index image, a part of that mirrored by way of the disk, and the catalog served.
// Run it with `npm run demo`. Everything happens in a temporary directory, which is removed at the end, or with --keep
// in a directory that is kept.
import { spawn, spawnSync } from 'node:child_process';
import {
  cpSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  readdirSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs';
import { once } from 'node:events';
import { createServer } from 'node:net';
import { tmpdir } from 'node:os';
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

/** Writes a word as a shell reads it. */
const quoted = (word) => (/^[\w@%+=:,./-]+$/.test(word) ? word : `'${word.replaceAll("'", "'\\''")}'`);

/** Runs opmate in the work directory, shows the command and the first lines of what it printed, or writes that to a file. */
function opmate(args, { lines = 12, expect = 0, to } = {}) {
  console.log(`$ opmate ${args.map(quoted).join(' ')}${to === undefined ? '' : ` > ${to}`}`);
  const { status, stdout, stderr } = spawnSync(process.execPath, [command, ...args], {
    cwd: work,
    encoding: 'utf8',
    maxBuffer: 256 * 1024 * 1024,
  });
  if (status !== expect) {
    console.error(`${stderr}\nthe demo failed: opmate ${args[0]} ended with exit code ${status}`);
    throw new Error('demo failed');
  }
  if (to !== undefined) return void writeFileSync(path.join(work, to), stdout);
  const printed = (stdout + stderr).split('\n').slice(0, -1);
  for (const line of printed.slice(0, lines)) console.log(`  ${line}`);
  const rest = printed.length - lines;
  if (rest > 0) console.log(`  … ${rest} more ${rest === 1 ? 'line' : 'lines'}`);
  return stdout;
}

/** Returns a free port, so that the commands that are shown can be repeated with it. */
async function findFreePort() {
  const server = createServer().listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address();
  await new Promise((resolve) => server.close(resolve));
  return port;
}

/** Starts the embedded registry and waits for the address that it prints. */
async function startRegistry() {
  const args = ['oci', 'serve', 'registry', '--port', String(await findFreePort())];
  console.log(`$ opmate ${args.join(' ')} &`);
  const child = spawn(process.execPath, [command, ...args], { cwd: work });
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
    console.log(`$ curl '${query}'`);
    for (const line of (await (await globalThis.fetch(query)).text()).trimEnd().split('\n'))
      console.log(`  ${line}`);
  } finally {
    child.removeAllListeners('exit');
    child.kill('SIGTERM');
  }
}

async function main() {
  say('1. A registry on a directory, no container engine needed');
  const { child, host } = await startRegistry();
  try {
    say('2. Push six real bundles to it as images');
    cpSync(bundles, path.join(work, 'bundles'), { recursive: true });
    console.log(`$ cp -r ${path.relative(process.cwd(), bundles) || bundles} bundles`);
    for (const { name, versions } of packages)
      for (const version of versions)
        opmate(
          ['bundle', 'push', `bundles/${name}/${version}`, `${host}/demo/${name}:${version}`, '--use-http'],
          {
            lines: 1,
          },
        );

    say('3. Make a catalog: a package, and its bundles from their images, each replacing the one before');
    for (const { name, channel, versions } of packages) {
      const file = `catalog/${name}/catalog.json`;
      console.log(`$ mkdir -p catalog/${name}`);
      mkdirSync(path.join(work, 'catalog', name), { recursive: true });
      opmate(['init', name, '--default-channel', channel], { to: file });
      const images = versions.map((version) => `${host}/demo/${name}:${version}`);
      opmate(
        ['catalog', 'add', 'catalog', ...images, '--channel', channel, '--mode', 'semver', '--use-http'],
        {
          lines: 6,
        },
      );
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
    const text = JSON.stringify(imageSet);
    console.log(`$ echo ${quoted(text)} > imageset.yaml`);
    writeFileSync(path.join(work, 'imageset.yaml'), text);
    const set = ['--config', 'imageset.yaml', '--use-http'];
    opmate(['mirror', 'plan', `docker://${host}/mirror`, ...set], { lines: 20 });
    opmate(['mirror', 'file://carry', ...set], { lines: 4 });
    opmate(['archive', 'verify', 'carry']);
    opmate(['mirror', '--from', 'file://carry', `docker://${host}/mirror`, '--use-http'], { lines: 8 });
    opmate(['list', 'channels', '--use-http', `${host}/mirror/demo/index:v1`]);

    say('10. Serve it: gRPC for OLM v0, HTTP for OLM v1');
    await serveAndAsk();

    say('11. Break a copy, and check it');
    cpSync(path.join(work, 'catalog'), path.join(work, 'broken'), { recursive: true });
    const file = path.join(work, 'broken', 'microcks', 'catalog.json');
    const broken = readFileSync(file, 'utf8').replace(/("replaces": ?"[^"]+)"/, '$1-typo"');
    console.log(`$ cp -r catalog broken`);
    console.log(`$ sed -i -E '0,/("replaces": ?"[^"]+)"/s//\\1-typo"/' broken/microcks/catalog.json`);
    writeFileSync(file, broken);
    opmate(['validate', 'broken'], { expect: 1, lines: 20 });
  } finally {
    child.removeAllListeners('exit');
    child.kill('SIGTERM');
  }
  say(keep === undefined ? 'Done. Next: docs/README.md' : `Done. Files: ${keep}. Next: docs/README.md`);
}

try {
  await main();
} catch (error) {
  if (error.message !== 'demo failed') console.error(error.message);
  process.exitCode = 1;
} finally {
  removeWork();
}
