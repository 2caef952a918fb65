// Makes a fresh clone ready: installs what package-lock.json names and compiles src. Does nothing that was done before for
// the same files, so every npm script can call it. `--built` records that `npm run build` has compiled them.
import { spawnSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { existsSync, readFileSync, readdirSync, statSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { fileURLToPath } from 'node:url';

const root = path.dirname(path.dirname(fileURLToPath(import.meta.url)));

function hash(...parts) {
  const digest = createHash('sha256');
  for (const part of parts) digest.update(part).update('\0');
  return digest.digest('hex');
}

function filesBelow(directory) {
  return readdirSync(directory, { withFileTypes: true })
    .sort((a, b) => (a.name < b.name ? -1 : 1))
    .flatMap((entry) => {
      const file = path.join(directory, entry.name);
      return entry.isDirectory() ? filesBelow(file) : [file];
    });
}

function run(command, args) {
  const npm = process.env.npm_execpath;
  const [program, ...rest] =
    command === 'npm' && npm !== undefined ? [process.execPath, npm, ...args] : [command, ...args];
  // What the steps print goes to stderr: stdout belongs to the script that called us.
  const { status, error } = spawnSync(program, rest, { cwd: root, stdio: ['ignore', 2, 2] });
  if (status === 0) return;
  console.error(
    `setup: ${command} ${args.join(' ')} failed${error === undefined ? '' : `: ${error.message}`}`,
  );
  process.exit(status ?? 1);
}

/** Runs a step unless the stamp says that it was done for the same input. */
function once(stamp, input, step) {
  if (existsSync(stamp) && readFileSync(stamp, 'utf8') === input) return;
  step();
  writeFileSync(stamp, input);
}

const read = (name) => readFileSync(path.join(root, name));
const modules = path.join(root, 'node_modules');

// package-lock.json has the release of better-sqlite3 for Node.js 20, which is compiled; later ones get the other.
const isLater = Number.parseInt(process.versions.node, 10) >= 22;

/** Whether npm has installed what package-lock.json names, compiled for this Node.js where that is needed. */
function isInstalled() {
  try {
    const { packages: installed } = JSON.parse(read('node_modules/.package-lock.json'));
    const { packages: locked } = JSON.parse(read('package-lock.json'));
    const differs = Object.entries(locked).some(
      ([name, { version, optional }]) => name !== '' && !optional && installed[name]?.version !== version,
    );
    if (differs || isLater) return !differs;
  } catch {
    return false;
  }
  const open = "new (require('better-sqlite3'))(':memory:')";
  return spawnSync(process.execPath, ['-e', open], { cwd: root }).status === 0;
}

const sources = ['src', 'schemas', 'bin/bundle'].flatMap((directory) =>
  filesBelow(path.join(root, directory)),
);
const state = sources.map((file) => `${file}:${statSync(file).size}:${statSync(file).mtimeMs}`).join('\n');
const built = path.join(root, 'dist', '.setup');
const inputs = hash(
  state,
  read('package.json'),
  read('tsconfig.json'),
  read('tsconfig.build.json'),
  read('bin/bundle.js'),
);

if (process.argv.includes('--built')) {
  writeFileSync(built, inputs);
} else {
  once(path.join(modules, '.opmate-setup'), hash(read('package-lock.json'), process.versions.modules), () => {
    const quiet = ['--no-audit', '--no-fund', '--loglevel=error', ...(isLater ? ['--ignore-scripts'] : [])];
    if (!isInstalled()) {
      console.error('setup: installing dependencies');
      run('npm', ['ci', ...quiet]);
    }
    if (isLater) {
      const release = JSON.parse(read('package.json'))
        .optionalDependencies['better-sqlite3'].split(' || ')
        .at(-1);
      run('npm', ['install', '--no-save', ...quiet, `better-sqlite3@${release}`]);
    }
  });
  once(built, inputs, () => {
    console.error('setup: compiling');
    run('npm', ['run', '--silent', 'build']);
  });
}
