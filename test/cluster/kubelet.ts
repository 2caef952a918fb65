/**
 * A stand-in for scheduler and kubelet. Pods of Jobs run as local processes, one after the other for init containers; their
 * exit codes become the status. Other pods are ready at once, unless their image is unknown here and named `unavailable`.
 * There are no mounts: each path of a volume is replaced in the command, arguments and environment by a directory.
 */
import { type ChildProcess, spawn } from 'node:child_process';
import { closeSync, openSync } from 'node:fs';
import { mkdir, rm, writeFile } from 'node:fs/promises';
import path from 'node:path';
import type { Api } from './control-plane.js';

const nodeName = 'local';
const pollMs = 200;

interface Container {
  name: string;
  image: string;
  command?: string[];
  args?: string[];
  env?: { name: string; value?: string; valueFrom?: { fieldRef?: { fieldPath: string } } }[];
  volumeMounts?: { name: string; mountPath: string }[];
}

interface Volume {
  name: string;
  configMap?: { name: string };
  secret?: { secretName: string };
  emptyDir?: object;
}

interface Pod {
  metadata: {
    name: string;
    namespace: string;
    uid: string;
    deletionTimestamp?: string;
    annotations?: Record<string, string>;
    labels?: Record<string, string>;
    ownerReferences?: { kind: string }[];
  };
  spec: { nodeName?: string; containers: Container[]; initContainers?: Container[]; volumes?: Volume[] };
  status: { phase?: string };
}

interface KubeletOptions {
  /** Directory for volumes. */
  directory: string;
  /** Command of an image: its entry point, to which the arguments of a container are added. */
  images: Readonly<Record<string, readonly string[]>>;
}

const podPath = ({ metadata: { namespace, name } }: Pod): string =>
  `/api/v1/namespaces/${namespace}/pods/${name}`;

/** Starts the stand-in; every pod of the cluster is its own. */
export async function startKubelet(api: Api, options: KubeletOptions): Promise<{ stop(): Promise<void> }> {
  await mkdir(options.directory, { recursive: true });
  await api.send('POST', '/api/v1/nodes', { apiVersion: 'v1', kind: 'Node', metadata: { name: nodeName } });
  const known = new Map<string, PodRun>();
  let isStopped = false;
  const round = async (): Promise<void> => {
    const { items } = (await api.send('GET', '/api/v1/pods')) as { items: Pod[] };
    for (const pod of items) {
      const run = known.get(pod.metadata.uid) ?? new PodRun(api, options);
      known.set(pod.metadata.uid, run);
      // A pod that is deleted meanwhile, or changed by others, is looked at again in the next round.
      await run.advance(pod).catch(() => undefined);
    }
    const present = new Set(items.map(({ metadata }) => metadata.uid));
    for (const [uid, run] of known) {
      if (present.has(uid)) continue;
      run.kill();
      known.delete(uid);
    }
  };
  const loop = (async () => {
    while (!isStopped) {
      await round().catch(() => undefined);
      await new Promise((resolve) => setTimeout(resolve, pollMs));
    }
  })();
  return {
    async stop() {
      isStopped = true;
      await loop;
      for (const run of known.values()) run.kill();
    },
  };
}

interface Outcome {
  name: string;
  image: string;
  exitCode: number;
}

/** One pod: what has been done for it. */
class PodRun {
  readonly #api: Api;
  readonly #options: KubeletOptions;
  readonly #outcomes: Outcome[] = [];
  #children: ChildProcess[] = [];
  #isStarted = false;

  constructor(api: Api, options: KubeletOptions) {
    this.#api = api;
    this.#options = options;
  }

  kill(): void {
    for (const child of this.#children) child.kill('SIGKILL');
  }

  async advance(pod: Pod): Promise<void> {
    if (pod.metadata.deletionTimestamp !== undefined) {
      this.kill();
      await this.#api.send('DELETE', `${podPath(pod)}?gracePeriodSeconds=0`);
      return;
    }
    if (pod.spec.nodeName === undefined) {
      await this.#api.send('POST', `${podPath(pod)}/binding`, {
        apiVersion: 'v1',
        kind: 'Binding',
        metadata: { name: pod.metadata.name },
        target: { apiVersion: 'v1', kind: 'Node', name: nodeName },
      });
      return;
    }
    const isOfJob = pod.metadata.ownerReferences?.some(({ kind }) => kind === 'Job') === true;
    if (!isOfJob) {
      if (pod.status.phase !== 'Running') await this.#report(pod, runningStatus(pod));
      return;
    }
    if (!this.#isStarted) {
      this.#isStarted = true;
      await this.#report(pod, runningStatus(pod));
      void this.#run(pod).catch(() => undefined);
      return;
    }
    if (this.#outcomes.length === pod.spec.containers.length && pod.status.phase === 'Running') {
      await this.#report(pod, endedStatus(this.#outcomes));
    }
  }

  #report(pod: Pod, status: object): Promise<unknown> {
    return this.#api.send('PATCH', `${podPath(pod)}/status`, { status }, 'application/merge-patch+json');
  }

  async #run(pod: Pod): Promise<void> {
    const directories = await this.#makeVolumes(pod);
    for (const container of pod.spec.initContainers ?? []) await this.#start(pod, container, directories);
    await Promise.all(
      pod.spec.containers.map(async (container) => {
        const exitCode = await this.#start(pod, container, directories);
        this.#outcomes.push({ name: container.name, image: container.image, exitCode });
      }),
    );
  }

  async #makeVolumes(pod: Pod): Promise<Map<string, string>> {
    const { namespace, uid } = pod.metadata;
    const directories = new Map<string, string>();
    for (const { name, configMap, secret } of pod.spec.volumes ?? []) {
      const directory = path.join(this.#options.directory, uid, name);
      await rm(directory, { recursive: true, force: true });
      await mkdir(directory, { recursive: true });
      directories.set(name, directory);
      const source =
        configMap === undefined ? secret && `secrets/${secret.secretName}` : `configmaps/${configMap.name}`;
      if (source === undefined) continue;
      const { data = {} } = (await this.#api.send('GET', `/api/v1/namespaces/${namespace}/${source}`)) as {
        data?: Record<string, string>;
      };
      for (const [file, value] of Object.entries(data))
        await writeFile(
          path.join(directory, file),
          secret === undefined ? value : Buffer.from(value, 'base64'),
        );
    }
    return directories;
  }

  #start(pod: Pod, container: Container, directories: ReadonlyMap<string, string>): Promise<number> {
    const mounts = (container.volumeMounts ?? []).map(
      ({ name, mountPath }) => [mountPath, directories.get(name) ?? mountPath] as const,
    );
    const place = (text: string): string =>
      mounts.reduce((placed, [from, to]) => placed.replace(pathPattern(from), `$1${to}`), text);
    const environment = (container.env ?? []).map(({ name, value, valueFrom }) => {
      const fieldPath = valueFrom?.fieldRef?.fieldPath;
      return [name, fieldPath === undefined ? place(value ?? '') : readField(pod, fieldPath)];
    });
    const { command = [], args = [] } = container;
    const entry = this.#options.images[container.image] ?? [];
    // An image that is known here takes the place of the program; its arguments stay.
    const own = [...(entry.length > 0 ? command.slice(1) : command), ...args].map(place);
    const [program = 'false', ...rest] = [...entry, ...own];
    // The output of a container, for whoever looks for the cause of a failure.
    const log = openSync(
      path.join(this.#options.directory, `${pod.metadata.name}.${container.name}.log`),
      'w',
    );
    return new Promise((resolve) => {
      const child = spawn(program, rest, {
        env: { PATH: process.env['PATH'], ...Object.fromEntries(environment) },
        stdio: ['ignore', log, log],
      });
      closeSync(log);
      this.#children.push(child);
      child.once('error', () => resolve(127));
      child.once('exit', (code, signal) => resolve(code ?? (signal === null ? 1 : 137)));
    });
  }
}

/** Returns a pattern for a path where it begins: at the start, after a separator, or in a file URL. */
function pathPattern(mountPath: string): RegExp {
  return new RegExp(
    `(^|[\\s=:"']|://)${mountPath.replace(/[.*+?^${}()|[\]\\]/g, '\\$&')}(?=/|$|[\\s"'])`,
    'g',
  );
}

/** Fields of the downward API: a label or an annotation. */
function readField(pod: Pod, fieldPath: string): string {
  const [, map, key = ''] = /^metadata\.(labels|annotations)\['(.+)'\]$/.exec(fieldPath) ?? [];
  if (fieldPath === 'metadata.name') return pod.metadata.name;
  return (map === 'labels' ? pod.metadata.labels : pod.metadata.annotations)?.[key] ?? '';
}

function runningStatus(pod: Pod): object {
  const time = `${new Date().toISOString().slice(0, 19)}Z`;
  const isAvailable = pod.spec.containers.every(({ image }) => !image.includes('unavailable'));
  const ready = isAvailable ? 'True' : 'False';
  const condition = (type: string, status: string): object => ({ type, status, lastTransitionTime: time });
  return {
    phase: isAvailable ? 'Running' : 'Pending',
    startTime: time,
    conditions: [
      condition('Initialized', 'True'),
      condition('PodScheduled', 'True'),
      condition('ContainersReady', ready),
      condition('Ready', ready),
    ],
    containerStatuses: pod.spec.containers.map(({ name, image }) => ({
      name,
      image,
      imageID: '',
      ready: isAvailable,
      restartCount: 0,
      started: isAvailable,
      state: isAvailable
        ? { running: { startedAt: time } }
        : { waiting: { reason: 'ImagePullBackOff', message: `Back-off pulling image "${image}"` } },
    })),
  };
}

function endedStatus(outcomes: readonly Outcome[]): object {
  const time = `${new Date().toISOString().slice(0, 19)}Z`;
  const isDone = outcomes.every(({ exitCode }) => exitCode === 0);
  return {
    phase: isDone ? 'Succeeded' : 'Failed',
    containerStatuses: outcomes.map(({ name, image, exitCode }) => ({
      name,
      image,
      imageID: '',
      ready: false,
      restartCount: 0,
      started: false,
      state: {
        terminated: {
          exitCode,
          reason: exitCode === 0 ? 'Completed' : 'Error',
          startedAt: time,
          finishedAt: time,
        },
      },
    })),
  };
}
