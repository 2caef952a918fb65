// Writes dist/build.json, from which `opmate version` knows the commit and its date; empty where there is no git.
import { spawnSync } from 'node:child_process';
import { writeFileSync } from 'node:fs';
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
