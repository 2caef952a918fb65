import { describe, expect, it } from 'vitest';
import { useSandbox } from '../support/command-line.js';
import { configMap, deploymentIn } from './deployments.js';
import { useCluster } from './world.js';

const sandbox = useSandbox();
const { get, newNamespace } = useCluster();

describe('opmate deployment apply --prune on a cluster', () => {
  it('deletes deployments of the set that the files no longer contain, and no others', async () => {
    const namespace = newNamespace();
    const { write, run, onFile } = deploymentIn(sandbox, namespace);
    const [first, second, third] = ['first', 'second', 'third'].map((name) => `${name}.${namespace}.yaml`);
    const files = ['-f', first as string, '-f', second as string];
    await write([configMap(namespace, 'one', {})], { name: 'first', file: first as string });
    await write([configMap(namespace, 'two', {})], { name: 'second', file: second as string });
    await write([configMap(namespace, 'three', {})], { name: 'third', file: third as string });
    expect((await run('apply', ...files, '--prune', namespace, '--yes')).code).toBe(0);
    expect((await run('apply', '-f', third as string, '--yes')).code).toBe(0);

    const pruned = await run('apply', '-f', first as string, '--prune', namespace, '--yes');
    expect([pruned.code, pruned.stderr]).toEqual([0, '']);
    expect(pruned.stdout).toContain('second: deleted: 1 removed');
    expect(['one', 'two', 'three'].map((name) => get('configmap', name, namespace) !== undefined)).toEqual([
      true,
      false,
      true,
    ]);
    await write([configMap(namespace, 'one', {})], { name: 'first' });
    expect((await onFile('apply', '--prune', 'not a label', '--yes')).code).toBe(2);
  });
});
