import { OpmateError, UsageError } from '../core/errors.js';
import { quoteGo } from '../core/go-json-quote.js';
import { findProgram, runToEnd } from '../files/run-program.js';
import type { SourceSession } from '../source/session.js';
import type { OperatorRepository } from './repository.js';

/** The Git repository of a checkout, read with the program `git`. */
export interface GitTree {
  /** Revision that changes are compared with: the merge base of the named one and HEAD. */
  base: string;
  /** Returns the paths that differ between the base and the working tree, sorted, untracked files included. */
  listChangedFiles(): Promise<string[]>;
  /** Returns the files below some paths at the base. */
  listBaseFiles(paths: readonly string[]): Promise<string[]>;
  /** Returns a file at the base. Throws OpmateError. */
  readBaseFile(path: string): Promise<Buffer>;
}

/** Variables that git receives: none that change what it reads. */
const passedVariables = ['PATH', 'HOME', 'TMPDIR'];

/** Settings of a repository that must not run programs or change output. */
const fixedSettings = [
  '-c',
  'core.quotePath=false',
  '-c',
  'core.fsmonitor=false',
  '-c',
  'core.hooksPath=/dev/null',
];

/** Opens the Git repository of a checkout at a revision. Throws OpmateError, UsageError for an invalid revision. */
export async function openGitTree(
  { root }: OperatorRepository,
  revision: string,
  session: Pick<SourceSession, 'environment' | 'signal'>,
): Promise<GitTree> {
  if (revision === '' || revision.startsWith('-') || /[\0-\x20]/.test(revision)) {
    throw new UsageError(`invalid revision ${quoteGo(revision)}`);
  }
  const program = await findProgram('git', session.environment);
  if (program === undefined) {
    throw new OpmateError('UNSUPPORTED', 'git: command not found', { hint: 'install git' });
  }
  const environment = {
    ...Object.fromEntries(passedVariables.map((name) => [name, session.environment[name]])),
    GIT_TERMINAL_PROMPT: '0',
    GIT_OPTIONAL_LOCKS: '0',
  };
  const run = async (args: readonly string[]): Promise<Buffer | undefined> => {
    const options = { name: 'git', environment, workingDirectory: root, signal: session.signal };
    const { stdout, code } = await runToEnd(program, [...fixedSettings, ...args], options);
    return code === 0 ? stdout : undefined;
  };
  const require = async (args: readonly string[], problem: string, hint?: string): Promise<Buffer> => {
    const output = await run(args);
    if (output === undefined) throw new OpmateError('NOT_FOUND', problem, { subject: root, hint });
    return output;
  };
  const commit = ['rev-parse', '--verify', '--quiet', '--end-of-options', `${revision}^{commit}`];
  const shown = quoteGo(revision);
  const named =
    await require(commit, `revision ${shown} not found`, 'run git fetch to get branches of a remote');
  const base = (await findMergeBase(run, named.toString().trim(), { root, shown })).toString().trim();
  const split = (output: Buffer): string[] =>
    output
      .toString()
      .split('\0')
      .filter((name) => name !== '');
  return {
    base,
    async listChangedFiles() {
      const diff = ['diff', '--name-only', '--no-renames', '--no-ext-diff', '--relative', '-z', base, '--'];
      const changed = await require(diff, 'cannot compare revisions');
      const untracked = await require([
        'ls-files',
        '--others',
        '--exclude-standard',
        '-z',
      ], 'cannot list files');
      return [...new Set([...split(changed), ...split(untracked)])].sort();
    },
    async listBaseFiles(paths) {
      if (paths.length === 0) return [];
      return split(
        await require(['ls-tree', '-r', '--name-only', '-z', base, '--', ...paths], 'cannot list files'),
      );
    },
    readBaseFile: (path) =>
      require(['show', `${base}:./${path}`], `${path}: not found in ${quoteGo(revision)}`),
  };
}

/**
 * Returns the merge base of a commit and HEAD, or the commit if they have none. Throws OpmateError NOT_FOUND if a shallow
 * clone lacks it: against the commit itself, changes of others would be those of the branch.
 */
async function findMergeBase(
  run: (args: readonly string[]) => Promise<Buffer | undefined>,
  commit: string,
  { root, shown }: { root: string; shown: string },
): Promise<Buffer | string> {
  const merged = await run(['merge-base', commit, 'HEAD']);
  if (merged !== undefined) return merged;
  const shallow = await run(['rev-parse', '--is-shallow-repository']);
  if (shallow?.toString().trim() !== 'true') return commit;
  throw new OpmateError('NOT_FOUND', `no common ancestor of ${shown} and HEAD in a shallow clone`, {
    subject: root,
    hint: 'run git fetch with unshallow to get the history',
  });
}
