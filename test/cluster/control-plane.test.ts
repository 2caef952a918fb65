import { describe, expect, inject, it } from 'vitest';
import { useCluster } from './world.js';

const { kubectl, newNamespace } = useCluster();

const job = (namespace: string, command: string[]): object => ({
  apiVersion: 'batch/v1',
  kind: 'Job',
  metadata: { name: 'work', namespace },
  spec: {
    completionMode: 'Indexed',
    completions: 2,
    parallelism: 2,
    backoffLimit: 2,
    podFailurePolicy: { rules: [{ action: 'FailJob', onExitCodes: { operator: 'In', values: [2] } }] },
    template: {
      spec: {
        restartPolicy: 'Never',
        containers: [
          {
            name: 'work',
            image: 'registry.example.com/none:v1',
            command,
            volumeMounts: [{ name: 'settings', mountPath: '/settings' }],
          },
        ],
        volumes: [{ name: 'settings', configMap: { name: 'settings' } }],
      },
    },
  },
});

describe('the control plane of the tests', () => {
  it('is of the requested release', () => {
    expect(kubectl(['version', '-o', 'json'])).toContain(`"gitVersion": "v${inject('release')}"`);
  });

  it('makes pods of a Deployment ready, unless their image is unavailable', async () => {
    const namespace = newNamespace();
    for (const name of ['good', 'unavailable'])
      kubectl(['create', 'deployment', name, '-n', namespace, `--image=registry.example.com/${name}:v1`]);
    kubectl(['wait', '--for=condition=Available', 'deployment/good', '-n', namespace, '--timeout=60s']);
    const pods = (): string =>
      kubectl(['get', 'pods', '-n', namespace, '-l', 'app=unavailable', '-o', 'json']);
    await expect.poll(pods, { timeout: 30_000 }).toContain('ImagePullBackOff');
  });

  it('runs the pods of a Job as processes, with their index and ConfigMaps', () => {
    const namespace = newNamespace();
    kubectl([
      'create',
      'configmap',
      'settings',
      '-n',
      namespace,
      '--from-literal=0=zero',
      '--from-literal=1=one',
    ]);
    kubectl(['apply', '-f', '-'], job(namespace, ['sh', '-c', 'test -s /settings/$JOB_COMPLETION_INDEX']));
    kubectl(['wait', '--for=condition=Complete', 'job/work', '-n', namespace, '--timeout=60s']);
  });

  it('fails a Job at once for an exit code of its policy', () => {
    const namespace = newNamespace();
    kubectl(['create', 'configmap', 'settings', '-n', namespace]);
    kubectl(['apply', '-f', '-'], job(namespace, ['sh', '-c', 'exit 2']));
    kubectl(['wait', '--for=condition=Failed', 'job/work', '-n', namespace, '--timeout=60s']);
    expect(kubectl(['get', 'job', 'work', '-n', namespace, '-o', 'json'])).toContain('PodFailurePolicy');
  });
});
