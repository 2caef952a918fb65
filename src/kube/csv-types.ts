import { type GoStruct, goStruct, listOf, pointerTo, stringMap, strings } from './struct.js';
import { intOrString, labelSelector, objectMeta, policyRule } from './meta-types.js';
import { deploymentSpec } from './pod-types.js';
import type { JsonObject, JsonValue } from '../document/json.js';

/** A rule of a Role or ClusterRole. */
export interface PolicyRule {
  verbs: string[] | null;
  apiGroups?: string[];
  resources?: string[];
  resourceNames?: string[];
  nonResourceURLs?: string[];
}

/** What one service account may do. */
export interface Permission {
  serviceAccountName: string;
  rules: PolicyRule[] | null;
}

/** A deployment of the operator, as the ClusterServiceVersion describes it. */
export interface StrategyDeployment {
  name: string;
  spec: JsonObject;
  label?: JsonObject;
}

/** A webhook of the operator. */
export interface WebhookDescription {
  generateName: string;
  type: string;
  deploymentName?: string;
  containerPort?: number;
  targetPort?: number | string;
  rules?: { apiGroups?: string[]; resources?: string[] }[];
  failurePolicy?: string;
  matchPolicy?: string;
  objectSelector?: JsonObject;
  sideEffects?: string | null;
  timeoutSeconds?: number;
  admissionReviewVersions: string[] | null;
  reinvocationPolicy?: string;
  webhookPath?: string;
  conversionCRDs?: string[];
}

/** The parts of a ClusterServiceVersion that installing it depends on. */
export interface ClusterServiceVersion {
  metadata: { name?: string; annotations?: Record<string, JsonValue> };
  spec: {
    installModes?: { type: string; supported: boolean }[];
    install: {
      strategy: string;
      spec?: {
        deployments: StrategyDeployment[] | null;
        permissions?: Permission[];
        clusterPermissions?: Permission[];
      };
    };
    webhookdefinitions?: WebhookDescription[];
    customresourcedefinitions?: { owned?: { name: string; version: string; kind: string }[] };
    apiservicedefinitions?: { owned?: { name: string; group: string; version: string; kind: string }[] };
  };
}

const permissions = listOf({ serviceAccountName: 'string', rules: { list: policyRule } });

const definitionFields = {
  name: 'string',
  version: 'string',
  kind: 'string',
} as const;

/** How the operator itself is installed. */
export const installStrategy = goStruct({
  strategy: 'string',
  'spec?': goStruct({
    deployments: listOf({ name: 'string', spec: deploymentSpec, 'label?': stringMap }),
    'permissions?': permissions,
    'clusterPermissions?': permissions,
  }),
});

/** `spec.webhookdefinitions`. */
export const webhookDefinitions = listOf({
  generateName: 'string',
  type: 'string',
  'deploymentName?': 'string',
  'containerPort?': 'int32',
  'targetPort?': pointerTo(intOrString),
  'rules?': listOf({
    'operations?': strings,
    'apiGroups?': strings,
    'apiVersions?': strings,
    'resources?': strings,
    'scope?': pointerTo('string'),
  }),
  'failurePolicy?': pointerTo('string'),
  'matchPolicy?': pointerTo('string'),
  'objectSelector?': pointerTo(labelSelector),
  sideEffects: pointerTo('string'),
  'timeoutSeconds?': pointerTo('int32'),
  admissionReviewVersions: strings,
  'reinvocationPolicy?': pointerTo('string'),
  'webhookPath?': pointerTo('string'),
  'conversionCRDs?': strings,
});

/** (Source: operator-framework/api, operators/v1alpha1.) */
export const csvStruct: GoStruct = goStruct({
  'metadata?': objectMeta,
  'kind?': 'string',
  'apiVersion?': 'string',
  'status?': 'any',
  spec: goStruct({
    'installModes?': listOf({ type: 'string', supported: 'bool' }),
    install: installStrategy,
    'webhookdefinitions?': webhookDefinitions,
    'customresourcedefinitions?': goStruct({ 'owned?': listOf(definitionFields) }),
    'apiservicedefinitions?': goStruct({ 'owned?': listOf({ ...definitionFields, group: 'string' }) }),
  }),
});
