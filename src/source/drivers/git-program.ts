import { mkdir, readdir, stat, writeFile } from 'node:fs/promises';
import path from 'node:path';
import type { Readable } from 'node:stream';
import { makeTemporaryDirectory } from '../../files/temporary-directory.js';
import { showSize } from '../../archive/limits.js';
import { type CancelOptions, mapConcurrent } from '../../core/concurrency.js';
import { LimitError, OpmateError, redactForeign, redactUrls } from '../../core/errors.js';
import { type ProgramEnd, runToEnd, streamProgram } from '../../files/run-program.js';
import { requireHttps } from './http-request.js';
import type { GitPlace } from '../place.js';
import type { SourceSession } from '../session.js';

/** Maximum size of git's messages and small responses, in bytes. */
const defaultMaxOutput = 64 * 1024;

/** Environment variables passed to git: those that locate programs, keys and proxies, none that change its behavior. */
const passedVariables = [
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

/** The part of a session that running git requires. */
export type GitOptions = Pick<
  SourceSession,
  'environment' | 'temporaryDirectory' | 'now' | 'network' | 'limits' | 'signal'
>;

/** Settings of one git run. */
export interface GitRun {
  /** Maximum duration. */
  timeoutMs: number;
  /** Working directory; default: an empty private one. */
  directory?: string;
  /** Maximum size of buffered output, in bytes; default 64 KiB. */
  maxOutput?: number;
  /** Maximum size of all files in `directory`, in bytes, which git itself does not limit; checked while it runs. */
  maxDirectorySize?: number;
}

/** The git program, configured for one repository. */
export interface Git {
  /** Runs git and returns its output. Throws OpmateError. */
  run(args: readonly string[], run: GitRun): Promise<string>;
  /** Runs git and returns its output as a stream, which fails at its end if git failed. */
  stream(args: readonly string[], run: GitRun): Readable;
}

/**
 * Calls `work` with a git isolated from configuration, hooks and prompts. Credentials of the source are passed as a
 * password in its environment or a key in a temporary private file. Requires git 2.31 or later. Throws OpmateError.
 */
export async function withGit<T>(
  source: GitPlace,
  options: GitOptions,
  work: (git: Git) => Promise<T>,
): Promise<T> {
  checkRepository(source, options);
  const temporary = await makeTemporaryDirectory(options.temporaryDirectory, options.now());
  try {
    const environment = getEnvironment(source, options, await writeSshFiles(source, temporary.path));
    // Git reads the configuration of a repository around its working directory, and others may have one in /tmp.
    const directory = path.join(temporary.path, 'empty');
    await mkdir(directory, { mode: 0o700 });
    const ceiling = { GIT_CEILING_DIRECTORIES: `${temporary.path}:${path.dirname(temporary.path)}` };
    return await work(createGit(source, { ...environment, ...ceiling }, directory, options));
  } finally {
    await temporary.remove();
  }
}

/** Writes the files of ssh credentials to a private directory, and returns the arguments of ssh. */
async function writeSshFiles({ credentials }: GitPlace, directory: string): Promise<string[]> {
  if (credentials?.type !== 'ssh') return [];
  const key = path.join(directory, 'key');
  const { privateKey, knownHosts } = credentials;
  await writeFile(key, privateKey.endsWith('\n') ? privateKey : `${privateKey}\n`, { mode: 0o600 });
  const isolated = ['-F', '/dev/null', '-o', 'IdentitiesOnly=yes', '-o', 'IdentityAgent=none'];
  const ssh = [...isolated, '-i', escapeSshPath(key)];
  if (knownHosts === undefined) return ssh;
  const hosts = path.join(directory, 'known_hosts');
  await writeFile(hosts, knownHosts, { mode: 0o600 });
  const knownFiles = [
    '-o',
    `UserKnownHostsFile="${escapeSshPath(hosts)}"`,
    '-o',
    'GlobalKnownHostsFile=/dev/null',
  ];
  return [...ssh, ...knownFiles];
}

/** Escapes the tokens that ssh expands in file names. */
function escapeSshPath(file: string): string {
  return file.replaceAll('%', '%%');
}

function checkRepository(source: GitPlace, { network }: GitOptions): void {
  const { repository, credentials } = source;
  const url = URL.canParse(repository) ? new URL(repository) : undefined;
  const shown = redactUrls(repository);
  const isSsh = url === undefined ? /^[^/:]+:/.test(repository) : url.protocol === 'ssh:';
  if (repository.startsWith('-') || /^[a-z+]+:\/\/-/.test(repository) || /[\0-\x20\x7f]/.test(repository)) {
    throw new OpmateError('INVALID', 'invalid git repository URL', { subject: JSON.stringify(shown) });
  }
  if (url !== undefined && (url.password !== '' || (url.username !== '' && url.protocol !== 'ssh:'))) {
    throw new OpmateError('INVALID', 'URL must not contain credentials', {
      subject: shown,
      hint: 'move them to a Secret in a file, and specify it with options.secrets DIRECTORY and options.secret NAME',
    });
  }
  if (url !== undefined) requireHttps(url, shown, network);
  if (credentials === undefined) return;
  const isSupported = isSsh
    ? credentials.type === 'ssh'
    : credentials.type === 'basic' && /^https?:$/.test(url?.protocol ?? '');
  if (isSupported) return;
  if (url?.protocol === 'file:' || (url === undefined && !isSsh)) {
    throw new OpmateError('INVALID', 'unexpected credentials for a local repository', {
      subject: shown,
      hint: 'remove the Secret: local repositories need no credentials',
    });
  }
  const expectedType = isSsh ? 'kubernetes.io/ssh-auth' : 'kubernetes.io/basic-auth';
  throw new OpmateError('INVALID', `unsupported credentials type ${credentials.type} for this URL`, {
    subject: shown,
    hint: `use a Secret of type ${expectedType}`,
  });
}

function getEnvironment(
  { repository, credentials, insecureSkipTlsVerify }: GitPlace,
  { environment, network }: GitOptions,
  sshArguments: readonly string[],
): Record<string, string> {
  const env: Record<string, string> = {};
  for (const name of passedVariables) {
    const value = environment[name];
    if (value !== undefined) env[name] = value;
  }
  const isUnverified = insecureSkipTlsVerify === true || network?.skipTlsVerify === true;
  const settings: [string, string][] = [
    ['core.hooksPath', '/dev/null'],
    // Git checks neither the address nor the protocol of a redirect, and sends the header along.
    ['http.followRedirects', 'false'],
    ['http.lowSpeedLimit', '1000'],
    ['http.lowSpeedTime', '60'],
    ['gc.auto', '0'],
  ];
  if (isUnverified) settings.push(['http.sslVerify', 'false']);
  if (network?.caFile !== undefined) settings.push(['http.sslCAInfo', network.caFile]);
  if (credentials?.type === 'basic') {
    const { username, password } = credentials;
    const token = Buffer.from(`${username}:${password}`).toString('base64');
    const { origin, pathname } = new URL(repository);
    settings.push([`http.${origin}${pathname}.extraHeader`, `Authorization: Basic ${token}`]);
  }
  settings.forEach(([key, value], index) => {
    env[`GIT_CONFIG_KEY_${index}`] = key;
    env[`GIT_CONFIG_VALUE_${index}`] = value;
  });
  const ssh = ['ssh', '-o', 'BatchMode=yes', '-o', 'ConnectTimeout=30', ...sshArguments];
  const isSkipped = insecureSkipTlsVerify === true;
  ssh.push('-o', `StrictHostKeyChecking=${isSkipped ? 'no' : 'yes'}`);
  if (isSkipped) ssh.push('-o', 'UserKnownHostsFile=/dev/null');
  const isHttp = /^http:/i.test(repository);
  return Object.assign(env, {
    LC_ALL: 'C',
    GIT_CONFIG_COUNT: String(settings.length),
    GIT_CONFIG_NOSYSTEM: '1',
    GIT_CONFIG_GLOBAL: '/dev/null',
    GIT_ATTR_NOSYSTEM: '1',
    GIT_LITERAL_PATHSPECS: '1',
    GIT_TERMINAL_PROMPT: '0',
    // No program: it would inherit the environment of git with its credentials.
    GIT_ASKPASS: '',
    GIT_ALLOW_PROTOCOL: isHttp ? 'http:https' : 'https:ssh:file',
    GIT_SSH_COMMAND: ssh.map(quoteShell).join(' '),
  });
}

function quoteShell(text: string): string {
  return /^[\w@%+=:,./-]+$/.test(text) ? text : `'${text.replaceAll("'", "'\\''")}'`;
}

function createGit(
  source: GitPlace,
  environment: Record<string, string>,
  workingDirectory: string,
  { signal }: Pick<GitOptions, 'signal'>,
): Git {
  const getOptions = (args: readonly string[], { directory, timeoutMs, maxOutput }: GitRun) => ({
    name: `${redactUrls(source.repository)}: git ${args[0]}`,
    environment,
    workingDirectory: directory ?? workingDirectory,
    signal,
    timeoutMs,
    timeoutCode: 'NETWORK' as const,
    maxOutput: maxOutput ?? defaultMaxOutput,
    installHint: 'install git: sources of type Git require it',
  });
  return {
    async run(args, gitRun) {
      const run = (more: CancelOptions) => runToEnd('git', args, { ...getOptions(args, gitRun), ...more });
      const { stdout, ...end } = await runWithinSize(run, gitRun, { signal });
      if (end.code !== 0) throw toError(source, args, end);
      return stdout.toString();
    },
    stream: (args, gitRun) =>
      streamProgram('git', args, getOptions(args, gitRun), (end) => toError(source, args, end)),
  };
}

const sizeIntervalMs = 250;

/** Runs a program that writes to a directory, and ends it when the directory becomes too large. */
async function runWithinSize<T>(
  run: (options: CancelOptions) => Promise<T>,
  { directory, maxDirectorySize }: GitRun,
  { signal }: CancelOptions,
): Promise<T> {
  if (directory === undefined || maxDirectorySize === undefined) return run({ signal });
  const tooLarge = new AbortController();
  const check = async (): Promise<void> => {
    if ((await measureDirectory(directory)) <= maxDirectorySize || tooLarge.signal.aborted) return;
    tooLarge.abort(new LimitError(`repository larger than the maximum of ${showSize(maxDirectorySize)}`));
  };
  const timer = setInterval(() => void check(), sizeIntervalMs);
  const stop = AbortSignal.any([tooLarge.signal, ...(signal === undefined ? [] : [signal])]);
  try {
    const result = await run({ signal: stop });
    await check();
    if (tooLarge.signal.aborted) throw tooLarge.signal.reason;
    return result;
  } catch (error) {
    throw tooLarge.signal.aborted ? tooLarge.signal.reason : error;
  } finally {
    clearInterval(timer);
  }
}

/** Returns the size of all files below a directory; files that vanish meanwhile have none. */
async function measureDirectory(directory: string): Promise<number> {
  const entries = await readdir(directory, { withFileTypes: true, recursive: true }).catch(() => []);
  const files = entries.filter((entry) => entry.isFile());
  const sizes = await mapConcurrent(files, 16, ({ parentPath, name }) =>
    stat(path.join(parentPath, name)).then(
      ({ size }) => size,
      () => 0,
    ),
  );
  return sizes.reduce((sum, size) => sum + size, 0);
}

/** Returns the error of a failed run, with git's `fatal:` line or else its last message. */
function toError(
  { repository, credentials }: GitPlace,
  args: readonly string[],
  { messages }: ProgramEnd,
): OpmateError {
  const shown = redactUrls(repository);
  const lines = messages.split('\n').filter((line) => /^(?:fatal|error|remote): /.test(line));
  const detail = (lines.find((line) => line.startsWith('fatal: ')) ?? lines.at(-1) ?? 'failed').slice(0, 500);
  if (
    /could not read Username|Authentication failed|Permission denied|returned error: 40[13]/.test(
      detail + messages,
    )
  ) {
    return new OpmateError('AUTH', 'access is refused', {
      subject: shown,
      hint:
        credentials === undefined
          ? 'specify a Secret with secretRef in catalogs or options.secret for bundles, and its directory with options.secrets'
          : 'check the credentials in the Secret and their read access',
    });
  }
  if (/returned error: 30\d|redirect/i.test(detail)) {
    return new OpmateError('NETWORK', 'the server redirects to another URL', {
      subject: shown,
      hint: 'use the URL of the repository that the server redirects to, such as one that ends in .git',
    });
  }
  const isMissing = /not found|does not exist|not appear to be a git|did not match/.test(detail);
  const problem = `git ${args[0]}: ${redactForeign(detail.replace(/^\w+: /, ''))}`;
  return new OpmateError(isMissing ? 'NOT_FOUND' : 'NETWORK', problem, { subject: shown });
}
