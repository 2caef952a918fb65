import { OpmateError } from '../../core/errors.js';
import { quoteGo } from '../../document/go-json.js';
import { getText } from '../../document/json-fields.js';
import type { JsonObject } from '../../document/json.js';
import { type DefinitionSet, findOlmV1Schema } from '../../kube/definitions/olm-v1.js';
import { type ObjectValidation, validateObject } from '../../kube/schema/validate-object.js';

/** Options of `validateOlmObject`. */
export interface ValidateOlmObjectOptions {
  /** Definitions of the cluster, default `experimental`. */
  definitions?: DefinitionSet | undefined;
  /** Stored object that the document changes. */
  old?: JsonObject | undefined;
}

/**
 * Validates a ClusterExtension, ClusterCatalog or ClusterObjectSet as the API server does: unknown fields, defaults,
 * schema and CEL rules. Throws OpmateError UNSUPPORTED for other kinds.
 */
export function validateOlmObject(
  document: JsonObject,
  { definitions = 'experimental', old }: ValidateOlmObjectOptions = {},
): ObjectValidation {
  const [apiVersion, kind] = [getText(document, 'apiVersion'), getText(document, 'kind')];
  const schema =
    apiVersion === 'olm.operatorframework.io/v1' ? findOlmV1Schema(kind, definitions) : undefined;
  if (schema === undefined) {
    throw new OpmateError('UNSUPPORTED', `no definition of kind ${quoteGo(kind)} of ${quoteGo(apiVersion)}`);
  }
  return validateObject(document, schema, old);
}
