import { isDeepStrictEqual } from 'node:util';
import type { JsonObject } from '../../document/json.js';
import { type Crd as V1Crd, crdStruct, oldCrdStruct, schemaStruct } from '../../kube/crd-types.js';
import { type Nullable, type StructType, conform } from '../../kube/struct.js';
import { type Crd, crdFaults } from './crd-rules.js';
import { type CheckDiagnostic, errorAt } from './diagnostic.js';

/** Custom resources of a definition. */
export interface DefinedResources {
  name: string;
  group: string;
  kind: string;
  /** Only the first if a definition of v1beta1 has `spec.version`. */
  versions: string[];
  allVersions: string[];
  isV1: boolean;
}

/** Checks a custom resource definition of v1 or v1beta1. `defined` is undefined if fields have wrong types. */
export function checkCrd(manifest: JsonObject): {
  faults: CheckDiagnostic[];
  defined: DefinedResources | undefined;
} {
  const isV1 = manifest['apiVersion'] === 'apiextensions.k8s.io/v1';
  const { crd, faults } = isV1
    ? readAs(manifest, crdStruct, fromV1)
    : readAs(manifest, oldCrdStruct, (old) => old);
  if (crd === undefined) return { faults, defined: undefined };
  const { version = '', versions = [] } = crd.spec;
  const defined = {
    name: crd.metadata.name ?? '',
    group: crd.spec.group,
    kind: crd.spec.names.kind,
    versions: !isV1 && version !== '' ? [version] : versions.map(({ name }) => name),
    allVersions: versions.length === 0 && !isV1 ? [version] : versions.map(({ name }) => name),
    isV1,
  };
  setDefaults(crd, isV1);
  return { faults: crdFaults(crd, isV1 ? ['spec', 'versions', 0] : ['spec']), defined };
}

function readAs<T extends StructType>(
  manifest: JsonObject,
  type: T,
  toCrd: (value: Nullable<T>) => Crd,
): { crd: Crd | undefined; faults: CheckDiagnostic[] } {
  // Upstream's decoder accepts field names in any case, except in schemas.
  const { value, faults } = conform(manifest, type, { foldNames: { except: schemaStruct } });
  if (faults.length === 0) return { crd: toCrd(value), faults: [] };
  return { crd: undefined, faults: faults.map(({ message, path }) => errorAt(path, message)) };
}

/** Converts a definition of v1 to v1beta1, where fields that are equal in all versions are above them. */
function fromV1({ metadata, spec }: V1Crd): Crd {
  const { conversion, versions: listed, ...rest } = spec;

  const versions = (listed ?? []).map((version) => ({ ...version }));
  const crd: Crd = { metadata, spec: { ...rest, versions } };
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

/** Sets the defaults of API servers. (Source: apiextensions v1 and v1beta1.) */
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
