import { isDeepStrictEqual } from 'node:util';
import type { JsonObject } from '../../document/json.js';
import { type Crd as V1Crd, crdStruct, oldCrdStruct, schemaStruct } from '../../kube/crd-types.js';
import { conform } from '../../kube/struct.js';
import { type CheckedCrd, checkCrdRules } from './crd-rules.js';
import { type Reporter, soundValue } from './report.js';

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

/** Checks a custom resource definition of v1 or v1beta1. Returns undefined if fields have wrong types. */
export function checkCrd(manifest: JsonObject, report: Reporter): DefinedResources | undefined {
  const isV1 = manifest['apiVersion'] === 'apiextensions.k8s.io/v1';
  // Upstream's decoder accepts field names in any case, except in schemas.
  const options = { foldNames: { except: schemaStruct } };
  const v1 = isV1 ? soundValue(conform(manifest, crdStruct, options), report) : undefined;
  const crd: CheckedCrd | undefined = isV1
    ? v1 && fromV1(v1)
    : soundValue(conform(manifest, oldCrdStruct, options), report);
  if (crd === undefined) return undefined;
  const { version = '', versions = [] } = crd.spec;
  const names = versions.map(({ name }) => name);
  const defined = {
    name: crd.metadata.name ?? '',
    group: crd.spec.group,
    kind: crd.spec.names.kind,
    versions: !isV1 && version !== '' ? [version] : names,
    allVersions: versions.length === 0 && !isV1 ? [version] : names,
    isV1,
  };
  setDefaults(crd, isV1);
  checkCrdRules(crd, isV1 ? ['spec', 'versions', 0] : ['spec'], report);
  return defined;
}

/** Fields that v1 has in each version, by their names above the versions in v1beta1. */
const sharedFields = {
  subresources: 'subresources',
  validation: 'schema',
  additionalPrinterColumns: 'additionalPrinterColumns',
  selectableFields: 'selectableFields',
} as const;

/** Converts a definition of v1 to v1beta1, where fields that are equal in all versions are above them. */
function fromV1({ metadata, spec }: V1Crd): CheckedCrd {
  const { conversion, versions: listed, ...rest } = spec;
  const versions = (listed ?? []).map((version) => ({ ...version }));
  const crd: CheckedCrd = { metadata, spec: { ...rest, versions } };
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
  for (const [field, key] of Object.entries(sharedFields)) {
    const { [key]: value } = first;
    if (!versions.every((version) => isDeepStrictEqual(version[key], value))) continue;
    for (const version of versions) delete version[key];
    if (value !== undefined) Object.assign(crd.spec, { [field]: value });
  }
  return crd;
}

/** Sets the defaults of API servers. (Source: apiextensions v1 and v1beta1.) */
function setDefaults({ spec }: CheckedCrd, isV1: boolean): void {
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
