import { load } from 'js-yaml';
import { describe, expect, inject, it } from 'vitest';
import { useSandbox } from '../support/command-line.js';
import { useCluster } from './world.js';

const sandbox = useSandbox();
const { kubectl, newNamespace } = useCluster();

describe('opmate cluster capture of a running cluster', () => {
  it('captures objects of operators without Secrets, and skips kinds that the cluster lacks', async () => {
    const namespace = newNamespace();
    const access = [`--kubeconfig=${inject('kubeconfig')}`, `--kubectl=${inject('kubectl')}`];
    const labels = { 'olm.owner': 'demo.v1' };
    for (const kind of ['ServiceAccount', 'Secret']) {
      kubectl(['apply', '-f', '-'], {
        apiVersion: 'v1',
        kind,
        metadata: { name: 'demo', namespace, labels },
      });
    }
    const { code, stdout, stderr } = await sandbox.run(['cluster', 'capture', ...access], {
      env: { PATH: process.env['PATH'] },
    });
    expect([code, stderr]).toEqual([0, '']);
    const { items } = load(stdout) as { items: { kind: string; metadata: { namespace?: string } }[] };
    const own = items.filter(({ metadata }) => metadata.namespace === namespace);
    expect(own.map(({ kind }) => kind)).toEqual(['ServiceAccount']);
    expect(own[0]?.metadata).not.toHaveProperty('managedFields');
  });
});
