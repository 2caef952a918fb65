import { execFileSync } from 'node:child_process';
import { createHash, randomBytes } from 'node:crypto';
import { chmod, readFile, readdir, rm, symlink, writeFile } from 'node:fs/promises';
import path from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { defaultArchiveLimits } from '../../../../src/archive/limits.js';
import type { GitPlace } from '../../../../src/source/place.js';
import { commitOfGit } from '../../../../src/source/drivers/git.js';
import { createAuthority } from '../../../support/certificates.js';
import { type Workbench, failureOf, openWorkbench } from '../../../support/connect.js';
import {
  type GitServer,
  type GitServerOptions,
  gitRepository,
  startGitServer,
} from '../../../support/git-server.js';
import { directoryWith } from '../../../support/temporary.js';
import { contentOptions, placedAt, type Opening, openWith } from '../content/content-world.js';

let bench: Workbench;
let options: Opening;
const servers: GitServer[] = [];

beforeEach(async () => {
  bench = await openWorkbench();
  options = await contentOptions(bench);
});

afterEach(async () => {
  for (const server of servers.splice(0)) await server.close();
  await bench.close();
});

async function serve(more: GitServerOptions): Promise<GitServer> {
  const server = await startGitServer(more);
  servers.push(server);
  return server;
}

/** One file of a source. */
async function read(source: Omit<GitPlace, 'kind'>, file = 'a.yaml', more: Partial<Opening> = {}) {
  const opened = await openWith([placedAt('src', { kind: 'git', ...source })], { ...options, ...more });
  try {
    return await readFile(path.join(opened.directory, file), 'utf8');
  } finally {
    await opened.close();
    expect(await readdir(options.temporaryDirectory)).toEqual([]);
  }
}

describe('source/drivers/git', () => {
  it('finds what a revision is, and refuses what could be two', async () => {
    const { url, git, commit } = await gitRepository({ 'a.yaml': 'one' });
    const first = git('rev-parse', 'HEAD');
    git('tag', '-am', 'message', 'v1');
    git('branch', 'both');
    const second = await commit({ 'a.yaml': 'two' });
    git('tag', 'both');
    git('branch', 'release-1');
    git('branch', 'release-2');
    const find = (revision: string): Promise<string> =>
      commitOfGit({ kind: 'git', repository: url, revision }, options);
    expect(await find('main')).toBe(second);
    expect(await find('v1')).toBe(first);
    expect(await find('refs/tags/both')).toBe(second);
    expect(await find('refs/heads/both')).toBe(first);
    expect(await find(first)).toBe(first);
    expect(await failureOf(find('both'))).toMatchObject({
      code: 'INVALID',
      message: `${url}: both is ambiguous: refs/heads/both and refs/tags/both`,
    });
    expect(await failureOf(find('release'))).toMatchObject({
      message: `${url}: branch or tag release not found`,
      hint: 'use one of the full names refs/heads/release-1 and refs/heads/release-2',
    });
    expect(await find(second.slice(0, 10))).toBe(second);
    expect(await find(first.slice(0, 7))).toBe(first);
    expect(await failureOf(find(second.slice(0, 6)))).toMatchObject({
      code: 'NOT_FOUND',
      hint: `use the full commit, one of ${second}`,
    });
    expect(await failureOf(find('0123abc'))).toMatchObject({
      code: 'NOT_FOUND',
      message: `${url}: branch, tag or commit 0123abc not found`,
    });
    expect(await failureOf(find('none'))).toMatchObject({ code: 'NOT_FOUND', hint: undefined });
  });

  it.each([true, false])(
    'finds a commit in the history by its start (server filters: %j)',
    async (canFilter) => {
      const { url, git, commit } = await gitRepository({ 'a.yaml': 'one' });
      git('config', 'uploadpack.allowFilter', String(canFilter));
      const first = git('rev-parse', 'HEAD');
      // The start of a blob or tree is no commit's.
      const blob = git('rev-parse', 'HEAD:a.yaml');
      await commit({ 'a.yaml': 'two' });
      await commit({ 'a.yaml': 'three' });
      const repository = { kind: 'git', repository: url } as const;
      expect(await commitOfGit({ ...repository, revision: first.slice(0, 7) }, options)).toBe(first);
      expect(await read({ ...repository, revision: first.slice(0, 9) })).toBe('one');
      const failure = await failureOf(commitOfGit({ ...repository, revision: blob.slice(0, 7) }, options));
      expect(failure).toMatchObject({ code: 'NOT_FOUND' });
      expect(await readdir(options.temporaryDirectory)).toEqual([]);
    },
  );

  it('finds a commit of a SHA-256 repository by its start', async () => {
    const { url, directory, git, commit } = await gitRepository({});
    await rm(path.join(directory, '.git'), { recursive: true });
    git('init', '-q', '-b', 'main', '--object-format=sha256');
    const first = await commit({ 'a.yaml': 'one' });
    await commit({ 'a.yaml': 'two' });
    const source = { kind: 'git', repository: url, revision: first.slice(0, 7) } as const;
    expect(await commitOfGit(source, options)).toBe(first);
    expect(await read(source)).toBe('one');
  });

  it('refuses the start of several commits of the history', async () => {
    const { url, git, commit } = await gitRepository({ 'a.yaml': 'one' });
    // Two commits whose names start alike: parents differ in their dates only.
    const tree = git('rev-parse', 'HEAD^{tree}');
    const made = new Map<string, string>();
    let pair: [string, string] | undefined;
    for (let i = 0; pair === undefined; i++) {
      const text = `tree ${tree}\nauthor t <t@t> ${i} +0000\ncommitter t <t@t> ${i} +0000\n\nm\n`;
      const name = createHash('sha1').update(`commit ${text.length}\0${text}`).digest('hex');
      const twin = made.get(name.slice(0, 7));
      made.set(name.slice(0, 7), text);
      if (twin !== undefined) pair = [twin, text];
    }
    const names = pair.map((text) =>
      execFileSync('git', ['hash-object', '-t', 'commit', '-w', '--stdin'], {
        cwd: path.join(url.slice('file://'.length)),
        input: text,
        encoding: 'utf8',
      }).trim(),
    );
    for (const name of names)
      git('merge', '-q', '-s', 'ours', '--allow-unrelated-histories', '-m', 'm', name);
    await commit({ 'a.yaml': 'two' });
    const revision = (names[0] as string).slice(0, 7);
    const failure = await failureOf(commitOfGit({ kind: 'git', repository: url, revision }, options));
    expect(failure).toMatchObject({ code: 'INVALID', hint: 'use the full commit' });
    for (const name of names) expect(failure.message).toContain(name);
  });

  it.each(['-x', 'a b', 'a..b', 'a*', 'x^{}', 'a:b', '@{0}', 'a.lock', '/a', 'a/', 'a\\b', ''])(
    'takes %j for no ref',
    async (revision) => {
      const { url } = await gitRepository({ 'a.yaml': 'one' });
      const error = await failureOf(commitOfGit({ kind: 'git', repository: url, revision }, options));
      expect(error.message).toContain('invalid branch or tag');
    },
  );

  it('reads the bytes that are committed, whatever attributes say, and no submodule', async () => {
    const inner = await gitRepository({ 'secret.yaml': 'inner' });
    const outer = await gitRepository({
      '.gitattributes': 'hidden.yaml export-ignore\n* export-subst text eol=crlf\n',
      'hidden.yaml': 'seen\n',
      'a.yaml': '$Format:%H$\n',
    });
    outer.git('-c', 'protocol.file.allow=always', 'submodule', '-q', 'add', inner.url, 'module');
    await outer.commit();
    const { url: repository } = outer;
    expect(await read({ repository }, 'hidden.yaml')).toBe('seen\n');
    expect(await read({ repository })).toBe('$Format:%H$\n');
    const missing = await failureOf(read({ repository }, 'module/secret.yaml'));
    expect(missing).toMatchObject({ code: 'ENOENT' });
  });

  it('refuses links that lead out of the repository, and directories that do', async () => {
    const {
      url: repository,
      directory,
      commit,
    } = await gitRepository({ 'deploy/a.yaml': 'one', 'b.yaml': 'b' });
    await symlink('../b.yaml', path.join(directory, 'deploy/b.yaml'));
    await commit();
    expect(await read({ repository }, 'deploy/b.yaml')).toBe('b');
    expect(await read({ repository, directory: 'deploy' }, 'b.yaml')).toBe('b');
    await symlink('../../../../../../etc/passwd', path.join(directory, 'deploy/c.yaml'));
    await commit();
    const error = await failureOf(read({ repository, directory: 'deploy' }));
    expect(error.message).toMatch(/^src: .*deploy\/c\.yaml/);
    for (const out of ['../x', '/etc', 'a/../../b']) {
      expect(await failureOf(read({ repository, directory: out }))).toMatchObject({ code: 'UNSAFE' });
    }
    expect(await failureOf(read({ repository, directory: 'none' }))).toMatchObject({ code: 'NOT_FOUND' });
    expect((await failureOf(read({ repository, directory: ':(top)' }))).message).toContain(':(top)');
  });

  it('gives a password to the server alone, and never in arguments or messages', async () => {
    const { directory } = await gitRepository({ 'a.yaml': 'one' });
    const root = path.dirname(directory);
    const { origin, requests } = await serve({ root, credentials: 'me:s3cret' });
    const repository = `${origin}/repo.git`;
    const credentials = { type: 'basic', username: 'me', password: 's3cret' } as const;
    const refused = await failureOf(read({ repository }));
    expect(refused).toMatchObject({ code: 'AUTH', message: `${repository}: access is refused` });
    expect(await read({ repository, credentials })).toBe('one');
    const wrong = { ...credentials, password: 'wr0ng' };
    const error = await failureOf(read({ repository, credentials: wrong }));
    expect(error).toMatchObject({ code: 'AUTH' });
    expect(`${error.message} ${error.hint ?? ''} ${error.stack ?? ''}`).not.toMatch(/wr0ng|d3Iwbmc/);
    // A redirect would take the header along.
    const elsewhere = await serve({ root });
    const leading = await serve({
      root,
      instead: (request, response) => {
        response.writeHead(302, { location: `${elsewhere.origin}${request.url ?? ''}` }).end();
        return true;
      },
    });
    await failureOf(read({ repository: `${leading.origin}/repo.git`, credentials }));
    expect(elsewhere.requests).toEqual([]);
    expect(requests.length).toBeGreaterThan(0);
  });

  it('follows no redirect, with or without a password', async () => {
    const { directory } = await gitRepository({ 'a.yaml': 'a\n' });
    const target = await serve({ root: path.dirname(directory) });
    const moved = await serve({
      root: path.dirname(directory),
      instead: ({ url }, response) => {
        response.writeHead(302, { location: `${target.origin}${url}` }).end();
        return true;
      },
    });
    const failure = await failureOf(read({ repository: `${moved.origin}/repo.git` }));
    expect(failure.message).toContain('the server redirects to another URL');
    expect(target.requests).toEqual([]);
  });

  it('ends a fetch of a repository that is larger than the limit of unpacked files', async () => {
    const { directory } = await gitRepository({ 'a.yaml': randomBytes(3_000_000).toString('hex') });
    const server = await serve({ root: path.dirname(directory) });
    const limits = { ...defaultArchiveLimits, maxUnpackedSize: 1_000_000 };
    const failure = await failureOf(read({ repository: `${server.origin}/repo.git` }, 'a.yaml', { limits }));
    expect(failure).toMatchObject({
      code: 'LIMIT',
      message: expect.stringContaining('larger than the maximum of'),
    });
  });

  it('runs git and what it runs from absolute directories of PATH only', async () => {
    const planted = await directoryWith({ git: '#!/bin/sh\necho planted >&2\nexit 1\n' });
    await chmod(path.join(planted, 'git'), 0o755);
    const { url } = await gitRepository({ 'a.yaml': 'a\n' });
    const relative = path.relative(process.cwd(), planted);
    const environment = { ...options.environment, PATH: `:${relative}:.:${process.env['PATH']}` };
    expect(await read({ repository: url }, 'a.yaml', { environment })).toBe('a\n');
  });

  it('passes a password through the environment of git', async () => {
    const place = await directoryWith();
    const seen = path.join(place, 'seen');
    await writeFile(path.join(place, 'git'), `#!/bin/sh\nprintf '%s ' "$@" >> ${seen}\nexit 128\n`);
    await chmod(path.join(place, 'git'), 0o755);
    const credentials = { type: 'basic', username: 'me', password: 's3cret' } as const;
    const environment = { PATH: `${place}:${process.env['PATH'] ?? ''}` };
    const wanted = { kind: 'git', repository: 'https://localhost:1/x', branch: 'main', credentials } as const;
    await failureOf(commitOfGit(wanted, { ...options, environment }));
    const text = await readFile(seen, 'utf8');
    expect(text).toContain('ls-remote');
    expect(text).not.toMatch(/s3cret|bWU6czNjcmV0/);
  });

  it('verifies certificates unless told otherwise', async () => {
    const authority = createAuthority();
    const { directory } = await gitRepository({ 'a.yaml': 'one' });
    const { origin } = await serve({ root: path.dirname(directory), tls: authority.issue() });
    const repository = `${origin}/repo.git`;
    const error = await failureOf(read({ repository }));
    expect(error.message).toMatch(/certificate/i);
    const caFile = await bench.file('ca.pem', authority.cert);
    expect(await read({ repository }, 'a.yaml', { network: { caFile } })).toBe('one');
    expect(await read({ repository, insecureSkipTlsVerify: true })).toBe('one');
    expect(await read({ repository }, 'a.yaml', { network: { skipTlsVerify: true } })).toBe('one');
  });

  it('gives a key to ssh in a file that is gone afterwards', async () => {
    const place = await directoryWith();
    const seen = path.join(place, 'seen');
    const script = [
      '#!/bin/sh',
      `printf '%s\\n' "$@" >> ${seen}`,
      'for one in "$@"; do case "$one" in */key) cat "$one"; stat -c %a "$one";;',
      'UserKnownHostsFile=*) cat $(echo "$one" | cut -d\\" -f2);; esac; done >> ' + seen,
      'exit 255',
    ];
    await writeFile(path.join(place, 'ssh'), script.join('\n'));
    await chmod(path.join(place, 'ssh'), 0o755);
    const environment = { PATH: `${place}:${process.env['PATH'] ?? ''}` };
    const credentials = {
      type: 'ssh',
      privateKey: 'KEY',
      knownHosts: 'localhost ssh-ed25519 AAAA\n',
    } as const;
    const repository = 'ssh://git@localhost:1/x';
    await failureOf(
      commitOfGit({ kind: 'git', repository, branch: 'main', credentials }, { ...options, environment }),
    );
    const lines = (await readFile(seen, 'utf8')).split('\n');
    expect(lines).toEqual(
      expect.arrayContaining([
        'KEY',
        '600',
        'localhost ssh-ed25519 AAAA',
        'StrictHostKeyChecking=yes',
        'BatchMode=yes',
      ]),
    );
    expect(await readdir(options.temporaryDirectory)).toEqual([]);
  });

  it.each([
    ['https://me:s3cret@localhost:1/x', 'INVALID'],
    ['https://t0ken@localhost:1/x', 'INVALID'],
    ['ssh://me:s3cret@localhost:1/x', 'INVALID'],
    ['ssh://-oProxyCommand=x/x', 'INVALID'],
    ['--upload-pack=x', 'INVALID'],
    ['http://git.example/x', 'UNSAFE'],
    ['ext::sh -c x', 'INVALID'],
  ])('refuses the repository %s', async (repository, code) => {
    const error = await failureOf(commitOfGit({ kind: 'git', repository, branch: 'main' }, options));
    expect(error).toMatchObject({ code });
    expect(error.message).not.toMatch(/s3cret|t0ken/);
  });

  it('reads a commit of a server that gives out branches only', async () => {
    const { directory, git, commit } = await gitRepository({ 'a.yaml': 'one' });
    const first = git('rev-parse', 'HEAD');
    await commit({ 'a.yaml': 'two' });
    // The old protocol gives out what is advertised, and nothing else.
    const { origin } = await serve({
      root: path.dirname(directory),
      instead: (request) => {
        delete request.headers['git-protocol'];
        return false;
      },
    });
    const repository = `${origin}/repo.git`;
    expect(await read({ repository, commit: first })).toBe('one');
    const unknown = await failureOf(read({ repository, commit: 'f'.repeat(40) }));
    expect(unknown.message).toContain(repository);
  });
});
