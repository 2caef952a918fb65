import { chmod, writeFile } from 'node:fs/promises';
import path from 'node:path';
import { describe, expect, inject, it } from 'vitest';
import { commandFile, useSandbox } from '../support/command-line.js';
import { smallBundle } from '../support/small-bundle.js';
import { configMap, deploymentIn, workload } from './deployments.js';
import { useCluster } from './world.js';

const sandbox = useSandbox();
const { kubectl, get, newNamespace } = useCluster();

/** Writes a kubectl that kills opmate in its N-th call that changes something, before or after the change. */
async function killingKubectl(name: string, call: number, isAfter: boolean): Promise<string> {
  const file = path.join(sandbox.work, name);
  const run = `"${inject('kubectl')}" "$@"`;
  const script = `#!/bin/bash
case " $* " in *" apply "*|*" create "*|*" replace "*|*" delete "*) ;; *) exec ${run};; esac
case " $* " in *" --dry-run=server "*) exec ${run};; esac
echo >> "$0.calls"
[ "$(wc -l < "$0.calls")" = ${call} ] || exec ${run}
${isAfter ? run : ':'} > /dev/null
kill -9 $PPID
`;
  await writeFile(file, script);
  await chmod(file, 0o755);
  return file;
}

/** Kills a stage at a change and runs it again. Returns false if the stage had no such change, and was not killed. */
async function completesAfterKill(
  stage: 'install' | 'upgrade' | 'delete',
  call: number,
  isAfter: boolean,
): Promise<boolean> {
  const namespace = newNamespace();
  const { write, run, onFile, start, file } = deploymentIn(sandbox, namespace);
  const settings = (value: string): object => configMap(namespace, 'settings', { value });
  const first = [workload(namespace, 'widget'), settings('1'), configMap(namespace, 'old', {})];
  const second = [workload(namespace, 'widget'), settings('2'), configMap(namespace, 'new', {})];
  if (stage !== 'install') {
    await write(first);
    expect((await onFile('apply', '--yes')).code).toBe(0);
  }
  await write(second);
  const program = await killingKubectl(`kubectl-${namespace}`, call, isAfter);
  const args = stage === 'delete' ? ['delete', 'widget', '-n', namespace] : ['apply', '-f', file];
  const killed = await start([...args, '--yes', `--kubectl=${program}`]).result;
  expect([call, [0, null].includes(killed.code)]).toEqual([call, true]);
  if (stage === 'delete') {
    // After the last change, nothing is left to delete.
    const again = await run('delete', 'widget', '-n', namespace, '--yes');
    if (again.code !== 0) expect(again.stderr).toContain('no deployment of this name');
    expect(kubectl(['get', 'deployments,secrets', '-n', namespace, '-o', 'name'])).toBe('');
    return killed.code === null;
  }
  const repaired = await onFile('apply', '--yes', '--timeout', '120s');
  expect([call, repaired.code, repaired.stdout.includes('applied')]).toEqual([call, 0, true]);
  expect(get('configmap', 'settings', namespace)?.data).toEqual({ value: '2' });
  expect(get('configmap', 'new', namespace)).toBeDefined();
  expect(get('configmap', 'old', namespace)).toBeUndefined();
  expect((await run('status', 'widget', '-n', namespace)).code).toBe(0);
  expect((await onFile('plan')).stdout).toContain('changes: none');
  return killed.code === null;
}

describe('opmate deployment on a cluster, disturbed', () => {
  it.each(['install', 'upgrade', 'delete'] as const)(
    'completes %s after SIGKILL at each of its changes',
    { timeout: 900_000 },
    async (stage) => {
      let isKilled = true;
      // Before and after a change in turn, until a run has no further change.
      for (let call = 1; isKilled; call++) isKilled = await completesAfterKill(stage, call, call % 2 === 0);
    },
  );

  it('lets one of two appliers at once finish, and leaves a whole revision', async () => {
    const namespace = newNamespace();
    const { write, run, start, file } = deploymentIn(sandbox, namespace);
    const other = `other-${file}`;
    const objects = (value: string): object[] =>
      ['a', 'b', 'c'].map((name) => configMap(namespace, name, { value }));
    await write(objects('1'));
    await write(objects('2'), { file: other });
    const ends = await Promise.all([file, other].map((name) => start(['apply', '-f', name, '--yes']).result));
    expect(ends.some(({ code }) => code === 0)).toBe(true);
    for (const { code, stderr } of ends)
      if (code !== 0)
        expect(stderr).toMatch(/another process is changing this deployment|already exists|Conflict/);
    const values = ['a', 'b', 'c'].map((name) => get('configmap', name, namespace)?.data?.['value']);
    expect(new Set(values).size).toBe(1);
    expect((await run('status', 'widget', '-n', namespace)).stdout).toMatch(/^Progressing +True +Succeeded/m);
  });

  it('installs a bundle of 4.5 MB', async () => {
    const namespace = newNamespace();
    const { write, run, onFile } = deploymentIn(sandbox, namespace);
    await write(
      Array.from({ length: 6 }, (_, index) =>
        configMap(namespace, `large-${index}`, { text: `${index}`.repeat(750_000) }),
      ),
    );
    const applied = await onFile('apply', '--yes');
    expect([applied.code, applied.stderr]).toEqual([0, '']);
    expect((await run('status', 'widget', '-n', namespace)).code).toBe(0);
    expect((await run('delete', 'widget', '-n', namespace, '--yes')).stdout).toContain('6 removed');
  });

  it('needs no more rights than the recommended role of an installer', async () => {
    const namespace = newNamespace();
    const rule = { apiGroups: [''], resources: ['configmaps'], verbs: ['get', 'list'] };
    const spec = {
      installModes: ['OwnNamespace', 'SingleNamespace', 'MultiNamespace', 'AllNamespaces'].map((type) => ({
        type,
        supported: type === 'AllNamespaces',
      })),
      install: {
        strategy: 'deployment',
        spec: {
          clusterPermissions: [{ serviceAccountName: `widget-${namespace}`, rules: [rule] }],
          deployments: [
            {
              name: 'widget',
              spec: {
                replicas: 1,
                selector: { matchLabels: { app: 'widget' } },
                template: {
                  metadata: { labels: { app: 'widget' } },
                  spec: {
                    serviceAccountName: `widget-${namespace}`,
                    containers: [{ name: 'widget', image: 'registry.example.com/widget:v1' }],
                  },
                },
              },
            },
          ],
        },
      },
    };
    const files = smallBundle({ name: `widget-${namespace}.v1.0.0`, spec });
    await sandbox.write(
      Object.fromEntries(Object.entries(files).map(([name, text]) => [`${namespace}/${name}`, text])),
    );
    const roles = await sandbox.run(
      ['bundle', 'permissions', `./${namespace}`, '--install-namespace', namespace, '-o', 'installer'],
      { file: commandFile },
    );
    kubectl(['apply', '-f', '-'], roles.stdout);
    const parts = Object.entries(files).map(([name, text], index) => ({
      directory: path.dirname(name),
      file: path.basename(name),
      text,
      name: `part-${index}`,
    }));
    const documents = [
      {
        apiVersion: 'core.rukpak.io/v1alpha2',
        kind: 'BundleDeployment',
        metadata: { name: 'widget' },
        spec: {
          installNamespace: namespace,
          format: 'registry-v1',
          sources: [
            {
              kind: 'configMaps',
              configMaps: parts.map((part) => ({ configMap: { name: part.name }, path: part.directory })),
            },
          ],
        },
      },
      ...parts.map((part) => ({
        apiVersion: 'v1',
        kind: 'ConfigMap',
        immutable: true,
        metadata: { name: part.name },
        data: { [part.file]: part.text },
      })),
    ];
    const { run, file } = deploymentIn(sandbox, namespace);
    await sandbox.write({
      [file]: documents.map((document) => `---\n${JSON.stringify(document)}\n`).join(''),
    });
    const as = `--as=system:serviceaccount:${namespace}:widget-installer`;
    const applied = await run('apply', '-f', file, '--yes', as, '--timeout', '60s');
    expect([applied.code, applied.stderr.replace(/^info: .*\n/gm, '')]).toEqual([0, '']);
    const nobody = await run('apply', '-f', file, '--yes', '--as=system:serviceaccount:default:default');
    expect([nobody.code, nobody.stdout]).toEqual([1, '']);
    const deleted = await run('delete', 'widget', '-n', namespace, '--yes', as);
    expect([deleted.code, deleted.stderr]).toEqual([0, '']);
  });
});
