import { OpmateError } from '../../core/errors.js';
import { findField } from '../../document/go-json-fold.js';
import { type JsonObject, type JsonValue, isJsonObject } from '../../document/json.js';
import { oldCrdStruct } from '../../kube/crd-types.js';
import { objectMeta } from '../../kube/meta-types.js';
import { readTyped, struct } from '../../kube/struct.js';
import type { ApiKey } from '../../model/csv.js';

/**
 * Manifests through Kubernetes' types, as a ConfigMap of manifests is read: unknown fields are dropped, and fields
 * that are always written are added. (Source: apiextensions.k8s.io/v1beta1 and metav1.ObjectMeta.)
 */

const csvType = struct({ 'apiVersion?': 'string', 'kind?': 'string', metadata: objectMeta, spec: 'any' });

/** Reads a ClusterServiceVersion without its status. Throws OpmateError INVALID. */
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
 * Reads a custom resource definition and its APIs: those of `spec.versions` or, without this list, of `spec.version`,
 * which then becomes the list. Throws TypeMismatchError.
 */
export function readTypedCrd(value: JsonObject): { crd: JsonObject; apis: ApiKey[] } {
  const crd = readTyped(value, oldCrdStruct, { foldNames: true });
  const { spec } = crd;
  // An empty list exists too, so omitted empty fields must be looked up.
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
