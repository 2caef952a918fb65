// One process of `run.js`: makes a world of inputs, and runs one changed command after the other in it.
import { cp, mkdir, mkdtemp, readFile, readdir, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { Readable, Writable } from 'node:stream';
import { fileURLToPath } from 'node:url';
import { run } from '../../dist/cli/main.js';
import { createRandom, mutateArguments, mutateBytes } from './mutate.js';

const fixtures = fileURLToPath(new URL('../../fixtures/', import.meta.url));
const exitCodes = new Set([0, 1, 2, 3, 4]);

class Capture extends Writable {
  chunks = [];
  _write(chunk, _encoding, ready) {
    if (this.chunks.length < 10_000) this.chunks.push(chunk);
    ready();
  }
  get text() {
    return Buffer.concat(this.chunks).toString();
  }
}

// One level down: an argument may be `..`.
const outer = await mkdtemp(path.join(tmpdir(), 'opmate-mutations-'));
const root = path.join(outer, 'world');

async function opmate(args) {
  const stdout = new Capture();
  const stderr = new Capture();
  const cancel = new AbortController();
  const exit = await run(args, {
    environment: {},
    workingDirectory: root,
    homeDirectory: path.join(root, 'home'),
    temporaryDirectory: path.join(root, 'tmp'),
    stdin: Readable.from([]),
    stdout,
    stderr,
    signal: cancel.signal,
    now: () => new Date(0),
    architecture: 'x64',
  });
  return { exit, stdout: stdout.text, stderr: stderr.text };
}

async function prepare() {
  await mkdir(path.join(root, 'home'), { recursive: true });
  await mkdir(path.join(root, 'tmp'));
  await mkdir(path.join(root, 'in', 'catalog'), { recursive: true });
  process.chdir(root);
  await cp(path.join(fixtures, 'bundles', 'microcks', '0.3.0'), 'in/bundle', { recursive: true });
  await cp(path.join(fixtures, 'lists', 'node-maintenance-operator.json'), 'in/catalog/catalog.json');
  await writeFile('in/catalog/.indexignore', '*.txt\n!keep.txt\n');
  const yaml = await opmate(['render', 'in/catalog', '-o', 'yaml']);
  await mkdir('in/yaml');
  await writeFile('in/yaml/catalog.yaml', yaml.stdout);
  await opmate(['catalog', 'build', 'in/catalog', '--tag', 'localhost/a:v1', '--base-image', 'scratch', '--save', 'oci:in/layout:v1']);
  await opmate(['registry', 'add', '--mode', 'semver', '-b', 'in/bundle', '-d', 'in/index.db']);
  await writeFile('in/set.yaml', 'apiVersion: mirror.openshift.io/v2alpha1\nkind: ImageSetConfiguration\nmirror:\n  operators:\n  - catalog: oci:in/layout\n    packages:\n    - name: node-maintenance-operator\n      minVersion: 4.0.0\n');
  await writeFile('in/basic.yaml', 'schema: olm.template.basic\nentries:\n- schema: olm.package\n  name: p\n  defaultChannel: c\n- schema: olm.channel\n  package: p\n  name: c\n  entries:\n  - name: p.v1.0.0\n');
  await writeFile('in/semver.yaml', 'schema: olm.semver\ngenerateMajorChannels: true\nstable:\n  bundles:\n  - image: oci:in/layout\n');
  await writeFile('in/deployment.yaml', 'apiVersion: core.rukpak.io/v1alpha1\nkind: BundleDeployment\nmetadata:\n  name: a\nspec:\n  provisionerClassName: core-rukpak-io-registry\n  template:\n    spec:\n      provisionerClassName: core-rukpak-io-registry\n      source:\n        type: local\n        local:\n          path: in/bundle\n');
  await writeFile('in/auth.json', '{"auths":{"localhost:1":{"auth":"YTpi"}},"credHelpers":{}}');
} // prettier-ignore

const commands = [
  'render in/catalog', 'render in/yaml -o yaml', 'render in/bundle', 'render in/index.db', 'render oci:in/layout:v1',
  'validate in/catalog', 'validate in/yaml -o json', 'migrate in/catalog out', 'list bundles in/catalog', 'list channels in/yaml',
  'list packages in/index.db', 'graph in/catalog', 'generate dockerfile out', 'init p -d in/bundle/README.md',
  'catalog diff in/catalog in/yaml', 'catalog doctor in/yaml', 'catalog doctor in/catalog -o json',
  'catalog filter in/catalog --packages node-maintenance-operator -o out', 'catalog filter in/yaml --packages node-maintenance-operator --heads-only -o out',
  'catalog build in/catalog --tag localhost/a:v1 --base-image scratch --save oci:out:v1', 'catalog add in/yaml in/bundle --channels stable',
  'catalog deprecate in/yaml --package node-maintenance-operator --message x', 'catalog remove in/yaml --package node-maintenance-operator --channel stable',
  'bundle validate in/bundle', 'bundle show in/bundle', 'bundle render in/bundle --install-namespace ns', 'bundle permissions in/bundle --install-namespace ns',
  'bundle extract in/bundle --configmapname a', 'bundle unpack in/bundle --out out', 'bundle build --directory in/bundle/manifests --save oci:out:v1 --tag localhost/a:v1 -o',
  'bundle check-crd-upgrade in/bundle in/bundle', 'bundle generate --directory in/bundle/manifests --package microcks --channels stable --default stable',
  'bundle resolve node-maintenance-operator --catalog in/catalog', 'bundle resolve node-maintenance-operator --catalog in/yaml --version >=4.0.0',
  'bundle successors node-maintenance-operator node-maintenance-operator.v5.0.0 --catalog in/catalog',
  'deployment render -f in/deployment.yaml', 'deployment diff -f in/deployment.yaml --against in/deployment.yaml',
  'registry rm microcks in/index.db', 'registry prune -p microcks -d in/index.db', 'registry bundles in/index.db', 'registry migrate in/index.db',
  'registry images --from in/index.db', 'registry delete-latest microcks in/index.db', 'registry deprecatetruncate -d in/index.db -b x',
  'mirror --config in/set.yaml --dry-run file://out', 'mirror plan --config in/set.yaml file://out', 'mirror --config in/set.yaml file://out',
  'archive verify in/layout', 'oci inspect oci:in/layout:v1', 'oci copy oci:in/layout:v1 oci:out:v2', 'oci gc in/layout --dry-run',
  'template render basic in/basic.yaml', 'template render semver in/semver.yaml', 'template convert basic in/catalog', 'alpha render-template in/basic.yaml',
  'version', 'completion bash', 'oci inspect localhost:1/a:b --authfile in/auth.json --retry-timeout 0s',
  'probe --addr localhost:1 --timeout 1s', 'index export --index oci:in/layout:v1 --download-folder out',
  'catalog doctor in/index.db', 'oci inspect docker-archive:in/index.db', 'oci inspect oci-archive:in/index.db',
].map((line) => line.split(' ')); // prettier-ignore

async function filesBelow(directory) {
  const entries = await readdir(directory, { withFileTypes: true, recursive: true });
  return entries.filter((entry) => entry.isFile()).map((entry) => path.join(entry.parentPath ?? entry.path, entry.name)).sort();
} // prettier-ignore

/** Files that a command line names, itself or in directories. */
function inputsOf(command, files) {
  const named = command.flatMap((word) => /in\/[^:]*/.exec(word)?.[0] ?? []);
  return files.filter((file) => named.some((name) => file === name || file.startsWith(`${name}/`)));
}

function problemOf({ exit, stdout, stderr }) {
  const line = stderr.split('\n').find((text) => /internal error|^\s+at .*(?:\.js:\d|node:)/.test(text));
  if (line !== undefined) return line;
  if (!exitCodes.has(exit)) return `exit code ${exit}`;
  if (exit === 1 && `${stdout}${stderr}`.trim() === '') return 'exit code 1 without a message';
  return undefined;
}

async function work({ seed, from, to, step }) {
  await prepare();
  const files = await filesBelow('in');
  const originals = new Map(await Promise.all(files.map(async (file) => [file, await readFile(file)])));
  for (let number = from; number < to; number += step) {
    const random = createRandom(seed * 1_000_003 + number);
    let command = random.pick(commands);
    const inputs = inputsOf(command, files);
    const changed = inputs.length > 0 && random.next() < 0.75 ? random.pick(inputs) : undefined;
    if (changed === undefined) command = mutateArguments(command, random);
    else await writeFile(changed, mutateBytes(originals.get(changed), random));
    const shown = `opmate ${command.map((word) => JSON.stringify(word)).join(' ')}${changed === undefined ? '' : ` (${changed} changed)`}`;
    process.send({ type: 'start', number, command: shown });
    const result = await opmate(command);
    process.send({ type: 'end', number, command: shown, problem: problemOf(result) });
    await rm('out', { recursive: true, force: true });
    const writes = /^(?:catalog (?:add|remove|deprecate)|registry|bundle (?:generate|build|extract|unpack)|oci gc|init|generate)/;
    if (changed !== undefined && !writes.test(command.join(' '))) {
      await writeFile(changed, originals.get(changed));
    } else {
      await rm('in', { recursive: true, force: true });
      for (const [file, bytes] of originals) {
        await mkdir(path.dirname(file), { recursive: true });
        await writeFile(file, bytes);
      }
    }
    for (const name of await readdir(root))
      if (!['in', 'home', 'tmp'].includes(name)) await rm(name, { recursive: true, force: true });
  }
  process.chdir('/');
  await rm(outer, { recursive: true, force: true });
  await new Promise((resolve) => process.send({ type: 'finished' }, resolve));
  process.exit(0);
} // prettier-ignore

if (process.argv[2] === 'commands') {
  await prepare();
  for (const command of commands) {
    const { exit, stderr } = await opmate(command);
    process.stdout.write(`${exit} ${command.join(' ')}${exit === 2 ? `: ${stderr.split('\n')[0]}` : ''}\n`);
  }
} else process.once('message', work);
