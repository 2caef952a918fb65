import { rm } from 'node:fs/promises';
import { isGitRefName } from '../git-names.js';
import path from 'node:path';
import { normalizeEntryPath } from '../../archive/entry-path.js';
import { type ExtractedLayers, extractLayers } from '../../archive/layers.js';
import { makeDirectory } from '../../files/make-directory.js';
import { withTemporaryDirectory } from '../../files/temporary-directory.js';
import { CancelledError, OpmateError, redactUrls } from '../../core/errors.js';
import { defaultArchiveLimits } from '../../archive/limits.js';
import { quoteGo } from '../../document/go-json.js';
import { type GitPlace, getDirectory, isCommit } from '../place.js';
import type { SourceSession } from '../session.js';
import type { ResolvedPlace } from './driver.js';
import { type Git, type GitOptions, type GitRun, withGit } from './git-program.js';
import { toUnpackedPlace } from './local.js';

/** Timeouts for listing refs and for fetching a commit. */
const listTimeoutMs = 60_000;
const fetchTimeoutMs = 15 * 60_000;
/** Maximum size of a list of refs, in bytes. */
const maxRefsBytes = 16 * 1024 * 1024;
/** Maximum number of names in a hint. */
const maxShown = 5;

/**
 * Resolves the commit of a branch or tag with the `git` program; a pinned commit needs no request. Throws
 * OpmateError.
 */
export async function resolveGit(place: GitPlace, session: SourceSession): Promise<ResolvedPlace> {
  const { repository } = place;
  const below = getDirectory(place);
  const commit = await commitOfGit(place, session);
  const ref = formatPinnedGit(place, commit);
  const state = { id: `git ${repository} ${commit}`, ref };
  return toUnpackedPlace(state, session, { directory: below }, async (destination, roots) => {
    const wanted = roots.map((root) => normalizeEntryPath(`${below}/${root}`, ref));
    const { problems } = await fetchGit(place, commit, destination, wanted, session);
    if (!roots.includes('')) await makeDirectory(path.join(destination, below), 0o700);
    return problems;
  });
}

/** Returns the reference of a commit, as `parsePlace` takes it. */
function formatPinnedGit({ repository, directory }: GitPlace, commit: string): string {
  return `git+${redactUrls(repository)}#${commit}${directory === undefined ? '' : `:${directory}`}`;
}

/**
 * Returns the current commit of a source; a pinned commit needs no request. A `revision` is a branch, a tag, a commit, or
 * the start of one commit: of a branch or tag, else of their histories, which are fetched without files where the server
 * can. Throws OpmateError, with both names for an ambiguous revision.
 */
export async function commitOfGit(source: GitPlace, options: GitOptions): Promise<string> {
  const { branch, tag, commit, revision } = source;
  checkNames(source);
  if (commit !== undefined) return commit;
  if (revision !== undefined && isCommit(revision)) return revision;
  return withGit(source, options, async (git) => {
    if (revision !== undefined) return resolveRevision(git, source.repository, revision, options);
    const wanted =
      branch !== undefined ? `refs/heads/${branch}` : tag !== undefined ? `refs/tags/${tag}` : 'HEAD';
    const commit = (await readRefs(git, source.repository, [wanted])).get(wanted);
    if (commit !== undefined) return commit;
    const missing =
      branch !== undefined ? `branch ${branch}` : tag !== undefined ? `tag ${tag}` : 'default branch';
    throw new OpmateError('NOT_FOUND', `${missing} not found`, { subject: redactUrls(source.repository) });
  });
}

function checkNames({ repository, branch, tag, commit, revision }: GitPlace): void {
  const shown = redactUrls(repository);
  if (commit !== undefined && !isCommit(commit)) {
    throw new OpmateError('INVALID', `invalid commit ${quoteGo(commit)}`, {
      subject: shown,
      hint: 'use all 40 hexadecimal digits, in lower case',
    });
  }
  for (const name of [branch, tag, revision]) {
    if (name === undefined || isGitRefName(name)) continue;
    throw new OpmateError('INVALID', `invalid branch or tag ${quoteGo(name)}`, { subject: shown });
  }
}

/** Returns commits by ref name; annotated tags are peeled to their commits. */
async function readRefs(
  git: Git,
  repository: string,
  names: readonly string[],
): Promise<Map<string, string>> {
  const wanted = names.flatMap((name) => (name.startsWith('refs/tags/') ? [name, `${name}^{}`] : [name]));
  const run = { timeoutMs: listTimeoutMs, maxOutput: maxRefsBytes };
  const response = await git.run(['ls-remote', '--', repository, ...wanted], run);
  const commits = new Map<string, string>();
  for (const line of response.split('\n')) {
    const [, commit, name] = /^([0-9a-f]{40}|[0-9a-f]{64})\t(\S+)$/.exec(line) ?? [];
    if (commit === undefined || name === undefined) continue;
    const isPeeled = name.endsWith('^{}');
    const key = isPeeled ? name.slice(0, -'^{}'.length) : name;
    if (isPeeled || !commits.has(key)) commits.set(key, commit);
  }
  return commits;
}

/** Minimum digits of an abbreviated commit: the default of Git. */
const minAbbreviation = 7;

async function resolveRevision(
  git: Git,
  repository: string,
  revision: string,
  options: GitOptions,
): Promise<string> {
  const shown = redactUrls(repository);
  const places = /^refs\/(?:heads|tags)\//.test(revision)
    ? [revision]
    : [`refs/heads/${revision}`, `refs/tags/${revision}`];
  const exact = await readRefs(git, repository, places);
  const matches = places.filter((name) => exact.has(name));
  if (matches.length > 1) {
    throw new OpmateError('INVALID', `${revision} is ambiguous: ${matches.join(' and ')}`, {
      subject: shown,
      hint: 'use the full name of one of them',
    });
  }
  if (matches[0] !== undefined) return exact.get(matches[0]) as string;
  const isShort = /^[0-9a-f]{4,63}$/.test(revision);
  const all = await readRefs(
    git,
    repository,
    isShort ? ['refs/heads/*', 'refs/tags/*'] : places.map((name) => `${name}*`),
  );
  const longer = [...all].filter(([name]) => places.some((place) => name.startsWith(place)));
  if (longer.length > 0) {
    const names = longer.map(([name]) => name);
    throw new OpmateError('NOT_FOUND', `branch or tag ${revision} not found`, {
      subject: shown,
      hint: `use one of the full names ${formatNames(names)}`,
    });
  }
  if (isShort) {
    const commits = [...new Set(all.values())].filter((commit) => commit.startsWith(revision));
    const [commit] = commits;
    const isLong = revision.length >= minAbbreviation;
    if (commit !== undefined && commits.length === 1 && isLong) return commit;
    const [known = revision] = all.values();
    if (commit === undefined && isLong) return findInHistory(git, { repository, revision, known }, options);
    throw new OpmateError('NOT_FOUND', `branch or tag ${revision} not found`, {
      subject: shown,
      hint:
        commit === undefined
          ? `use at least ${minAbbreviation} digits of a commit`
          : `use the full commit, one of ${formatNames(commits)}`,
    });
  }
  throw new OpmateError('NOT_FOUND', `branch or tag ${revision} not found`, { subject: shown });
}

/** Returns the commit that starts with `revision` in the history of `known` and other refs. Throws OpmateError. */
async function findInHistory(
  git: Git,
  { repository, revision, known }: { repository: string; revision: string; known: string },
  options: GitOptions,
): Promise<string> {
  const subject = redactUrls(repository);
  return withBareRepository(git, known, options, async (run) => {
    // Commits without their files, where the server can omit them.
    await git.run([...fetchHistory, '--filter=tree:0', '--', repository, ...allRefs], run);
    const objects = await git.run(['rev-parse', `--disambiguate=${revision}`], run);
    const commits: string[] = [];
    for (const object of objects.split('\n').filter((line) => line !== '')) {
      if ((await git.run(['cat-file', '-t', object], run)).trim() === 'commit') commits.push(object);
    }
    const [commit, other] = commits;
    if (commit !== undefined && other === undefined) return commit;
    if (commit === undefined) {
      throw new OpmateError('NOT_FOUND', `branch, tag or commit ${revision} not found`, { subject });
    }
    const names = formatNames(commits);
    throw new OpmateError('INVALID', `${revision} is ambiguous: ${names}`, {
      subject,
      hint: 'use the full commit',
    });
  });
}

function formatNames(names: readonly string[]): string {
  const shown = names.slice(0, maxShown);
  const more = names.length - shown.length;
  return more > 0 ? `${shown.join(', ')} and ${more} more` : shown.join(' and ');
}

/**
 * Unpacks the files of a commit under `roots` to `destination`, which must not exist. Git attributes are ignored;
 * submodules are empty directories. Throws OpmateError.
 */
async function fetchGit(
  source: GitPlace,
  commit: string,
  destination: string,
  roots: readonly string[],
  session: SourceSession,
): Promise<ExtractedLayers> {
  return withGit(source, session, (git) =>
    withBareRepository(git, commit, session, async (run) => {
      await fetchCommit(git, source, commit, run);
      const label = formatPinnedGit(source, commit);
      const unpack = (paths: readonly string[]): Promise<ExtractedLayers> => {
        // Attributes of the repository would exclude or change files.
        const args = ['archive', '--format=tar', '--worktree-attributes', commit, ...paths];
        const layer = { label, open: () => Promise.resolve(git.stream(args, run)) };
        return extractLayers([layer], destination, { ...session, roots });
      };
      if (source.directory === undefined) return unpack([]);
      const extracted = await unpack(['--', getDirectory(source)]);
      if (extracted.problems.size === 0) return extracted;
      // The target of a link may be elsewhere in the repository.
      await rm(destination, { recursive: true });
      return unpack([]);
    }),
  );
}

/** Calls `work` with an empty temporary repository for objects named like `commit`, and the limits of fetching to it. */
async function withBareRepository<T>(
  git: Git,
  commit: string,
  options: Pick<GitOptions, 'temporaryDirectory' | 'now' | 'limits'>,
  work: (run: GitRun) => Promise<T>,
): Promise<T> {
  return withTemporaryDirectory(options, async (directory) => {
    const { maxUnpackedSize } = options.limits ?? defaultArchiveLimits;
    const run = { timeoutMs: fetchTimeoutMs, directory, maxDirectorySize: maxUnpackedSize };
    const format = commit.length === 64 ? ['--object-format=sha256'] : [];
    await git.run(['init', '--quiet', '--bare', ...format], run);
    return work(run);
  });
}

/** Arguments that fetch only what is named, and all branches and tags. */
const fetchHistory = ['fetch', '--quiet', '--no-tags', '--no-recurse-submodules'];
const allRefs = ['+refs/heads/*:refs/heads/*', '+refs/tags/*:refs/tags/*'];

async function fetchCommit(git: Git, source: GitPlace, commit: string, run: GitRun): Promise<void> {
  const { repository, branch, tag } = source;
  try {
    await git.run([...fetchHistory, '--depth=1', '--', repository, commit], run);
    return;
  } catch (error) {
    if (error instanceof CancelledError) throw error;
    // Some servers do not allow fetching a commit by hash.
    if (!(error instanceof OpmateError) || ['AUTH', 'UNSUPPORTED', 'LIMIT'].includes(error.code)) throw error;
    if (source.commit === undefined && source.revision === undefined) {
      const ref =
        branch !== undefined ? `refs/heads/${branch}` : tag !== undefined ? `refs/tags/${tag}` : 'HEAD';
      await git.run([...fetchHistory, '--depth=1', '--', repository, ref], run);
      const fetched = (await git.run(['rev-parse', '--verify', 'FETCH_HEAD^{commit}'], run)).trim();
      if (fetched === commit) return;
      throw new OpmateError('DIGEST', `${ref} has moved: expected ${commit}, got ${fetched}`, {
        subject: redactUrls(repository),
      });
    }
    await git.run([...fetchHistory, '--', repository, ...allRefs], run);
    const known = await git.run(['cat-file', '-t', commit], run).catch(() => '');
    if (known.trim() !== 'commit') throw error;
  }
}
