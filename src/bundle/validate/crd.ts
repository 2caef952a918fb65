import { isDeepStrictEqual } from 'node:util';
import { foldFieldName } from '../../document/go-json-fold.js';
import { type JsonObject, type JsonValue, isJsonObject, setJsonKey } from '../../document/json.js';
import { clientConfig, crdNames, crdStruct, schemaStruct, subresources } from '../../kube/crd-types.js';
import { type GoType, conform, goStruct, listOf, pointerTo, strings } from '../../kube/struct.js';
import { objectMeta } from '../../kube/meta-types.js';
import { type Crd, crdFaults } from './crd-rules.js';
import { type CheckDiagnostic, errorAt } from './diagnostic.js';

const columns = listOf({
  name: 'string',
  type: 'string',
  'format?': 'string',
  'description?': 'string',
  'priority?': 'int32',
  JSONPath: 'string',
});
const validation = pointerTo(goStruct({ 'openAPIV3Schema?': pointerTo(schemaStruct) }));
const selectableFieldsType = listOf({ jsonPath: 'string' });
/** A custom resource definition of the version v1beta1. (Source: apiextensions/v1beta1.) */
const oldCrdStruct = goStruct({
  'kind?': 'string',
  'apiVersion?': 'string',
  'metadata?': objectMeta,
  spec: goStruct({
    group: 'string',
    'version?': 'string',
    names: crdNames,
    scope: 'string',
    'validation?': validation,
    'subresources?': subresources,
    'versions?': listOf({
      name: 'string',
      served: 'bool',
      storage: 'bool',
      'deprecated?': 'bool',
      'deprecationWarning?': pointerTo('string'),
      'schema?': validation,
      'subresources?': subresources,
      'additionalPrinterColumns?': columns,
      'selectableFields?': selectableFieldsType,
    }),
    'additionalPrinterColumns?': columns,
    'selectableFields?': selectableFieldsType,
    'conversion?': pointerTo(
      goStruct({
        strategy: 'string',
        'webhookClientConfig?': clientConfig,
        'conversionReviewVersions?': strings,
      }),
    ),
    'preserveUnknownFields?': pointerTo('bool'),
  }),
});

/** The custom resources that a definition defines. */
export interface DefinedResources {
  name: string;
  group: string;
  kind: string;
  versions: string[];
  /** All of them: `versions` has but the first where the old form names it apart. */
  allVersions: string[];
  isV1: boolean;
}

/**
 * Reads a custom resource definition of v1 or v1beta1 and says what is wrong with it. Without `defined` its
 * fields have not the types that they must have.
 */
export function checkCrd(manifest: JsonObject): {
  faults: CheckDiagnostic[];
  defined: DefinedResources | undefined;
} {
  const isV1 = manifest['apiVersion'] === 'apiextensions.k8s.io/v1';
  const type = isV1 ? crdStruct : oldCrdStruct;
  const conformed = conform(withExactNames(manifest, type), type);
  if (conformed.faults.length > 0) {
    return {
      faults: conformed.faults.map(({ message, path }) => errorAt(path, message)),
      defined: undefined,
    };
  }
  const crd = (isV1 ? fromV1(conformed.value as unknown as V1Crd) : conformed.value) as unknown as Crd;
  const { version = '', versions = [] } = crd.spec;
  const defined = {
    name: crd.metadata?.name ?? '',
    group: crd.spec.group,
    kind: crd.spec.names.kind,
    versions: !isV1 && version !== '' ? [version] : versions.map(({ name }) => name),
    allVersions: versions.length === 0 && !isV1 ? [version] : versions.map(({ name }) => name),
    isV1,
  };
  setDefaults(crd, isV1);
  return { faults: crdFaults(crd, isV1 ? ['spec', 'versions', 0] : ['spec']), defined };
}

/** Upstream reads definitions by a decoder that lets names of fields have any case; schemas are left as they are. */
function withExactNames(value: JsonValue, type: GoType): JsonValue {
  if (typeof type === 'string' || type === schemaStruct) return value;
  if ('pointer' in type) return withExactNames(value, type.pointer);
  if ('list' in type) {
    return Array.isArray(value) ? value.map((item) => withExactNames(item, type.list)) : value;
  }
  if (!('fields' in type) || !isJsonObject(value)) return value;
  const folded = new Map([...type.fields.keys()].map((name) => [foldFieldName(name), name]));
  const out: JsonObject = {};
  for (const [key, item] of Object.entries(value)) {
    const name = type.fields.has(key) ? key : (folded.get(foldFieldName(key)) ?? key);
    // Null leaves what another spelling of the same field gave.
    if (item === null && Object.hasOwn(out, name)) continue;
    setJsonKey(out, name, withExactNames(item, type.fields.get(name)?.type ?? 'any'));
  }
  return out;
}

interface V1Crd extends Omit<Crd, 'spec'> {
  spec: Crd['spec'] & {
    conversion?: {
      webhook?: { clientConfig?: JsonObject; conversionReviewVersions?: string[] | null };
    };
  };
}

/** What is the same in all versions stands above them, as it does in the old form. */
function fromV1({ metadata, spec }: V1Crd): Crd {
  const { conversion, versions: given, ...rest } = spec;
  // A list that is null is written where it is required.
  const versions = (given ?? []).map((version) => ({ ...version }));
  const crd = { metadata, spec: { ...rest, versions } } as Crd;
  crd.spec.preserveUnknownFields ??= false;
  if (conversion !== undefined) {
    const { clientConfig, conversionReviewVersions } = conversion.webhook ?? {};
    crd.spec.conversion = {
      strategy: conversion.strategy,
      ...(clientConfig !== undefined && { webhookClientConfig: clientConfig }),
      ...(conversionReviewVersions && { conversionReviewVersions }),
    };
  }
  const [first] = versions;
  if (first === undefined) return crd;
  crd.spec.version = first.name;
  const { subresources, schema, additionalPrinterColumns, selectableFields } = first;
  const take = (
    key: 'subresources' | 'schema' | 'additionalPrinterColumns' | 'selectableFields',
  ): boolean => {
    if (!versions.every((version) => isDeepStrictEqual(version[key], first[key]))) return false;
    for (const version of versions) delete version[key];
    return true;
  };
  if (take('subresources') && subresources) crd.spec.subresources = subresources;
  if (take('schema') && schema) crd.spec.validation = schema;
  if (take('additionalPrinterColumns') && additionalPrinterColumns) {
    crd.spec.additionalPrinterColumns = additionalPrinterColumns;
  }
  if (take('selectableFields') && selectableFields) crd.spec.selectableFields = selectableFields;
  return crd;
}

/** What an API server puts in. (Source: the defaults of apiextensions v1 and v1beta1.) */
function setDefaults({ spec }: Crd, isV1: boolean): void {
  const { names } = spec;
  if ((names.singular ?? '') === '') names.singular = names.kind.toLowerCase();
  if ((names.listKind ?? '') === '' && names.kind !== '') names.listKind = `${names.kind}List`;
  spec.conversion ??= { strategy: 'None' };
  if (isV1) return;
  if (spec.scope === '') spec.scope = 'Namespaced';
  const { version = '' } = spec;
  if ((spec.versions ?? []).length === 0 && version !== '') {
    spec.versions = [{ name: version, storage: true, served: true }];
  }
  if (version === '' && spec.versions?.[0] !== undefined) spec.version = spec.versions[0].name;
  const { conversion } = spec;
  if (conversion.strategy === 'Webhook' && (conversion.conversionReviewVersions ?? []).length === 0) {
    conversion.conversionReviewVersions = ['v1beta1'];
  }
  spec.preserveUnknownFields ??= true;
}
