import { createWarning, type Diagnostic } from '../../core/diagnostic.js';
import { getObject, getObjects, getText } from '../../document/json-fields.js';
import { isJsonObject, type JsonObject } from '../../document/json.js';
import { findOlmV1Schema } from '../../kube/definitions/olm-v1.js';
import { validateObject } from '../../kube/schema/validate-object.js';

/** Returns what keeps a set from being stored or from becoming available. */
export function findSetHazards(set: JsonObject): Diagnostic[] {
  const subject = `ClusterObjectSet ${getText(set, 'metadata', 'name')}`;
  const schema = findOlmV1Schema('ClusterObjectSet', 'experimental');
  const causes = schema === undefined ? [] : validateObject(set, schema).causes;
  const refused = causes.filter(({ field }) => field !== '<nil>');
  const objects = getObjects(set, 'spec', 'phases').flatMap((phase) =>
    getObjects(phase, 'objects').map(({ object }) => (isJsonObject(object) ? object : {})),
  );
  const defined = new Set(
    objects
      .filter(({ kind }) => kind === 'CustomResourceDefinition')
      .map((crd) => `${getText(crd, 'spec', 'group')}/${getText(crd, 'spec', 'names', 'kind')}`),
  );
  const warnings = refused.map(({ field, message }) =>
    createWarning('refused', `${field}: ${message}`, {
      subject,
      hint: 'install it with a BundleDeployment, which has no such limit',
    }),
  );
  for (const object of objects) {
    const named = `${getText(object, 'kind')} ${getText(getObject(object, 'metadata'), 'name')}`;
    const group = getText(object, 'apiVersion').replace(/\/?[^/]*$/, '');
    if (defined.has(`${group}/${getText(object, 'kind')}`)) {
      const problem = 'its definition is in the same set, which therefore never starts';
      warnings.push(createWarning('own-definition', problem, { subject: named }));
    }
    if (group === 'apps' && object['kind'] === 'StatefulSet') {
      const problem = 'has no condition Available, so the set never completes';
      warnings.push(createWarning('never-available', problem, { subject: named }));
    }
  }
  return warnings;
}
