import { spawn, spawnSync } from 'node:child_process';
import { readFile } from 'node:fs/promises';
import path from 'node:path';
import { gunzipSync, gzipSync } from 'node:zlib';
import { afterAll, describe, expect, it } from 'vitest';
import { type ApiServer, type KubeObject, hasKubectl, startApiServer } from '../support/api-server.js';
import {
  type CommandResult,
  type RunningCommand,
  commandWords,
  useSandbox,
} from '../support/command-line.js';

/** Whether there is a program that gives others a terminal. */
const hasScript = spawnSync('script', ['--version']).status === 0;
const sandbox = useSandbox();
const servers: ApiServer[] = [];
afterAll(() => Promise.all(servers.map((server) => server.close())));

/** A cluster of its own for one case, with a namespace to install into. */
async function newCluster() {
  const server = await startApiServer();
  const namespace = `ns-${servers.push(server)}`;
  server.put({ apiVersion: 'v1', kind: 'Namespace', metadata: { name: namespace } });
  const [file, config] = [`${namespace}.yaml`, `${namespace}.config`];
  await sandbox.write({ [config]: server.kubeconfig });
  const cluster = [`--kubeconfig=${config}`];
  /** Writes a deployment whose source is a ConfigMap beside it. */
  const write = async (value: string, { paused = false, more = '' } = {}): Promise<void> => {
    const role = `widget-${namespace}`;
    const manifests = [
      { apiVersion: 'v1', kind: 'ServiceAccount', metadata: { name: 'widget', namespace } },
      {
        apiVersion: 'rbac.authorization.k8s.io/v1',
        kind: 'ClusterRole',
        metadata: { name: role },
        rules: [{ apiGroups: [''], resources: ['secrets'], verbs: ['get'] }],
      },
      {
        apiVersion: 'rbac.authorization.k8s.io/v1',
        kind: 'ClusterRoleBinding',
        metadata: { name: role },
        roleRef: { apiGroup: 'rbac.authorization.k8s.io', kind: 'ClusterRole', name: role },
        subjects: [{ kind: 'ServiceAccount', name: 'widget', namespace }],
      },
      { apiVersion: 'v1', kind: 'ConfigMap', metadata: { name: 'settings', namespace }, data: { value } },
      ...(more === ''
        ? []
        : [{ apiVersion: 'v1', kind: 'ConfigMap', metadata: { name: more, namespace }, data: {} }]),
    ];
    const data = Object.fromEntries(
      manifests.map((manifest, index) => [`manifest-${index}.yaml`, JSON.stringify(manifest)]),
    );
    const documents = [
      {
        apiVersion: 'core.rukpak.io/v1alpha2',
        kind: 'BundleDeployment',
        metadata: { name: 'widget' },
        spec: {
          installNamespace: namespace,
          format: 'plain',
          ...(paused && { paused }),
          sources: [
            { kind: 'configMaps', configMaps: [{ configMap: { name: 'bundle' }, path: 'manifests' }] },
          ],
        },
      },
      { apiVersion: 'v1', kind: 'ConfigMap', metadata: { name: 'bundle' }, immutable: true, data },
    ];
    const text = documents.map((document) => `---\n${JSON.stringify(document)}\n`).join('');
    await sandbox.write({ [file]: text });
  };

  const run = (command: string, ...args: string[]): Promise<CommandResult> => {
    return sandbox.run(['bundle', 'deployment', command, ...cluster, ...args], {
      // Each call of kubectl ends before its garbage is worth collecting.
      env: { PATH: process.env['PATH'], GOGC: 'off' },
    });
  };

  const apply = (...args: string[]): Promise<CommandResult> => run('apply', '-f', file, ...args);

  const settings = (): unknown => server.get('ConfigMap', 'settings', namespace)?.['data'];
  return { server, namespace, file, cluster, write, run, apply, settings };
}

function hashIn({ stdout }: CommandResult): string {
  return /^approval: (sha256:[0-9a-f]{64})$/m.exec(stdout)?.[1] ?? '';
}

function renderIn({ stdout }: CommandResult): string {
  return /^render: (sha256:[0-9a-f]{64})$/m.exec(stdout)?.[1] ?? '';
}

describe('opmate bundle deployment apply', () => {
  it('refuses objects of two deployments before any request', async () => {
    const { namespace, file, write, run } = await newCluster();
    await write('1');
    const text = await readFile(path.join(sandbox.work, file), 'utf8');
    const [deployment = ''] = text.split('---\n').slice(1);
    await sandbox.write({
      'two.yaml': `${text}---\n${deployment.replace('"name":"widget"', '"name":"gadget"')}`,
    });
    const { code, stdout, stderr } = await run('apply', '-f', 'two.yaml', '--yes', '--kubectl=/nowhere');
    expect({ code, stdout }).toEqual({ code: 3, stdout: '' });
    expect(stderr).toContain(
      `ConfigMap "settings" in namespace "${namespace}": is in the deployments "gadget" and "widget"`,
    );
    expect(stderr).toContain(
      `ClusterRole "widget-${namespace}": is in the deployments "gadget" and "widget"`,
    );
  });
});

describe.skipIf(!hasKubectl).concurrent('opmate bundle deployment apply (needs kubectl)', () => {
  it('shows the changes, and applies them once their hash is approved', async () => {
    const { namespace, write, apply, settings } = await newCluster();
    await write('1');
    const shown = await apply();
    expect([shown.code, settings()]).toEqual([2, undefined]);
    const hash = hashIn(shown);
    expect(shown.stderr).toBe(
      `error: widget: not applied: no terminal to confirm\nhint: review the changes, then add --approve ${hash}, or --yes\n`,
    );
    expect(shown.stdout).toContain(`widget in namespace ${namespace}\n`);
    expect(shown.stdout).toMatch(
      new RegExp(`^${namespace}/widget +\\(all\\) +\\(core\\) +secrets +get +secrets$`, 'm'),
    );
    expect(shown.stdout).toContain('changes: 4 to add, of 4 objects\n');

    const applied = await apply('--approve', hash);
    expect([applied.code, applied.stderr]).toEqual([0, '']);
    expect(applied.stdout).toContain('widget: revision 1 applied: 4 created\n');
    expect(settings()).toEqual({ value: '1' });

    await write('2');
    const other = await apply('--approve', hash);
    expect([other.code, settings()]).toEqual([3, { value: '1' }]);
    expect(other.stderr).toContain(`hash ${hashIn(other)} is not approved (approved: ${hash})`);
  });

  it('lists the history, and rolls back', async () => {
    const { server, namespace, write, run, apply, settings } = await newCluster();
    await write('1', { more: 'extra' });
    await apply('--yes');
    await write('2');
    const second = await apply('--yes');
    expect(second.stdout).toContain('widget: revision 2 applied: 1 changed, 1 removed, 3 unchanged\n');
    const history = await run('history', 'widget', '-n', namespace, '-o', 'json');
    expect(JSON.parse(history.stdout)).toMatchObject({
      current: 2,
      objects: 4,
      revisions: [
        { revision: 1, result: 'applied', isKept: true },
        { revision: 2, result: 'applied', isKept: true, hash: renderIn(second) },
      ],
    });
    const refused = await run('rollback', 'widget', '-n', namespace, '--approve', hashIn(second));
    expect([refused.code, settings()]).toEqual([3, { value: '2' }]);
    // Stored revisions can be changed by others: each is reviewed.
    const shown = await run('rollback', 'widget', '-n', namespace);
    expect([shown.code, settings()]).toEqual([2, { value: '2' }]);
    const back = await run('rollback', 'widget', '-n', namespace, '--approve', hashIn(shown));
    expect([back.code, back.stderr]).toEqual([0, '']);
    expect(back.stdout).toContain('widget: revision 3 applied: 1 created, 1 changed, 3 unchanged\n');
    expect(settings()).toEqual({ value: '1' });
    const text = await run('history', 'widget', '-n', namespace);
    expect(text.stdout).toMatch(/^3 .*applied \(rollback to 1\).*current, kept/m);
    // Whoever may write Secrets there must not choose what an administrator goes back to.
    const inventory = server.get('Secret', 'opmate-inventory-widget', namespace) as never as {
      data: { state: string };
    };
    const state = JSON.parse(gunzipSync(Buffer.from(inventory.data.state, 'base64')).toString()) as {
      revisions: { render: unknown }[];
    };
    const [first, next] = state.revisions;
    if (first !== undefined) first.render = next?.render;
    server.put({
      ...(inventory as never as KubeObject),
      data: { state: gzipSync(JSON.stringify(state)).toString('base64') },
    });
    const forged = await run('rollback', 'widget', '-n', namespace, '--to', '1');
    expect([forged.code, forged.stdout, settings()]).toEqual([1, '', { value: '1' }]);
    expect(forged.stderr).toContain('stored objects differ from those of revision 1');
    const none = await run('rollback', 'widget', '-n', namespace, '--to', '9');
    expect([none.code, none.stderr]).toEqual([
      1,
      'error: widget: revision 9 not found\nhint: list the revisions in the history of the deployment\n',
    ]);
  });

  it.skipIf(!hasScript)('asks for confirmation on a terminal (needs script)', async () => {
    const { cluster, file, write, settings } = await newCluster();
    await write('1');
    const answer = async (text: string): Promise<string> => {
      const args = ['bundle', 'deployment', 'apply', '-f', file, ...cluster];
      const command = [...commandWords, ...args].map((arg) => `'${arg}'`).join(' ');
      const child = spawn('script', ['-qec', command, '/dev/null'], {
        cwd: sandbox.work,
        env: {
          ...sandbox.environment({ PATH: process.env['PATH'], SHELL: '/bin/sh' }),
        } as NodeJS.ProcessEnv,
      });
      let shown = '';
      child.stdout.on('data', (chunk: Buffer) => {
        const wasAsked = shown.includes('[y/N]');
        shown += chunk.toString();
        if (!wasAsked && shown.includes('[y/N]')) child.stdin.write(text);
      });
      await new Promise((resolve) => child.once('close', resolve));
      return shown;
    };
    expect(await answer('n\n')).toContain('widget: not applied: declined');
    expect(settings()).toBeUndefined();
    expect(await answer('\u0003')).toContain('interrupted');
    expect(settings()).toBeUndefined();
    expect(await answer('y\n')).toContain('widget: revision 1 applied');
    expect(settings()).toEqual({ value: '1' });
  });

  it('lists missing permissions and changes nothing', async () => {
    const { server, namespace, write, apply } = await newCluster();
    await write('1');
    server.denied.push({ verb: 'patch', resource: 'clusterroles' });
    const before = server.changes().length;
    const { code, stdout, stderr } = await apply('--yes');
    expect([code, stdout, server.changes().length]).toEqual([3, '', before]);
    expect(stderr).toContain(
      `you may not patch clusterroles.rbac.authorization.k8s.io: widget-${namespace}\n  hint: `,
    );
  });

  it('skips a paused deployment', async () => {
    const { write, apply, settings } = await newCluster();
    await write('1', { paused: true });
    const { code, stdout } = await apply('--yes');
    expect([code, settings()]).toEqual([0, undefined]);
    expect(stdout).toMatch(/^widget: paused: not applied \(sha256:/);
  });

  it('reports a missing feature of kubectl in one line', async () => {
    const { cluster, server, file, write } = await newCluster();
    await write('1');
    const said = async (...args: string[]): Promise<(number | string | null)[]> => {
      const { code, stderr } = await sandbox.run(
        ['bundle', 'deployment', 'apply', '-f', file, '--yes', ...args],
        { env: { PATH: process.env['PATH'] } },
      );
      return [code, stderr.split('\n')[0] as string];
    };
    expect(await said('--kubectl=/nowhere/kubectl')).toEqual([1, 'error: /nowhere/kubectl: not installed']);
    expect(await said('--kubeconfig=absent')).toEqual([
      1,
      expect.stringMatching(/^error: kubectl: .*absent.*no such file/),
    ]);
    expect(await said(...cluster, '--context=absent')).toEqual([
      1,
      expect.stringMatching(/^error: kubectl: .*"?absent"?/),
    ]);
    await sandbox.write({ closed: server.kubeconfig.replace(/127\.0\.0\.1:\d+/, '127.0.0.1:1') });
    expect(await said('--kubeconfig=closed')).toEqual([
      1,
      expect.stringMatching(/^error: kubectl: The connection to the server/),
    ]);
  });

  it('applies changes and reverts drift with --watch, through failures, until it is stopped', async () => {
    const { cluster, server, namespace, file, write, settings } = await newCluster();
    await write('1');
    const watching = sandbox.start(
      ['bundle', 'deployment', 'apply', '-f', file, ...cluster, '--watch', '--interval=1s', '--yes'],
      { env: { PATH: process.env['PATH'] }, timeoutMs: 60_000 },
    );
    await until(watching, () => watching.stdout().includes('revision 1 applied'));
    server.remove('ConfigMap', 'settings', namespace);
    await until(watching, () => watching.stdout().includes('restored: ConfigMap "settings"'));
    server.refuse = () => ({ code: 503, reason: 'ServiceUnavailable', message: 'later' });
    await until(watching, () => watching.stderr().includes('tried again in'));
    await write('2');
    server.refuse = () => undefined;
    await until(watching, () => watching.stdout().includes('revision 2 applied'));
    expect(settings()).toEqual({ value: '2' });
    const { code, stderr } = await watching.stop('SIGTERM');
    expect([0, 130]).toContain(code);
    expect(stderr).not.toContain('internal error');
  });
});

async function until(command: RunningCommand, isDone: () => boolean): Promise<void> {
  while (!isDone()) {
    if (command.child.exitCode !== null) throw new Error(`ended: ${command.stderr()}`);
    await new Promise((resolve) => setTimeout(resolve, 50));
  }
}
