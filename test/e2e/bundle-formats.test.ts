import { execFileSync } from 'node:child_process';
import { chmod } from 'node:fs/promises';
import path from 'node:path';
import { loadAll } from 'js-yaml';
import { beforeAll, describe, expect, it } from 'vitest';
import { useSandbox } from '../support/command-line.js';

const sandbox = useSandbox();
const here = ['--install-namespace', 'here'];
const helm = [
  '#!/bin/sh',
  'cat <<END',
  'apiVersion: v1',
  'kind: ConfigMap',
  'metadata: {name: "$2"}',
  'data: {args: "$*"}',
  'END',
  '',
];

describe('opmate bundle render --format', () => {
  const environment = (): Record<string, string> => ({
    PATH: `${path.join(sandbox.work, 'bin')}:/usr/bin:/bin`,
  });
  const run = (...args: string[]) => sandbox.run(['bundle', 'render', ...args], { env: environment() });

  beforeAll(async () => {
    await sandbox.write({
      'bin/helm': helm.join('\n'),
      'bin/opmate-format-mine':
        '#!/bin/sh\ncat "$1"/*.in; cat "$OPMATE_CONFIG" >&2; exit "$(cat "$1/code")"\n',
      'chart/Chart.yaml': 'apiVersion: v2\nname: it\nversion: 1.2.3\n',
      'values.yaml': 'a: 1\n',
      'mine/a.in': '{"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "b"}}\n',
      'mine/b.in': '{"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a"}}\n',
      'mine/code': '0',
      'failing/a.in': '{}',
      'failing/code': '7',
      'plain/manifests/a.yaml': 'apiVersion: v1\nkind: ConfigMap\nmetadata: {name: plain}\n',
    });
    for (const name of ['helm', 'opmate-format-mine'])
      await chmod(path.join(sandbox.work, 'bin', name), 0o755);
    execFileSync('tar', ['-cf', 'chart.tar', 'chart'], { cwd: sandbox.work });
    execFileSync('tar', ['-czf', 'plain.tgz', '-C', 'plain', 'manifests'], { cwd: sandbox.work });
  });

  it('renders a chart in a directory or an archive through helm', async () => {
    for (const source of ['chart', 'chart.tar']) {
      const { code, stdout, stderr } = await run(source, ...here, '--format=helm', '--config=values.yaml');
      expect({ code, stderr }).toEqual({ code: 0, stderr: '' });
      const [object] = loadAll(stdout) as { metadata: object; data: { args: string } }[];
      expect(object?.metadata).toEqual({ name: 'it', namespace: 'here' });
      expect(object?.data.args).toMatch(
        /^template it \S+ --namespace here --include-crds --skip-tests --values \S+$/,
      );
    }
    const named = await run('chart', ...here, '--format=helm', '--release-name=other');
    expect(named.stdout).toContain('name: other');
    const bare = await sandbox.run(['bundle', 'render', 'chart', ...here, '--format=helm'], {
      env: { PATH: path.dirname(process.execPath) === '/usr/bin' ? '/nowhere' : '/usr/bin:/bin' },
    });
    expect({ code: bare.code, stdout: bare.stdout }).toEqual({ code: 1, stdout: '' });
    expect(bare.stderr).toContain('helm: not installed');
    expect(await sandbox.leftovers()).toEqual([]);
  });

  it('renders other formats through programs', async () => {
    const { code, stdout } = await run('mine', ...here, '--format=mine', '--config=values.yaml');
    expect(code).toBe(0);
    expect(loadAll(stdout)).toMatchObject([
      { kind: 'ConfigMap', metadata: { name: 'a', namespace: 'here' } },
      { kind: 'Secret', metadata: { name: 'b', namespace: 'here' } },
    ]);
    const failing = await run('failing', ...here, '--format=mine', '--config=values.yaml');
    expect({ code: failing.code, stdout: failing.stdout }).toEqual({ code: 1, stdout: '' });
    expect(failing.stderr).toContain('opmate-format-mine: a: 1');
    const unknown = await run('mine', ...here, '--format=theirs');
    expect({ code: unknown.code, stdout: unknown.stdout }).toEqual({ code: 1, stdout: '' });
    expect(unknown.stderr).toContain('opmate-format-theirs');
  });

  it('reads plain manifests from an archive', async () => {
    const { code, stdout } = await run('plain.tgz', '--format=plain');
    expect({ code, stdout }).toEqual({
      code: 0,
      stdout: '---\napiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: plain\n',
    });
  });

  it('refuses options that do not apply to a format', async () => {
    for (const args of [
      ['--format=helm', '--watch-namespace=a'],
      ['--format=helm', '--cert-provider=service-ca'],
      ['--release-name=a'],
    ]) {
      expect(await run('chart', ...here, ...args)).toMatchObject({ code: 2, stdout: '' });
    }
    expect(await run('chart', '--format=helm')).toMatchObject({ code: 2, stdout: '' });
  });
});
