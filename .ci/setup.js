// Makes a fresh clone ready: installs what package-lock.json names and compiles src. Does nothing that was
// done before for the same files, so every npm script can call it.
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
once(path.join(modules, '.opmate-setup'), hash(read('package-lock.json'), process.versions.modules), () => {
  console.error('setup: installing dependencies');
  run('npm', ['ci', '--no-audit', '--no-fund', '--loglevel=error']);
});

const sources = ['src', 'schemas'].flatMap((directory) => filesBelow(path.join(root, directory)));
const state = sources.map((file) => `${file}:${statSync(file).size}:${statSync(file).mtimeMs}`).join('\n');
once(
  path.join(root, 'dist', '.setup'),
  hash(
    state,
    read('package.json'),
    read('tsconfig.json'),
    read('tsconfig.build.json'),
    read('bin/bundle.js'),
  ),
  () => {
    console.error('setup: compiling');
    run('npm', ['run', '--silent', 'build']);
  },
);
