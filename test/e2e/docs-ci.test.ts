import { chmod, readFile, readdir, rm, symlink, writeFile } from 'node:fs/promises';
import path from 'node:path';
import { load } from 'js-yaml';
import { beforeAll, describe, expect, it } from 'vitest';
import { catalogOf } from './catalogs.js';
import { type Action, type Task, createCiRunner, readJobs } from './ci-runner.js';
import { useCommandInPath } from '../support/command-in-path.js';
import { runProgram, useSandbox } from '../support/command-line.js';

const sandbox = useSandbox();
useCommandInPath(sandbox);
const { runScript, runAction: runActionSteps, runTask: runTaskSteps } = createCiRunner(sandbox);
let host = '';

const read = readJobs;

beforeAll(async () => {
  const server = sandbox.start(['oci', 'serve', 'registry', '--port', '0'], { timeoutMs: 600_000 });
  host = new URL(await server.firstLine()).host;
  const before = catalogOf('widget', [{ name: 'widget.v1.0.0' }]);
  const after = catalogOf('widget', [
    { name: 'widget.v1.0.0' },
    { name: 'widget.v1.1.0', replaces: 'widget.v1.0.0' },
  ]);
  const invalid = catalogOf('widget', [{ name: 'widget.v1.0.0' }, { name: 'widget.v1.1.0' }]);
  await sandbox.write({
    'before/catalog.json': before,
    'my catalog/catalog.json': after,
    'invalid/catalog.json': invalid,
    // Installed bundles of `before` have no upgrade in it.
    'other/catalog.json': catalogOf('widget', [{ name: 'widget.v2.0.0' }]),
    // What the action does on GitHub, as far as it is asked here.
    'bin/gh': `#!/bin/bash
printf '%s ' "$@" >>"$GH_LOG"; echo >>"$GH_LOG"
case "$*" in
  *graphql*) echo 'github-actions[bot]' ;;
  *--paginate*) cat "$GH_KNOWN" ;;
  *PATCH*) exit "\${GH_PATCH_CODE:-0}" ;;
esac
for last; do :; done
[[ $last != body=@* ]] || cat "\${last#body=@}" >"$GH_BODY"
`,
  });
  await chmod(path.join(sandbox.work, 'bin', 'gh'), 0o755);
});

describe('docs/ci/github-action', () => {
  let action: Action;
  let outputs: Record<string, string>;
  let summary: string;

  beforeAll(async () => {
    action = load(await read('github-action/action.yml')) as Action;
  });

  /** Runs the steps of the action with these inputs; keeps its outputs and summary. */
  async function runAction(inputs: Record<string, string>, more: Parameters<typeof runActionSteps>[2] = {}) {
    const done = await runActionSteps(action, inputs, more);
    ({ outputs, summary } = done);
    return done;
  }

  const own = { package: '', flags: '--use-http' };
  const pullRequest = (from: string) => ({
    event: { pull_request: { number: 7, head: { repo: { full_name: from } } } },
  });

  it('does not comment on a pull request from a fork, whose token cannot', async () => {
    const { ran } = await runAction(
      { ...own, directory: 'my catalog', released: 'before', comment: 'true' },
      { github: pullRequest('someone/catalog') },
    );
    expect(ran).not.toContain('Comment on the pull request');
    expect(summary).toContain('widget.v1.1.0');
  });

  it('fails if a change breaks clusters, and shows the differences', async () => {
    const { code, stdout, ran } = await runAction({ ...own, directory: 'other', released: 'before' });
    expect(code).toBe(3);
    expect(ran.at(-1)).toBe('Fail on changes that break clusters');
    expect(stdout).toMatch(/^::error .*breaking-bundle-stranded/m);
    expect(summary).toContain('widget.v2.0.0');
  });

  it('accepts the breaking changes of a profile', async () => {
    const allow = (code: string) =>
      `- {code: ${code}, package: widget, reason: never released, expires: "2999-01-01"}\n`;
    const codes = ['bundle-stranded', 'head-moved-back', 'edge-lost'];
    await sandbox.write({ 'profile.yaml': `allowed:\n${codes.map(allow).join('')}` });
    const inputs = { ...own, directory: 'other', released: 'before', profile: 'profile.yaml' };
    expect(await runAction(inputs)).toMatchObject({ code: 0 });
  });

  it('fails on an empty directory, and on findings of the severity that fail-on names', async () => {
    await sandbox.write({ 'empty/README.txt': '' });
    await rm(path.join(sandbox.work, 'empty/README.txt'));
    expect(await runAction({ ...own, directory: 'empty' })).toMatchObject({ code: 3 });
    expect(summary).toContain('the catalog has no blobs');
    const strict = { ...own, directory: 'before', 'fail-on': 'notice', openshift: '4.18' };
    expect(await runAction(strict)).toMatchObject({ code: 3 });
    expect(await runAction({ ...own, directory: 'before', openshift: 'x' })).toMatchObject({ code: 2 });
  });

  it('documents every input and output, in its README too', async () => {
    const readme = await read('github-action/README.md');
    for (const [name, { description, ...more }] of Object.entries({ ...action.inputs, ...action.outputs })) {
      expect(description, name).not.toBe('');
      expect('default' in more || 'value' in more, name).toBe(true);
      expect(readme).toContain(`\n| \`${name}\` | `);
    }
    for (const { value } of Object.values(action.outputs)) {
      const [, id, output] = /^\$\{\{ steps\.(\w+)\.outputs\.(\w+) \}\}$/.exec(value) ?? [];
      const step = action.runs.steps.find((one) => one.id === id);
      expect(step?.run).toContain(`${output}=`);
    }
  });

  it('passes inputs to its scripts as variables only', () => {
    expect(action.runs.using).toBe('composite');
    for (const step of action.runs.steps) {
      expect(step.run).not.toContain('${{');
      expect(step.shell).toBe('bash -euo pipefail {0}');
    }
  });

  it('installs no package whose digest is not the one that the user names', async () => {
    await sandbox.write({ 'other.tgz': 'not what was reviewed' });
    for (const digest of ['0'.repeat(64), '']) {
      const { code, stdout, ran } = await runAction({
        ...own,
        directory: 'before',
        package: 'other.tgz',
        'package-sha256': digest,
      });
      expect(code).not.toBe(0);
      expect(ran).toEqual(['Install opmate']);
      expect(stdout).not.toContain('added ');
    }
    const defaults = Object.entries(action.inputs).filter(([, input]) => /opmate/.test(input.default));
    expect(defaults).toEqual([]);
  });

  it('validates, compares, and builds and pushes the image', async () => {
    const first = await runAction({
      ...own,
      directory: 'before',
      image: `${host}/acme/catalog:v1`,
      'base-image': 'scratch',
      platforms: 'linux/amd64,linux/arm64',
    });
    expect(first, first.stderr).toMatchObject({ code: 0 });
    expect(first.ran).toHaveLength(3);
    expect(outputs['image']).toMatch(/^127\.0\.0\.1:\d+\/acme\/catalog(:v1)?@sha256:[0-9a-f]{64}$/);
    expect(outputs['changed']).toBeUndefined();

    const second = await runAction({
      ...own,
      directory: 'my catalog',
      released: `${host}/acme/catalog:v1`,
      image: `${host}/acme/catalog:v2`,
      'base-image': 'scratch',
    });
    expect(second).toMatchObject({ code: 0 });
    expect(second.ran).toHaveLength(5);
    expect(outputs).toMatchObject({ changed: 'true' });
    expect(summary).toContain('widget.v1.1.0');
    expect(summary).toContain(`Pushed \`${outputs['image']}\``);
    expect(await readFile(outputs['diff'] as string, 'utf8')).toContain('widget.v1.1.0');

    const third = await runAction({
      ...own,
      directory: 'my catalog',
      released: `${host}/acme/catalog:v2`,
    });
    expect(third).toMatchObject({ code: 0 });
    expect(outputs['changed']).toBe('false');
  });

  it('fails with the findings of an invalid catalog', async () => {
    const { code, stdout, stderr, ran } = await runAction({
      ...own,
      directory: 'invalid',
      image: `${host}/a/b:c`,
    });
    expect(code).toBe(3);
    expect(ran).toHaveLength(2);
    expect(stdout).toMatch(
      /^::error file=invalid\/catalog\.json,line=\d+,.*multiple channel heads found in graph/m,
    );
    expect(stderr).toContain('multiple channel heads found in graph');
    expect(summary).toMatch(/^### Findings in the catalog\n\n( {4}.*\n)+/);
  });

  it('fails if the released catalog is unreadable', async () => {
    // A missing path is a typing error; nothing listens on port 1.
    for (const released of ['./none', '127.0.0.1:1/acme/none:v1']) {
      const flags = '--use-http --retry-timeout 1s';
      const { code, stderr, ran } = await runAction({ ...own, directory: 'before', released, flags });
      expect(code).toBe(1);
      expect(ran).toHaveLength(3);
      expect(stderr).toContain('none');
    }
    expect(outputs['changed']).toBeUndefined();
  });

  it('lets no name of a catalog become a command of the runner', async () => {
    const evil = 'a\n::set-output name=x::y\n##[add-path]/tmp\n::error::forged';
    await sandbox.write({
      [`evil/${evil.replaceAll('/', '')}.json`]: catalogOf(evil, [{ name: evil }]),
      'evil/b.json': '{',
    });
    for (const directory of ['evil', 'my catalog']) {
      const { stdout, stderr } = await runAction({ ...own, directory, released: 'evil' });
      const [commands = '', ...stopped] = stdout.split(/^::stop-commands::/m);
      const lines = commands.split('\n').filter((line) => line !== '' && !line.startsWith('Version: '));
      expect(
        lines.filter((line) => !/^::(?:error|warning|notice) file=(?:evil|my catalog)\//.test(line)),
      ).toEqual([]);
      for (const part of stopped) {
        const [token = ''] = part.split('\n');
        expect(token).toMatch(/^[0-9a-f]{32}$/);
        expect(part.trimEnd().endsWith(`::${token}::`)).toBe(true);
      }
      expect(stopped.length).toBeGreaterThan(0);
      expect(stderr).not.toMatch(/^\s*::/m);
    }
  });

  it('executes no texts of inputs', async () => {
    const evil = '$(touch pwned)`touch pwned`"; touch pwned; #';
    for (const name of ['directory', 'released', 'image', 'base-image', 'platforms', 'flags']) {
      const inputs = { ...own, directory: 'before', image: `${host}/a/b:c`, [name]: evil };
      const { code } = await runAction(inputs);
      expect(code, name).not.toBe(0);
    }
    for (const name of ['directory', 'released', 'image']) {
      const { stderr, code } = await runAction({ ...own, directory: 'before', [name]: '--help' });
      expect(code, `${name}: ${stderr}`).not.toBe(0);
    }
    expect(await readdir(sandbox.work)).not.toContain('pwned');
  });

  it.each([
    ['', undefined, ['POST']],
    ['17\n18\n', '0', ['PATCH']],
    // Somebody else's comment.
    ['17\n', '1', ['PATCH', 'POST']],
  ])('comments on a pull request whose comments are %j', async (known, patchCode, methods) => {
    const at = (name: string): string => path.join(sandbox.temporary, name);
    await writeFile(at('known'), known);
    await writeFile(at('log'), '');
    const { code } = await runAction(
      { ...own, directory: 'my catalog', released: 'before', comment: 'true', token: 'secret' },
      {
        github: pullRequest('acme/catalog'),
        env: {
          GH_LOG: at('log'),
          GH_KNOWN: at('known'),
          GH_BODY: at('body'),
          ...(patchCode !== undefined && { GH_PATCH_CODE: patchCode }),
        },
      },
    );
    expect(code).toBe(0);
    const calls = (await readFile(at('log'), 'utf8')).split('\n').slice(0, -1);
    expect(calls.shift()).toContain('api graphql');
    expect(calls[0]).toContain('.user.login == env.LOGIN');
    expect(calls[0]).toContain('--paginate repos/acme/catalog/issues/7/comments');
    expect(calls.slice(1).map((call) => /--method (\w+)/.exec(call)?.[1])).toEqual(methods);
    if (methods[0] === 'PATCH') expect(calls[1]).toContain('repos/acme/catalog/issues/comments/17 ');
    expect(calls.join('\n')).not.toContain('secret');
    expect(await readFile(at('body'), 'utf8')).toMatch(
      /^<!-- opmate catalog diff: [0-9a-f]{16} -->\n[^]*widget\.v1\.1\.0/,
    );
  });
});

describe('docs/ci/tekton', () => {
  let task: Task;

  beforeAll(async () => {
    task = load(await read('tekton/task.yaml')) as Task;
  });

  const runTask = (params: Record<string, string>) => runTaskSteps(task, params);

  it('passes parameters to its scripts as variables only', () => {
    for (const { script } of task.spec.steps) expect(script).not.toMatch(/\$\((params|workspaces|results)/);
    for (const { description } of task.spec.params) expect(description).not.toBe('');
  });

  it('validates, compares, and builds and pushes the image', async () => {
    const image = `${host}/tekton/catalog:v1`;
    const own = { flags: '--use-http', 'base-image': 'scratch' };
    const first = await runTask({ ...own, directory: 'before', image });
    expect(first).toMatchObject({ code: 0, results: { changed: '' } });
    expect(first.results['image']).toMatch(/tekton\/catalog(:v1)?@sha256:[0-9a-f]{64}$/);
    const second = await runTask({ ...own, directory: 'my catalog', released: image });
    expect(second).toMatchObject({ code: 0, results: { changed: 'true', image: '' } });
    expect(await readFile(path.join(sandbox.work, 'catalog-diff.md'), 'utf8')).toContain('widget.v1.1.0');
    expect(await runTask({ ...own, directory: 'before', released: image })).toMatchObject({
      code: 0,
      results: { changed: 'false' },
    });
    expect((await runTask({ ...own, directory: 'invalid', released: image })).code).toBe(3);
    expect((await runTask({ ...own, directory: 'other', released: image })).code).toBe(3);
    expect((await runTask({ ...own, directory: 'before', released: './none' })).code).toBe(1);
  });
});

describe('docs/ci', () => {
  it('contains only files with a test', async () => {
    const script = await read('check-catalog.sh');
    const run = async (...args: string[]): Promise<number> => {
      const call = `set -- ${args.map((one) => `'${one}'`).join(' ')}\n`;
      return (await runScript(['bash'], call + script, {})).code;
    };
    expect(await run('before')).toBe(0);
    expect(await run('my catalog', 'before')).toBe(0);
    expect(await readFile(path.join(sandbox.work, 'catalog-diff.md'), 'utf8')).toContain('widget.v1.1.0');
    expect(await run('invalid', 'before')).toBe(3);
    expect(await run('other', 'before')).toBe(3);
    expect(await run('before', './none')).toBe(1);
    expect(await run()).toBe(1);
  });

  it('writes no report through a link of the repository', async () => {
    const outside = path.join(sandbox.temporary, 'outside');
    const script = await read('check-catalog.sh');
    const jobs = load(await read('gitlab-ci.yml')) as Record<string, { script?: string[] }>;
    const task = load(await read('tekton/task.yaml')) as Task;
    const env = {
      DIRECTORY: 'my catalog',
      RELEASED: 'before',
      FAIL_ON: 'error',
      FLAGS: '',
      DOCKER_CONFIG: '',
    };
    const scripts = [
      `set -- 'my catalog' before\n${script}`,
      (jobs['catalog:check']?.script ?? []).join('\n'),
      task.spec.steps[1]?.script ?? '',
    ];
    for (const text of scripts) {
      await writeFile(outside, 'kept');
      for (const name of ['catalog-diff.md', 'catalog-junit.xml', 'gate-junit.xml']) {
        await rm(path.join(sandbox.work, name), { force: true });
        await symlink(outside, path.join(sandbox.work, name));
      }
      const result = path.join(sandbox.temporary, 'changed');
      const ran = await runScript(['bash', '-e'], text, { ...env, CHANGED_RESULT: result });
      expect(ran).toMatchObject({ code: 0 });
      expect(await readFile(outside, 'utf8')).toBe('kept');
      expect(await readFile(path.join(sandbox.work, 'catalog-diff.md'), 'utf8')).toContain('widget.v1.1.0');
    }
    for (const name of ['catalog-junit.xml', 'gate-junit.xml']) {
      await rm(path.join(sandbox.work, name), { force: true });
    }
  });

  it('has valid jobs for GitLab', async () => {
    const jobs = load(await read('gitlab-ci.yml')) as Record<
      string,
      { script?: string[]; before_script?: string[] }
    >;
    const lines = Object.values(jobs).flatMap((job) => [...(job.before_script ?? []), ...(job.script ?? [])]);
    for (const line of lines) expect((await runProgram('sh', ['-n', '-c', line])).code, line).toBe(0);
    const env = { DIRECTORY: 'my catalog', RELEASED: 'before', FAIL_ON: 'error' };
    const script = (jobs['catalog:check']?.script ?? []).join('\n');
    expect(await runScript(['sh', '-e'], script, env)).toMatchObject({ code: 0 });
    expect((await runScript(['sh', '-e'], script, { ...env, RELEASED: './none' })).code).toBe(1);
    expect((await runScript(['sh', '-e'], script, { ...env, DIRECTORY: 'invalid' })).code).toBe(1);
  });
});
