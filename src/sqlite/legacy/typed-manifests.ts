import { OpmateError } from '../../core/errors.js';
import { findField } from '../../document/go-json-fold.js';
import { type JsonObject, type JsonValue, isJsonObject } from '../../document/json.js';
import { oldCrdStruct } from '../../kube/crd-types.js';
import { objectMeta } from '../../kube/meta-types.js';
import { readTyped, struct } from '../../kube/struct.js';
import type { ApiKey } from '../../model/csv.js';

/**
 * Manifests as Kubernetes' types hold them: what reads a ConfigMap of manifests takes them through these, so
 * unknown fields go, and fields that are always written come. (Source: apiextensions.k8s.io/v1beta1 and
 * metav1.ObjectMeta.)
 */

const csvType = struct({ 'apiVersion?': 'string', 'kind?': 'string', metadata: objectMeta, spec: 'any' });

/** Reads a ClusterServiceVersion, and leaves its status out. Throws OpmateError INVALID. */
export function readTypedCsv(value: JsonObject): JsonObject {
  const csv = readTyped(value, csvType, { foldNames: true });
  if (csv.kind !== 'ClusterServiceVersion') {
    const problem = `csv name not found: kind is ${JSON.stringify(csv.kind ?? '')}, not ClusterServiceVersion`;
    throw new OpmateError('INVALID', problem);
  }
  if (csv.spec === null && fieldIn(value, 'spec') === undefined) {
    throw new OpmateError('INVALID', 'spec: not found');
  }
  return csv;
}

/**
 * Reads a custom resource definition, and which APIs it defines: those of `spec.versions`, or where there is
 * no such list, of `spec.version`, which then becomes that list. Throws TypeMismatchError.
 */
export function readTypedCrd(value: JsonObject): { crd: JsonObject; apis: ApiKey[] } {
  const crd = readTyped(value, oldCrdStruct, { foldNames: true });
  const { spec } = crd;
  // An empty list is one, so what is left out when it is empty must be looked up.
  const hasList = Array.isArray(fieldIn(fieldIn(value, 'spec'), 'versions'));
  if (!hasList && spec.version !== undefined) {
    spec.versions = [{ name: spec.version, served: true, storage: true }];
  }
  const { group, names } = spec;
  const { kind, plural } = names;
  return {
    crd,
    apis: (spec.versions ?? []).map(({ name }) => ({ group, version: name, kind, plural })),
  };
}

function fieldIn(value: JsonValue | undefined, name: string): JsonValue | undefined {
  return isJsonObject(value) ? findField(value, name) : undefined;
}
