// Writes dist/build.json, from which `opmate version` knows the commit and its date; empty where there is no git.
// With `--shrinkwrap` it also writes npm-shrinkwrap.json: package-lock.json without what is for development only, so
// that everyone installs the versions that were tested. npm publishes that file; postpack removes it.
import { spawnSync } from 'node:child_process';
import { readFileSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { fileURLToPath } from 'node:url';

const root = path.dirname(path.dirname(fileURLToPath(import.meta.url)));

const git = (...args) => {
  const { status, stdout } = spawnSync('git', args, { cwd: root, encoding: 'utf8' });
  return status === 0 ? stdout.trim() : '';
};
// A package that lies in somebody else's repository has a commit that is not ours.
const isOurs = git('ls-files', 'package.json') === 'package.json' && git('rev-parse', '--show-prefix') === '';
const commit = isOurs ? git('rev-parse', 'HEAD') : '';
const seconds = Number(git('show', '-s', '--format=%ct', 'HEAD'));
const date = commit === '' ? '' : new Date(seconds * 1000).toISOString().replace('.000Z', 'Z');
writeFileSync(path.join(root, 'dist', 'build.json'), `${JSON.stringify({ commit, date })}\n`);

if (process.argv.includes('--shrinkwrap')) {
  const lock = JSON.parse(readFileSync(path.join(root, 'package-lock.json'), 'utf8'));
  delete lock.packages[''].devDependencies;
  for (const [name, { dev, devOptional }] of Object.entries(lock.packages))
    if (dev || devOptional) delete lock.packages[name];
  writeFileSync(path.join(root, 'npm-shrinkwrap.json'), `${JSON.stringify(lock, null, 2)}\n`);
}
