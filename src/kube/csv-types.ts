import { SemverError, parseRelease, parseTolerantVersion, tryParse } from '../core/semver.js';
import { describeKind } from '../document/field.js';
import { intOrString, labelSelector, objectMeta, policyRule, time } from './meta-types.js';
import { deploymentSpec } from './pod-types.js';
import {
  type Fields,
  type Of,
  type TextType,
  fields,
  structList,
  namedString,
  pointerTo,
  stringMap,
  strings,
  struct,
} from './struct.js';

/** Types of ClusterServiceVersions. (Source: operator-framework/api, operators/v1alpha1.) */

/** Permissions of one service account. */
const permission = struct({ serviceAccountName: 'string', rules: { list: policyRule } });
const permissions = { list: permission } as const;

export type Permission = Of<typeof permission>;

/** A deployment of the operator. */
const strategyDeployment = struct({ name: 'string', spec: deploymentSpec, 'label?': stringMap });

/** Install strategy of the operator. */
export const installStrategy = struct({
  strategy: 'string',
  'spec?': struct({
    deployments: { list: strategyDeployment },
    ...fields(permissions, 'permissions?', 'clusterPermissions?'),
  }),
});

/** `spec.webhookdefinitions`. */
const webhookDefinitions = structList({
  ...fields('string', 'generateName', 'type', 'deploymentName?'),
  'containerPort?': 'int32',
  'targetPort?': pointerTo(intOrString),
  'rules?': structList({
    ...fields(strings, 'operations?', 'apiGroups?', 'apiVersions?', 'resources?'),
    'scope?': pointerTo('string'),
  }),
  ...fields(pointerTo('string'), 'failurePolicy?', 'matchPolicy?'),
  'objectSelector?': pointerTo(labelSelector),
  sideEffects: pointerTo('string'),
  'timeoutSeconds?': pointerTo('int32'),
  admissionReviewVersions: strings,
  ...fields(pointerTo('string'), 'reinvocationPolicy?', 'webhookPath?'),
  'conversionCRDs?': strings,
});

export type WebhookDescription = Of<typeof webhookDefinitions>[number];

const installModes = structList(
  { type: namedString('v1alpha1.InstallModeType'), supported: 'bool' },
  'v1alpha1.InstallMode',
);

/** Returns the type of strings for which `findProblem` returns undefined. */
function checkedText(
  noun: string,
  examples: string,
  findProblem: (text: string) => string | undefined,
): TextType<string, undefined> {
  return {
    read: (value) => (typeof value === 'string' && findProblem(value) === undefined ? value : undefined),
    zero: undefined,
    expected: `a ${noun} such as ${examples}`,
    explain: (value) =>
      (typeof value === 'string' ? findProblem(value) : undefined) ??
      `expected a string with a ${noun}, got ${describeKind(value)}`,
  };
}

/** A version, whose last parts may be missing. */
export const version = checkedText('version', '1.2.3', (text) => {
  try {
    parseTolerantVersion(text);
    return undefined;
  } catch (error) {
    if (error instanceof SemverError) return error.message;
    throw error;
  }
});

const release = checkedText('release', '1 or 2.alpha', (text) => {
  const wrong = text.split('.').find((part) => part === '' || tryParse(parseRelease, part) === undefined);
  return wrong === undefined ? undefined : `${JSON.stringify(wrong)} is not a release identifier`;
});

const descriptorFields = {
  ...fields('string', 'path', 'displayName?', 'description?'),
  'x-descriptors?': strings,
  'value?': 'raw',
} as const satisfies Fields;

const descriptionFields = {
  ...fields('string', 'displayName?', 'description?'),
  'resources?': structList(
    { name: 'string', kind: 'string', version: 'string' },
    'v1alpha1.APIResourceReference',
  ),
  'statusDescriptors?': structList(descriptorFields, 'v1alpha1.StatusDescriptor'),
  'specDescriptors?': structList(descriptorFields, 'v1alpha1.SpecDescriptor'),
  'actionDescriptors?': structList(descriptorFields, 'v1alpha1.ActionDescriptor'),
} as const satisfies Fields;

const crds = structList(
  { name: 'string', version: 'string', kind: 'string', ...descriptionFields },
  'v1alpha1.CRDDescription',
);
/** A custom resource that a ClusterServiceVersion describes. */
export type ApiDescription = Of<typeof crds>[number];

const apiServices = structList(
  {
    ...fields('string', 'name', 'group', 'version', 'kind', 'deploymentName?'),
    'containerPort?': 'int32',
    ...descriptionFields,
  },
  'v1alpha1.APIServiceDescription',
);
const crdDescriptions = struct({ 'owned?': crds, 'required?': crds }, 'v1alpha1.CustomResourceDefinitions');
const apiServiceDescriptions = struct(
  { 'owned?': apiServices, 'required?': apiServices },
  'v1alpha1.APIServiceDefinitions',
);
const nativeApis = structList({ group: 'string', version: 'string', kind: 'string' }, 'v1.GroupVersionKind');
const maintainers = structList({ 'name?': 'string', 'email?': 'string' }, 'v1alpha1.Maintainer');
const link = struct({ 'name?': 'string', 'url?': 'string' }, 'v1alpha1.AppLink');
const times = pointerTo(time);

/** The value of `olm.csv.metadata`. (Source: operator-registry, property.CSVMetadata.) */
export const csvMetadataType = struct(
  {
    'annotations?': stringMap,
    'apiServiceDefinitions?': apiServiceDescriptions,
    'crdDescriptions?': crdDescriptions,
    ...fields('string', 'description?', 'displayName?'),
    'installModes?': installModes,
    'keywords?': strings,
    'labels?': stringMap,
    'links?': { list: link },
    'maintainers?': maintainers,
    ...fields('string', 'maturity?', 'minKubeVersion?'),
    'nativeAPIs?': nativeApis,
    'provider?': link,
  },
  'property.CSVMetadata',
);

const specFields = {
  'version?': version,
  'release?': release,
  'maturity?': 'string',
  'customresourcedefinitions?': crdDescriptions,
  'apiservicedefinitions?': apiServiceDescriptions,
  'webhookdefinitions?': webhookDefinitions,
  'nativeAPIs?': nativeApis,
  ...fields('string', 'minKubeVersion?', 'displayName', 'description?'),
  'keywords?': strings,
  'maintainers?': maintainers,
  'provider?': link,
  'links?': { list: link },
  'icon?': structList({ base64data: 'string', mediatype: 'string' }),
  'installModes?': installModes,
  'replaces?': 'string',
  ...fields(stringMap, 'labels?', 'annotations?'),
  'selector?': pointerTo(labelSelector),
  'cleanup?': struct({ enabled: 'bool' }),
  'skips?': strings,
  'relatedImages?': structList({ name: 'string', image: 'string' }),
} as const satisfies Fields;

/** `spec` of a ClusterServiceVersion. */
export const csvSpecType = struct({ install: installStrategy, ...specFields });

const conditionFields = {
  ...fields('string', 'phase?', 'message?', 'reason?'),
  ...fields(times, 'lastUpdateTime?', 'lastTransitionTime?'),
} as const satisfies Fields;

const dependentFields = {
  ...fields('string', 'group', 'version', 'kind', 'status', 'uuid?', 'message?'),
} as const satisfies Fields;

/** A whole ClusterServiceVersion. */
export const csvType = struct({
  ...fields('string', 'kind?', 'apiVersion?'),
  metadata: objectMeta,
  spec: csvSpecType,
  status: struct({
    ...conditionFields,
    'conditions?': structList(conditionFields),
    'requirementStatus?': structList({
      ...dependentFields,
      name: 'string',
      'dependents?': structList(dependentFields),
    }),
    ...fields(times, 'certsLastUpdated?', 'certsRotateAt?'),
    'cleanup?': struct({
      'pendingDeletion?': structList({
        ...fields('string', 'group', 'kind'),
        instances: structList({ name: 'string', 'namespace?': 'string' }),
      }),
    }),
  }),
});

const container = structList({
  ...fields('string', 'name', 'image'),
  ...fields(strings, 'command', 'args'),
  workingDir: 'string',
  ports: structList({ name: 'string', containerPort: 'int32', hostPort: 'int32', protocol: 'string' }),
  env: structList({ name: 'string', value: 'string' }),
  imagePullPolicy: 'string',
});

/** Images that an operator is installed from. Reading whole pods takes several times as long. */
export const installImages = struct({
  strategy: 'string',
  spec: struct({
    deployments: structList({
      name: 'string',
      label: stringMap,
      spec: struct({
        ...fields('int32', 'replicas', 'minReadySeconds', 'revisionHistoryLimit', 'progressDeadlineSeconds'),
        paused: 'bool',
        template: struct({
          metadata: objectMeta,
          spec: struct({
            ...fields(container, 'containers', 'initContainers'),
            serviceAccountName: 'string',
            nodeSelector: stringMap,
            priorityClassName: 'string',
            hostNetwork: 'bool',
            terminationGracePeriodSeconds: 'int64',
          }),
        }),
      }),
    }),
  }),
});

/** Parts of a ClusterServiceVersion shown for an operator. */
export const shownCsv = struct({
  ...fields('string', 'apiVersion', 'kind'),
  metadata: objectMeta,
  spec: struct({ install: installImages, ...specFields }),
});

export type Csv = Of<typeof csvType>;

/** APIs without their details, for definitions and API services. */
const apis = structList({ group: 'string', kind: 'string', name: 'string', version: 'string' });
export const apiDefinitions = struct({ owned: apis, required: apis });

/** Parts of a ClusterServiceVersion that its installation depends on; others may have any form. */
export const csvStruct = struct({
  'metadata?': objectMeta,
  ...fields('string', 'kind?', 'apiVersion?'),
  'status?': 'any',
  spec: struct({
    'installModes?': installModes,
    install: installStrategy,
    'webhookdefinitions?': webhookDefinitions,
    'customresourcedefinitions?': struct({
      'owned?': structList({ name: 'string', version: 'string', kind: 'string' }),
    }),
    'apiservicedefinitions?': struct({
      'owned?': structList({ name: 'string', version: 'string', kind: 'string', group: 'string' }),
    }),
  }),
});

export type ClusterServiceVersion = Of<typeof csvStruct>;
