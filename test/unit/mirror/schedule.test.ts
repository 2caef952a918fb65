import { loadAll } from 'js-yaml';
import { describe, expect, it } from 'vitest';
import { type ScheduleOptions, encodeSchedule } from '../../../src/mirror/schedule/schedule-manifests.js';

const options: ScheduleOptions = {
  name: 'mirror',
  namespace: 'tools',
  image: 'registry.test/opmate:v1',
  schedule: '0 3 * * *',
  secret: 'credentials',
  storage: '10Gi',
  configuration: 'kind: ImageSetConfiguration\n\n# comment\n',
  toArguments: (paths) => Object.values(paths).filter((value) => value !== undefined),
};

interface Container {
  args: string[];
  env: { name: string; value: string }[];
  volumeMounts: { name: string; mountPath: string }[];
}
interface Template {
  spec: { containers: [Container]; volumes: ({ name: string } & Record<string, unknown>)[] };
}
interface Documents {
  kind: string;
  metadata: { name: string; namespace: string };
  data: Record<string, string>;
  spec: Record<string, unknown> & { template: Template; jobTemplate: { spec: { template: Template } } };
}
const read = (changes: Partial<ScheduleOptions> = {}): Documents[] =>
  loadAll(encodeSchedule({ ...options, ...changes })) as Documents[];

describe('mirror/schedule', () => {
  it('makes a CronJob with its configuration, byte by byte, and a workspace that stays', () => {
    const [files, claim, job] = read();
    expect(
      [files, claim, job].map((item) => [item?.kind, item?.metadata.name, item?.metadata.namespace]),
    ).toEqual([
      ['ConfigMap', 'mirror-image-set', 'tools'],
      ['PersistentVolumeClaim', 'mirror-workspace', 'tools'],
      ['CronJob', 'mirror', 'tools'],
    ]);
    expect(files?.data).toEqual({ 'image-set.yaml': options.configuration });
    expect(job?.spec).toMatchObject({ schedule: '0 3 * * *', concurrencyPolicy: 'Forbid' });
    const pod = job?.spec.jobTemplate.spec.template.spec;
    expect(pod?.containers[0].args).toEqual([
      '/image-set/image-set.yaml',
      '/credentials/.dockerconfigjson',
      '/work',
    ]);
    expect(pod?.volumes).toContainEqual({
      name: 'work',
      persistentVolumeClaim: { claimName: 'mirror-workspace' },
    });
    // Every volume is mounted, and every mount has a volume.
    expect(pod?.containers[0].volumeMounts.map(({ name }) => name)).toEqual(
      pod?.volumes.map(({ name }) => name),
    );
  });

  it('makes an indexed Job of the shards of a lock', () => {
    const shards = { count: 4, lock: '{}\n', plan: 'sha256:abc' };
    const documents = read({ shards, namespace: undefined });
    const job = documents.at(-1);
    expect(documents[0]?.data['opmate.lock.json']).toBe('{}\n');
    expect(job?.metadata).not.toHaveProperty('namespace');
    expect(job).toMatchObject({
      kind: 'Job',
      spec: { completionMode: 'Indexed', completions: 4, parallelism: 4 },
    });
    const container = job?.spec.template.spec.containers[0];
    expect(container?.args.at(-1)).toBe('/image-set/opmate.lock.json');
    expect(container?.env).toContainEqual({ name: 'JOB_COMPLETION_COUNT', value: '4' });
    expect(container?.env).toContainEqual({ name: 'OPMATE_PLAN', value: 'sha256:abc' });
  });

  it('refuses data that no ConfigMap holds', () => {
    const shards = { count: 2, lock: 'x'.repeat(1024 * 1024), plan: 'sha256:abc' };
    expect(() => read({ shards })).toThrow(/bytes in ConfigMap mirror-image-set, maximum 1048576/);
  });
});
