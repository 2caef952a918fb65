import { type ChildProcess, spawn } from 'node:child_process';
import { PassThrough, type Readable } from 'node:stream';
import path from 'node:path';
import { extractLayers } from '../archive/layers.js';
import { openInTemporaryDirectory } from '../archive/temporary-directory.js';
import { onAbort } from '../core/concurrency.js';
import { CancelledError, OpmateError, redact, systemCode, systemReason } from '../core/errors.js';
import { makeDirectory } from '../oci/make-directory.js';
import { type CatalogOrigin, type FoundOrigin, type OriginOptions, directoryWithin } from './origin.js';
import type { CatalogSource } from './source.js';

type GitOrigin = Extract<CatalogOrigin, { type: 'Git' }>;

/** How long asking for the commit of a branch may take, and how long fetching it. */
const askMs = 60_000;
const fetchMs = 15 * 60_000;
/** What is read of the messages and answers of git. */
const maxOutput = 64 * 1024;

/** Variables that git is given: what finds programs, keys and proxies, nothing that changes what it does. */
const passedOn = [
  'PATH',
  'HOME',
  'SSH_AUTH_SOCK',
  'HTTPS_PROXY',
  'https_proxy',
  'HTTP_PROXY',
  'http_proxy',
  'NO_PROXY',
  'no_proxy',
  'ALL_PROXY',
  'all_proxy',
  'SSL_CERT_FILE',
];

/**
 * Asks which commit a branch or tag is, with the program `git`; a commit that is named is not asked for. Needs git
 * 2.31 or newer. Throws OpmateError.
 */
export async function lookAtGit(origin: GitOrigin, options: OriginOptions): Promise<FoundOrigin> {
  const { repository, directory } = origin;
  const commit = origin.commit ?? (await commitOf(origin, options));
  return {
    state: {
      id: `git ${repository} ${commit}${directory === undefined ? '' : ` ${directory}`}`,
      ref: `${repository}@${commit}`,
    },
    isImmutable: true,
    open: () => openCommit(origin, commit, options),
  };
}

async function commitOf(origin: GitOrigin, options: OriginOptions): Promise<string> {
  const { repository, branch, tag } = origin;
  const wanted =
    branch !== undefined
      ? [`refs/heads/${branch}`]
      : tag !== undefined
        ? [`refs/tags/${tag}`, `refs/tags/${tag}^{}`]
        : ['HEAD'];
  const args = ['ls-remote', '--', repository, ...wanted];
  const answer = await git(args, { ...options, repository, timeoutMs: askMs });
  const commits = new Map<string, string>();
  for (const line of answer.split('\n')) {
    const [, commit, name] = /^([0-9a-f]{40}|[0-9a-f]{64})\t(\S+)$/.exec(line) ?? [];
    if (commit !== undefined && name !== undefined) commits.set(name, commit);
  }
  // Of a tag that is an object of its own, the commit that it is about.
  const found = [...wanted].reverse().flatMap((name) => commits.get(name) ?? []);
  if (found[0] !== undefined) return found[0];
  const what =
    branch !== undefined ? `branch ${branch}` : tag !== undefined ? `tag ${tag}` : 'default branch';
  throw new OpmateError('NOT_FOUND', `${repository}: there is no ${what}`);
}

async function openCommit(origin: GitOrigin, commit: string, options: OriginOptions): Promise<CatalogSource> {
  const { repository, branch, tag, directory } = origin;
  const { limits, signal, logger } = options;
  const ref = `${repository}@${commit}`;
  return openInTemporaryDirectory(options, async (temporary) => {
    const clone = path.join(temporary, 'clone.git');
    await makeDirectory(clone, 0o700);
    const run = { ...options, repository, timeoutMs: fetchMs, directory: clone };
    await git(
      ['init', '--quiet', '--bare', ...(commit.length === 64 ? ['--object-format=sha256'] : [])],
      run,
    );
    const fetch = ['fetch', '--quiet', '--depth=1', '--no-tags', '--no-recurse-submodules', '--', repository];
    const named =
      branch !== undefined ? `refs/heads/${branch}` : tag !== undefined ? `refs/tags/${tag}` : 'HEAD';
    // Not every server gives out commits that are asked for by name.
    await git([...fetch, commit], run).catch((error: unknown) => {
      if (origin.commit !== undefined || error instanceof CancelledError) throw error;
      return git([...fetch, named], run);
    });
    const fetched = (await git(['rev-parse', '--verify', 'FETCH_HEAD^{commit}'], run)).trim();
    if (fetched !== commit) {
      throw new OpmateError('DIGEST', `${repository}: ${named} is at ${fetched} by now, not at ${commit}`);
    }
    const root = path.join(temporary, 'tree');
    const args = ['archive', '--format=tar', commit, ...(directory === undefined ? [] : ['--', directory])];
    const layer = { label: ref, open: () => Promise.resolve(gitStream(args, run)) };
    await extractLayers([layer], root, { roots: [directory ?? ''], limits, signal, logger });
    const catalog = await directoryWithin(root, directory, ref);
    return { kind: 'catalog', catalog, close: () => catalog.close() };
  });
}

interface GitOptions extends OriginOptions {
  repository: string;
  timeoutMs: number;
  directory?: string;
}

/** Starts git so that no configuration, hook or prompt of anybody has a say. */
function start(args: readonly string[], options: GitOptions): ChildProcess {
  const { environment, directory } = options;
  const env: Record<string, string> = {};
  for (const name of passedOn) {
    const value = environment[name];
    if (value !== undefined) env[name] = value;
  }
  Object.assign(env, {
    LC_ALL: 'C',
    GIT_CONFIG_NOSYSTEM: '1',
    GIT_CONFIG_GLOBAL: '/dev/null',
    GIT_ATTR_NOSYSTEM: '1',
    GIT_TERMINAL_PROMPT: '0',
    GIT_ASKPASS: 'true',
    GIT_ALLOW_PROTOCOL: 'https:ssh:file',
    GIT_SSH_COMMAND: 'ssh -o BatchMode=yes -o ConnectTimeout=30',
  });
  const settings = [
    'core.hooksPath=/dev/null',
    'http.followRedirects=initial',
    'http.lowSpeedLimit=1000',
    'http.lowSpeedTime=60',
  ];
  const leading = settings.flatMap((setting) => ['-c', setting]);
  return spawn('git', [...leading, ...args], {
    cwd: directory ?? options.temporaryDirectory,
    env,
    stdio: ['ignore', 'pipe', 'pipe'],
  });
}

/** Runs git to its end; its answer is small. */
async function git(args: readonly string[], options: GitOptions): Promise<string> {
  const chunks: Buffer[] = [];
  let size = 0;
  for await (const chunk of gitStream(args, options)) {
    size += (chunk as Buffer).length;
    if (size > maxOutput) throw new OpmateError('LIMIT', `${options.repository}: git answers too much`);
    chunks.push(chunk as Buffer);
  }
  return Buffer.concat(chunks).toString();
}

/** What git prints; fails at its end when git did. */
function gitStream(args: readonly string[], options: GitOptions): Readable {
  const { repository, timeoutMs, signal } = options;
  const child = start(args, options);
  const output = new PassThrough();
  let messages = '';
  let fault: OpmateError | undefined;
  const stop = (error: OpmateError): void => {
    fault ??= error;
    child.kill('SIGKILL');
    // Its helpers end by themselves, and nobody waits for them.
    child.stdout?.destroy();
    child.stderr?.destroy();
  };
  const timer = setTimeout(() => {
    stop(new OpmateError('NETWORK', `${repository}: git ${args[0]}: no end after ${timeoutMs / 1000} s`));
  }, timeoutMs);
  const unwatch = onAbort(signal, () => stop(new CancelledError()));
  child.stderr?.on('data', (chunk: Buffer) => {
    if (messages.length < maxOutput) messages += chunk.toString();
  });
  child.stdout?.pipe(output, { end: false });
  output.once('close', () => stop(new CancelledError()));
  const finish = (error: OpmateError | undefined): void => {
    clearTimeout(timer);
    unwatch();
    if (error === undefined) output.end();
    else output.destroy(error);
  };
  child.once('error', (error) => finish(startError(error)));
  child.once('close', (code) => {
    finish(fault ?? (code === 0 ? undefined : failure(repository, args[0] as string, messages)));
  });
  return output;
}

function startError(error: unknown): OpmateError {
  const isMissing = systemCode(error) === 'ENOENT';
  return new OpmateError(
    isMissing ? 'UNSUPPORTED' : 'IO',
    `git: ${isMissing ? 'not installed' : systemReason(error)}`,
    {
      hint: 'sources of type Git need the program git',
      cause: error,
    },
  );
}

/** The last line that git says is what was wrong. */
function failure(repository: string, command: string, messages: string): OpmateError {
  const lines = messages.split('\n').filter((line) => /^(?:fatal|error|remote): /.test(line));
  const said = (lines.find((line) => line.startsWith('fatal: ')) ?? lines.at(-1) ?? 'failed').slice(0, 500);
  const isMissing = /not found|does not exist|not appear to be a git|did not match/.test(said);
  const message = redact(`${repository}: git ${command}: ${said.replace(/^\w+: /, '')}`);
  return new OpmateError(isMissing ? 'NOT_FOUND' : 'NETWORK', message);
}
