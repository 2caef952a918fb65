import { writeFile } from 'node:fs/promises';
import path from 'node:path';
import type { Readable } from 'node:stream';
import { makeTemporaryDirectory } from '../../files/temporary-directory.js';
import { OpmateError, redactForeign, redactUrls } from '../../core/errors.js';
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
  'environment' | 'temporaryDirectory' | 'now' | 'network' | 'signal'
>;

/** Settings of one git run. */
interface GitRun {
  /** Maximum duration. */
  timeoutMs: number;
  /** Working directory; default: the temporary directory. */
  directory?: string;
  /** Maximum size of buffered output, in bytes; default 64 KiB. */
  maxOutput?: number;
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
  const { credentials } = source;
  if (credentials?.type !== 'ssh')
    return work(createGit(source, getEnvironment(source, options, []), options));
  const temporary = await makeTemporaryDirectory(options.temporaryDirectory, options.now());
  try {
    const key = path.join(temporary.path, 'key');
    const { privateKey, knownHosts } = credentials;
    await writeFile(key, privateKey.endsWith('\n') ? privateKey : `${privateKey}\n`, { mode: 0o600 });
    const ssh = [
      '-F',
      '/dev/null',
      '-o',
      'IdentitiesOnly=yes',
      '-o',
      'IdentityAgent=none',
      '-i',
      escapeSshPath(key),
    ];
    if (knownHosts !== undefined) {
      const hosts = path.join(temporary.path, 'known_hosts');
      await writeFile(hosts, knownHosts, { mode: 0o600 });
      ssh.push('-o', `UserKnownHostsFile="${escapeSshPath(hosts)}"`, '-o', 'GlobalKnownHostsFile=/dev/null');
    }
    return await work(createGit(source, getEnvironment(source, options, ssh), options));
  } finally {
    await temporary.remove();
  }
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
      hint: 'move them to a Secret in a file, and specify it with --secrets DIRECTORY and --secret NAME',
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
    // Git would send the header to the target of a redirect.
    ['http.followRedirects', credentials?.type === 'basic' ? 'false' : 'initial'],
    ['http.lowSpeedLimit', '1000'],
    ['http.lowSpeedTime', '60'],
    ['gc.auto', '0'],
  ];
  if (isUnverified) settings.push(['http.sslVerify', 'false']);
  if (network?.caFile !== undefined) settings.push(['http.sslCAInfo', network.caFile]);
  if (credentials?.type === 'basic') {
    const { username, password } = credentials;
    const token = Buffer.from(`${username}:${password}`).toString('base64');
    settings.push(['http.extraHeader', `Authorization: Basic ${token}`]);
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

function createGit(source: GitPlace, environment: Record<string, string>, options: GitOptions): Git {
  const { signal, temporaryDirectory } = options;
  const getOptions = (args: readonly string[], { directory, timeoutMs, maxOutput }: GitRun) => ({
    name: `${redactUrls(source.repository)}: git ${args[0]}`,
    environment,
    workingDirectory: directory ?? temporaryDirectory,
    signal,
    timeoutMs,
    timeoutCode: 'NETWORK' as const,
    maxOutput: maxOutput ?? defaultMaxOutput,
    installHint: 'install git: sources of type Git require it',
  });
  return {
    async run(args, gitRun) {
      const { stdout, ...end } = await runToEnd('git', args, getOptions(args, gitRun));
      if (end.code !== 0) throw toError(source, args, end);
      return stdout.toString();
    },
    stream: (args, gitRun) =>
      streamProgram('git', args, getOptions(args, gitRun), (end) => toError(source, args, end)),
  };
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
          ? 'specify a Secret with secretRef in catalogs or --secret for bundles, and its directory with --secrets'
          : 'check the credentials in the Secret and their read access',
    });
  }
  const isMissing = /not found|does not exist|not appear to be a git|did not match/.test(detail);
  const problem = `git ${args[0]}: ${redactForeign(detail.replace(/^\w+: /, ''))}`;
  return new OpmateError(isMissing ? 'NOT_FOUND' : 'NETWORK', problem, { subject: shown });
}
