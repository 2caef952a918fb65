import { base64Fault } from '../core/base64.js';
import { OpmateError } from '../core/errors.js';
import { type JsonObject, type JsonValue, isJsonObject } from '../document/json.js';
import type { PackageIcon, RelatedImage } from './declarative-config.js';
import { type Shape, ShapeError, readShape, struct } from '../kube/shape.js';

/**
 * What rendering needs to know of a ClusterServiceVersion, the manifest that describes one version of an
 * operator. Each function throws OpmateError INVALID that starts with the path of the faulty value, as in
 * `spec.version: expected a string, found the number 1.2`.
 */

/** A group, version and kind with its plural name, or for an API service, its name. */
export interface ApiKey {
  group: string;
  version: string;
  kind: string;
  plural: string;
}

const strings: Shape = { list: 'string' };
const stringMap: Shape = { map: 'string' };

const time: Shape = {
  check: (value) =>
    typeof value === 'string' && /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?(Z|[+-]\d\d:\d\d)$/i.test(value)
      ? undefined
      : 'expected a time such as 2024-01-31T12:00:00Z',
};

/** Kubernetes object metadata, as far as its fields have a fixed type. */
export const objectMetaShape = struct({
  name: 'string',
  generateName: 'string',
  namespace: 'string',
  selfLink: 'string',
  uid: 'string',
  resourceVersion: 'string',
  generation: 'int64',
  creationTimestamp: time,
  deletionTimestamp: time,
  deletionGracePeriodSeconds: 'int64',
  'labels?': stringMap,
  'annotations?': stringMap,
  ownerReferences: {
    list: struct({ apiVersion: 'string', kind: 'string', name: 'string', uid: 'string', controller: 'bool' }),
  },
  finalizers: strings,
});

const containerShape = struct({
  name: 'string',
  image: 'string',
  command: strings,
  args: strings,
  workingDir: 'string',
  ports: { list: struct({ name: 'string', containerPort: 'int32', hostPort: 'int32', protocol: 'string' }) },
  env: { list: struct({ name: 'string', value: 'string' }) },
  imagePullPolicy: 'string',
});

/** The install strategy: which deployments the operator consists of, and their permissions. */
export const installShape = struct({
  strategy: 'string',
  spec: struct({
    deployments: {
      list: struct({
        name: 'string',
        label: stringMap,
        spec: struct({
          replicas: 'int32',
          minReadySeconds: 'int32',
          revisionHistoryLimit: 'int32',
          progressDeadlineSeconds: 'int32',
          paused: 'bool',
          template: struct({
            metadata: objectMetaShape,
            spec: struct({
              containers: { list: containerShape },
              initContainers: { list: containerShape },
              serviceAccountName: 'string',
              nodeSelector: stringMap,
              priorityClassName: 'string',
              hostNetwork: 'bool',
              terminationGracePeriodSeconds: 'int64',
            }),
          }),
        }),
      }),
    },
  }),
});

const definitionsShape = struct({
  owned: { list: struct({ group: 'string', kind: 'string', name: 'string', version: 'string' }) },
  required: { list: struct({ group: 'string', kind: 'string', name: 'string', version: 'string' }) },
});

const relatedImagesShape: Shape = { list: struct({ name: 'string', image: 'string' }) };

/** A name that a CSV declares in its definitions. */
interface Definition {
  group: string;
  kind: string;
  name: string;
  version: string;
}

/** The name and annotations of a CSV. The field names of its metadata match whatever their case. */
export function readCsvMetadata(csv: JsonObject): { name: string; annotations: JsonObject } {
  const shape = struct({ apiVersion: 'string', kind: 'string', metadata: objectMetaShape });
  const { metadata } = readShape(csv, shape, '') as { metadata: JsonObject };
  const { name, annotations } = metadata;
  return { name: name as string, annotations: isJsonObject(annotations) ? annotations : {} };
}

/** The `spec` of a CSV: an object, empty where it is null. A CSV without one is at fault. */
export function csvSpec(csv: JsonObject): JsonObject {
  const spec = csv['spec'];
  if (spec === undefined) throw new OpmateError('INVALID', 'spec: not found');
  return readShape(spec, { map: 'any' }, 'spec') === null ? {} : (spec as JsonObject);
}

/** `spec.version` as it is written, or the empty string. */
export function csvVersion(spec: JsonObject): string {
  return readShape(spec['version'] ?? null, 'string', 'spec.version') as string;
}

/** `spec.release`: text, or a number as Go prints it; the empty string where there is none. */
export function csvRelease(spec: JsonObject): string {
  const release = spec['release'] ?? null;
  if (release === null) return '';
  if (typeof release === 'string') return release;
  if (typeof release === 'bigint') return formatShortest(Number(release));
  if (typeof release !== 'number') {
    throw new ShapeError(['spec', 'release'], 'release field must be a string or number');
  }
  return Number.isInteger(release) && Math.abs(release) < 2 ** 63
    ? String(BigInt(release))
    : formatShortest(release);
}

/** The custom resource definitions that a CSV owns or requires; the name of each is `plural.group`. */
export function csvCustomResources(spec: JsonObject, list: 'owned' | 'required'): ApiKey[] {
  return definitions(spec, 'customresourcedefinitions', list).map(({ name, version, kind }) => {
    const dot = name.indexOf('.');
    if (dot < 0) {
      throw new OpmateError('INVALID', `couldn't parse plural.group from crd name: ${name}`, {
        hint: `write the full name, e.g. foos.example.com, in spec.customresourcedefinitions.${list}`,
      });
    }
    return { group: name.slice(dot + 1), version, kind, plural: name.slice(0, dot) };
  });
}

/** The aggregated APIs that a CSV owns or requires. */
export function csvApiServices(spec: JsonObject, list: 'owned' | 'required'): ApiKey[] {
  return definitions(spec, 'apiservicedefinitions', list).map(({ group, version, kind, name }) => ({
    group,
    version,
    kind,
    plural: name,
  }));
}

function definitions(spec: JsonObject, field: string, list: 'owned' | 'required'): Definition[] {
  const value = readShape(spec[field] ?? null, definitionsShape, `spec.${field}`) as JsonObject;
  return (value[list] ?? []) as unknown as Definition[];
}

/** `spec.relatedImages` in order, repeated ones included. */
export function csvRelatedImages(spec: JsonObject): RelatedImage[] {
  const images = readShape(spec['relatedImages'] ?? null, relatedImagesShape, 'spec.relatedImages');
  return (images ?? []) as unknown as RelatedImage[];
}

/** The images of all containers and init containers of the deployments, each once, in order. */
export function csvDeploymentImages(spec: JsonObject): string[] {
  const { install } = readShape(spec, struct({ install: installShape }), 'spec') as unknown as {
    install: InstallStrategy;
  };
  if (install.strategy !== 'deployment') return [];
  const images = new Set<string>();
  for (const deployment of install.spec.deployments ?? []) {
    const pod = deployment.spec.template.spec;
    for (const container of pod.containers ?? []) images.add(container.image);
    for (const container of pod.initContainers ?? []) images.add(container.image);
  }
  return [...images];
}

interface InstallStrategy {
  strategy: string;
  spec: { deployments: { spec: { template: { spec: PodSpec } } }[] | null };
}

interface PodSpec {
  containers: { image: string }[] | null;
  initContainers: { image: string }[] | null;
}

/** A number as Go's `%g` prints it: shortest digits, with an exponent below 1e-4 and from 1e6 on. */
export function formatShortest(value: number): string {
  if (value === 0) return '0';
  const [digits = '', power = '0'] = value.toExponential().split('e');
  const exponent = Number(power);
  if (exponent >= -4 && exponent < 6) return String(value);
  return `${digits}e${exponent < 0 ? '-' : '+'}${String(Math.abs(exponent)).padStart(2, '0')}`;
}

/** Whether a manifest is a ClusterServiceVersion. */
export function isCsv(manifest: JsonValue): boolean {
  return isJsonObject(manifest) && manifest['kind'] === 'ClusterServiceVersion';
}

/** The first icon of a ClusterServiceVersion; undefined where there is none that can be decoded. */
export function csvIcon(csv: JsonValue): PackageIcon | undefined {
  const spec = isJsonObject(csv) ? csv['spec'] : undefined;
  const icons = isJsonObject(spec) ? spec['icon'] : undefined;
  const icon = Array.isArray(icons) ? icons[0] : undefined;
  if (!isJsonObject(icon)) return undefined;
  const { base64data, mediatype } = icon;
  if (typeof base64data !== 'string') return undefined;
  // Some tools have wrapped it with blanks.
  const data = [base64data, base64data.replaceAll(' ', '')].find((text) => base64Fault(text) === undefined);
  if (data === undefined) return undefined;
  const written = Buffer.from(data, 'base64').toString('base64');
  if (written === '') return undefined;
  return { base64data: written, mediatype: typeof mediatype === 'string' ? mediatype : '' };
}
