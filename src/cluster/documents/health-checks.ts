import type { ProgressionProbe } from '../../bundle/object-set/probes.js';
import type { Field } from '../../document/field.js';
import { isJsonObject } from '../../document/json.js';
import { clusterObjectSetSchema } from '../../kube/definitions/cluster-object-set.js';
import { listRefusedFields, validatePart } from '../../kube/schema/validate-object.js';

const probesSchema = clusterObjectSetSchema.properties?.['spec']?.properties?.['progressionProbes'] ?? {};

/**
 * Reads `spec.healthChecks`: probes of objects in the form of `progressionProbes` of a ClusterObjectSet, checked with the
 * rules of its definition. Undefined if absent or invalid.
 */
export function readHealthChecks<Failure extends undefined>(
  field: Field<Failure>,
): ProgressionProbe[] | undefined {
  if (field.value === undefined) return undefined;
  const validation = validatePart(field.value, probesSchema, 'healthChecks');
  for (const { path, problem } of listRefusedFields(validation)) {
    let part = field;
    for (const key of path.slice(1)) part = part.field(key);
    part.fail(problem);
  }
  const { value } = validation;
  return Array.isArray(value) ? (value.filter(isJsonObject) as object[] as ProgressionProbe[]) : undefined;
}
