import { readFileSync } from 'node:fs';
import { loadAll } from 'js-yaml';
import { describe, expect, it } from 'vitest';
import { parseDestination } from '../../../src/api/mirror/destination.js';
import type { ImageSetOptions } from '../../../src/cli/mirror/flags.js';
import { createCommandLine } from '../../../src/cli/program.js';
import { computeDigest } from '../../../src/core/digest.js';
import { readImageSetConfiguration } from '../../../src/mirror/image-set/image-set-config.js';
import { planOf } from '../../../src/mirror/lock/encode-lock.js';
import { parseLock } from '../../../src/mirror/lock/parse-lock.js';
import { parseShard } from '../../../src/mirror/lock/shard.js';
import { createWorld } from './world.js';

interface Container {
  name: string;
  command: string[];
  args: string[];
  env: { name: string; value: string }[];
  volumeMounts: { name: string; mountPath: string; readOnly?: boolean }[];
}
interface Job {
  spec: {
    completionMode: string;
    completions: number;
    parallelism: number;
    backoffLimitPerIndex: number;
    podFailurePolicy: { rules: { onExitCodes: { containerName: string } }[] };
    template: {
      spec: {
        restartPolicy: string;
        containers: [Container];
        volumes: { name: string; configMap?: { name: string }; secret?: { secretName: string } }[];
      };
    };
  };
}
interface ConfigMap {
  metadata: { name: string };
  data: Record<string, string>;
}

const documents = loadAll(readFileSync('docs/examples/mirror-job.yaml', 'utf8')) as [
  ConfigMap,
  ConfigMap & { stringData: Record<string, string> },
  Job,
];
const [files, credentials, job] = documents;
const pod = job.spec.template.spec;
const [container] = pod.containers;

/** The options and operands that the command tree reads from arguments. */
async function parseArgs(args: readonly string[]): Promise<{ options: ImageSetOptions; operands: string[] }> {
  let parsed: { options: ImageSetOptions; operands: string[] } | undefined;
  const { program } = createCommandLine(createWorld(), 'opmate', {
    print: () => undefined,
    onCommand: () => undefined,
    run: () => Promise.resolve(),
  });
  program.hook('preAction', (_program, command) => {
    parsed = { options: command.optsWithGlobals<ImageSetOptions>(), operands: command.args };
  });
  await program.parseAsync([...args], { from: 'user' });
  if (parsed === undefined) throw new Error('no command is run');
  return parsed;
}

describe('docs/examples/mirror-job.yaml', () => {
  it('is an indexed Job whose pods are told how many they are', () => {
    expect(job).toMatchObject({ apiVersion: 'batch/v1', kind: 'Job' });
    const { completionMode, completions, parallelism, backoffLimitPerIndex, podFailurePolicy } = job.spec;
    expect({ completionMode, completions, parallelism }).toEqual({
      completionMode: 'Indexed',
      completions: 4,
      parallelism: 4,
    });
    expect(backoffLimitPerIndex).toBeGreaterThan(0);
    // Kubernetes takes limits by index and failure policies with this only.
    expect(pod.restartPolicy).toBe('Never');
    expect(podFailurePolicy.rules[0]?.onExitCodes.containerName).toBe(container.name);
    const environment = Object.fromEntries(container.env.map(({ name, value }) => [name, value]));
    const shards = Array.from({ length: completions }, (_, index) =>
      parseShard(undefined, { ...environment, JOB_COMPLETION_INDEX: String(index) }),
    );
    expect(shards).toEqual([0, 1, 2, 3].map((index) => ({ index, count: 4 })));
  });

  it('runs a command line that opmate takes, with files that are mounted', async () => {
    expect(container.command).toEqual(['opmate']);
    const { options, operands } = await parseArgs(container.args);
    const world = createWorld();
    expect(operands).toEqual(['docker://mirror.example.com/olm']);
    expect(parseDestination(operands[0] as string, world).kind).toBe('registry');
    expect(options.locked).toBe(true);
    const mounts = new Map(container.volumeMounts.map((mount) => [mount.mountPath, mount]));
    const volumeOf = (file: string | undefined) => {
      const mount = mounts.get(file?.slice(0, file.lastIndexOf('/')) ?? '');
      return pod.volumes.find(({ name }) => name === mount?.name);
    };
    for (const file of [options.config, options.lock]) {
      expect(volumeOf(file)?.configMap?.name).toBe(files.metadata.name);
      expect(Object.keys(files.data)).toContain(file?.split('/').at(-1));
    }
    expect(volumeOf(options.authfile)?.secret?.secretName).toBe(credentials.metadata.name);
    expect(Object.keys(credentials.stringData)).toContain(options.authfile?.split('/').at(-1));
    const work = mounts.get(options.workspace?.slice('file://'.length) ?? '');
    expect(work).toBeDefined();
    expect(work?.readOnly).toBeUndefined();
  });

  it('holds a configuration, and a lock that was made of it', () => {
    const config = files.data['image-set.yaml'] as string;
    expect(readImageSetConfiguration(config, 'image-set.yaml').operators).toHaveLength(1);
    const lock = parseLock(files.data['opmate.lock.json'] as string, 'opmate.lock.json');
    expect(lock.configuration).toBe(computeDigest(config));
    const text = JSON.parse(files.data['opmate.lock.json'] as string) as { plan: string };
    expect(text.plan).toBe(planOf(lock));
    expect(container.env.find(({ name }) => name === 'OPMATE_PLAN')?.value).toBe(planOf(lock));
  });
});
