import { type JsonValue, isJsonObject } from '../../document/json.js';
import { SemverError, parseRelease, parseTolerantVersion } from '../../core/semver.js';
import { type PolicyRule, installStrategy, webhookDefinitions } from '../../kube/csv-types.js';
import {
  type GoText,
  type GoType,
  goStruct,
  listOf,
  pointerTo,
  stringMap,
  strings,
} from '../../kube/struct.js';
import { labelSelector, objectMeta, time } from '../../kube/meta-types.js';
import type { ObjectMeta } from './object-meta.js';

/** An API that a ClusterServiceVersion describes; group is that of an API service. */
export interface ApiDescription {
  name: string;
  group?: string;
  version: string;
  kind: string;
  description?: string;
  resources?: { name: string; kind: string; version: string }[];
}

/** Permissions of one service account. */
export interface AccountPermissions {
  serviceAccountName: string;
  rules: PolicyRule[] | null;
}

/** A container of a deployment, as far as it is checked. */
export interface Container {
  name: string;
  image?: string;
  resources?: { requests?: Record<string, string> };
}

/** A deployment of the operator. */
export interface Deployment {
  name: string;
  spec: { template: { spec?: PodSpec } };
}

/** What runs in it. */
export interface PodSpec {
  serviceAccountName?: string;
  containers: Container[] | null;
  affinity?: {
    nodeAffinity?: {
      requiredDuringSchedulingIgnoredDuringExecution?: {
        nodeSelectorTerms:
          { matchExpressions?: { key: string; operator: string; values?: string[] }[] }[] | null;
      };
    };
  };
}

/** A ClusterServiceVersion, as far as validators look at it. */
export interface Csv {
  apiVersion?: string;
  metadata: ObjectMeta;
  spec: {
    install: {
      strategy: string;
      spec?: {
        deployments: Deployment[] | null;
        permissions?: AccountPermissions[];
        clusterPermissions?: AccountPermissions[];
      };
    };
    version?: string;
    release?: string;
    customresourcedefinitions?: { owned?: ApiDescription[]; required?: ApiDescription[] };
    apiservicedefinitions?: { owned?: ApiDescription[]; required?: ApiDescription[] };
    webhookdefinitions?: { conversionCRDs?: string[] }[];
    minKubeVersion?: string;
    maintainers?: { name?: string; email?: string }[];
    provider?: { name?: string };
    links?: { name?: string; url?: string }[];
    icon?: { base64data: string; mediatype: string }[];
    installModes?: { type: string; supported: boolean }[];
    replaces?: string;
    relatedImages?: { name: string; image: string }[];
  };
}

function unless<E>(error: new (message: string) => E, work: () => unknown): boolean {
  try {
    work();
    return true;
  } catch (caught) {
    if (caught instanceof error) return false;
    throw caught;
  }
}

const version: GoText = {
  read: (value) =>
    typeof value === 'string' && unless(SemverError, () => parseTolerantVersion(value)) ? value : undefined,
  zero: undefined,
  expected: 'a version such as 1.2.3',
};

const release: GoText = {
  read: (value) => {
    const isRelease =
      typeof value === 'string' &&
      value.split('.').every((segment) => segment !== '' && unless(SemverError, () => parseRelease(segment)));
    return isRelease ? value : undefined;
  },
  zero: undefined,
  expected: 'a release such as 1 or 2.alpha',
};

const descriptors = listOf({
  path: 'string',
  'displayName?': 'string',
  'description?': 'string',
  'x-descriptors?': strings,
  'value?': 'any',
});

const apiFields = {
  name: 'string',
  version: 'string',
  kind: 'string',
  'displayName?': 'string',
  'description?': 'string',
  'resources?': listOf({ name: 'string', kind: 'string', version: 'string' }),
  'statusDescriptors?': descriptors,
  'specDescriptors?': descriptors,
  'actionDescriptors?': descriptors,
} as const satisfies Record<string, GoType>;

const crds = listOf(apiFields);
const apiServices = listOf({
  ...apiFields,
  group: 'string',
  'deploymentName?': 'string',
  'containerPort?': 'int32',
});
const times = pointerTo(time);

const spec = goStruct({
  install: installStrategy,
  'version?': version,
  'release?': release,
  'maturity?': 'string',
  'customresourcedefinitions?': goStruct({ 'owned?': crds, 'required?': crds }),
  'apiservicedefinitions?': goStruct({ 'owned?': apiServices, 'required?': apiServices }),
  'webhookdefinitions?': webhookDefinitions,
  'nativeAPIs?': listOf({ group: 'string', version: 'string', kind: 'string' }),
  'minKubeVersion?': 'string',
  displayName: 'string',
  'description?': 'string',
  'keywords?': strings,
  'maintainers?': listOf({ 'name?': 'string', 'email?': 'string' }),
  'provider?': goStruct({ 'name?': 'string', 'url?': 'string' }),
  'links?': listOf({ 'name?': 'string', 'url?': 'string' }),
  'icon?': listOf({ base64data: 'string', mediatype: 'string' }),
  'installModes?': listOf({ type: 'string', supported: 'bool' }),
  'replaces?': 'string',
  'labels?': stringMap,
  'annotations?': stringMap,
  'selector?': pointerTo(labelSelector),
  'cleanup?': goStruct({ enabled: 'bool' }),
  'skips?': strings,
  'relatedImages?': listOf({ name: 'string', image: 'string' }),
});

const conditionFields = {
  'phase?': 'string',
  'message?': 'string',
  'reason?': 'string',
  'lastUpdateTime?': times,
  'lastTransitionTime?': times,
} as const satisfies Record<string, GoType>;

const dependentFields = {
  group: 'string',
  version: 'string',
  kind: 'string',
  status: 'string',
  'uuid?': 'string',
  'message?': 'string',
} as const satisfies Record<string, GoType>;

/** A ClusterServiceVersion, field by field. (Source: operator-framework/api, operators/v1alpha1.) */
export const csvType = goStruct({
  'kind?': 'string',
  'apiVersion?': 'string',
  metadata: objectMeta,
  spec,
  status: goStruct({
    ...conditionFields,
    'conditions?': listOf(conditionFields),
    'requirementStatus?': listOf({
      ...dependentFields,
      name: 'string',
      'dependents?': listOf(dependentFields),
    }),
    'certsLastUpdated?': times,
    'certsRotateAt?': times,
    'cleanup?': goStruct({
      'pendingDeletion?': listOf({
        group: 'string',
        kind: 'string',
        instances: listOf({ name: 'string', 'namespace?': 'string' }),
      }),
    }),
  }),
});

/** The two parts of which upstream asks whether anything of them is given. */
export const csvParts = { install: installStrategy, spec };

/**
 * Whether nothing is given of a type, in Go's sense: a list or an object that is empty is something. (Source:
 * reflect.Value.IsZero.)
 */
export function isZero(value: JsonValue | undefined, type: GoType): boolean {
  if (value === null || value === undefined) return true;
  if (typeof type === 'string') return type !== 'any' && (value === '' || value === 0 || value === false);
  if ('read' in type) {
    if (type !== version) return false;
    return typeof value === 'string' && /^\s*v?0*(?:\.0*)?(?:\.0*)?\s*$/.test(value);
  }
  if (!('fields' in type) || !isJsonObject(value)) return false;
  for (const [name, field] of type.fields) {
    if (Object.hasOwn(value, name) && !isZero(value[name], field.type)) return false;
  }
  return true;
}
