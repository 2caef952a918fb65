import { encodeYamlDocument } from '../../document/yaml/present.js';
import { LimitError } from '../../core/errors.js';

/** Paths of files in a pod. */
interface PodPaths {
  configuration: string;
  credentials: string;
  workspace: string;
  lock: string | undefined;
}

/** Content of the manifests. */
export interface ScheduleOptions {
  /** Name of the objects, and start of the names of their parts. */
  name: string;
  namespace: string | undefined;
  /** Image with `opmate`. */
  image: string;
  /** Times of the runs in the form of cron. */
  schedule: string;
  /** Secret with the credentials of the registries, of type `kubernetes.io/dockerconfigjson`. */
  secret: string;
  /** Size of the volume of the workspace, as a quantity. */
  storage: string;
  /** Text of the ImageSetConfiguration. */
  configuration: string;
  /** Returns the arguments of the program in a pod, whose files are at these paths; `lock` for a shard. */
  toArguments: (paths: PodPaths) => string[];
  /** A lock that pods of an indexed Job copy together before the first run. */
  shards?: { count: number; lock: string; plan: string } | undefined;
}

/** Maximum bytes of the data of a ConfigMap. (Source: Kubernetes API.) */
const maxConfigMapBytes = 1024 * 1024;

const configurationKey = 'image-set.yaml';
const lockKey = 'opmate.lock.json';
const paths = { imageSet: '/image-set', credentials: '/credentials', work: '/work', temporary: '/scratch' };

/**
 * Returns the manifests that mirror an image set on a cluster: a ConfigMap, the volume of the workspace, a CronJob, and
 * with `shards` an indexed Job, whose pods share only the registry. Throws LimitError for data beyond the limit of a
 * ConfigMap.
 */
export function encodeSchedule(options: ScheduleOptions): string {
  const { name, configuration, shards, storage } = options;
  const data = { [configurationKey]: configuration, ...(shards && { [lockKey]: shards.lock }) };
  const bytes = Object.values(data).reduce((sum, text) => sum + Buffer.byteLength(text), 0);
  if (bytes > maxConfigMapBytes)
    throw new LimitError(`${bytes} bytes in ConfigMap ${name}-image-set, maximum ${maxConfigMapBytes}`, {
      hint: 'use a volume with configuration and lock',
    });
  const claim = {
    apiVersion: 'v1',
    kind: 'PersistentVolumeClaim',
    metadata: toMetadata(options, `${name}-workspace`),
    spec: { accessModes: ['ReadWriteOnce'], resources: { requests: { storage } } },
  };
  const objects = [
    { apiVersion: 'v1', kind: 'ConfigMap', metadata: toMetadata(options, `${name}-image-set`), data },
    ...[claim, createCronJob(options)],
    ...(shards === undefined ? [] : [createJob(options, shards)]),
  ];
  return objects.map((object) => `---\n${encodeYamlDocument(object)}`).join('');
}

function toMetadata({ namespace, name: label }: ScheduleOptions, name: string) {
  return {
    name,
    ...(namespace !== undefined && { namespace }),
    labels: { 'app.kubernetes.io/name': 'opmate', 'app.kubernetes.io/instance': label },
  };
}

/** Invalid usage, or a lock of another plan or configuration: another attempt is useless. */
const failurePolicy = {
  rules: [
    { action: 'FailJob', onExitCodes: { containerName: 'opmate', operator: 'In', values: [2] } },
    { action: 'Ignore', onPodConditions: [{ type: 'DisruptionTarget' }] },
  ],
};

function createCronJob(options: ScheduleOptions) {
  const { name, schedule } = options;
  const workspace = { persistentVolumeClaim: { claimName: `${name}-workspace` } };
  return {
    apiVersion: 'batch/v1',
    kind: 'CronJob',
    metadata: toMetadata(options, name),
    spec: {
      schedule,
      // A run that is late finds what it has missed.
      concurrencyPolicy: 'Forbid',
      startingDeadlineSeconds: 3600,
      jobTemplate: {
        spec: {
          backoffLimit: 3,
          podFailurePolicy: failurePolicy,
          template: createPod(options, workspace, undefined, []),
        },
      },
    },
  };
}

function createJob(options: ScheduleOptions, { count, plan }: NonNullable<ScheduleOptions['shards']>) {
  const lock = `${paths.imageSet}/${lockKey}`;
  const variables = [
    // Kubernetes sets JOB_COMPLETION_INDEX.
    { name: 'JOB_COMPLETION_COUNT', value: String(count) },
    { name: 'OPMATE_PLAN', value: plan },
  ];
  return {
    apiVersion: 'batch/v1',
    kind: 'Job',
    metadata: toMetadata(options, `${options.name}-shards`),
    spec: {
      completionMode: 'Indexed',
      completions: count,
      parallelism: count,
      backoffLimitPerIndex: 3,
      podFailurePolicy: failurePolicy,
      template: createPod(options, { emptyDir: {} }, lock, variables),
    },
  };
}

function createPod(
  { image, secret, name, toArguments }: ScheduleOptions,
  workspace: object,
  lock: string | undefined,
  variables: readonly { name: string; value: string }[],
) {
  const mount = (volume: string, mountPath: string) => ({ name: volume, mountPath });
  const container = {
    name: 'opmate',
    image,
    command: ['opmate'],
    args: toArguments({
      configuration: `${paths.imageSet}/${configurationKey}`,
      credentials: `${paths.credentials}/.dockerconfigjson`,
      workspace: paths.work,
      lock,
    }),
    env: [...variables, { name: 'TMPDIR', value: paths.temporary }],
    resources: { requests: { cpu: '500m', memory: '256Mi' }, limits: { memory: '512Mi' } },
    securityContext: {
      allowPrivilegeEscalation: false,
      readOnlyRootFilesystem: true,
      capabilities: { drop: ['ALL'] },
    },
    volumeMounts: [
      { ...mount('image-set', paths.imageSet), readOnly: true },
      { ...mount('credentials', paths.credentials), readOnly: true },
      ...[mount('work', paths.work), mount('temporary', paths.temporary)],
    ],
  };
  return {
    spec: {
      restartPolicy: 'Never',
      automountServiceAccountToken: false,
      securityContext: { runAsNonRoot: true, seccompProfile: { type: 'RuntimeDefault' } },
      containers: [container],
      volumes: [
        { name: 'image-set', configMap: { name: `${name}-image-set` } },
        { name: 'credentials', secret: { secretName: secret } },
        { name: 'work', ...workspace },
        { name: 'temporary', emptyDir: {} },
      ],
    },
  };
}
