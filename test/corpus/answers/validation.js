// Answers whether the API server accepts documents of OLM v1 and their changes.
import { validateOlmObject } from '../../../dist/api/deployment/validate-object.js';

export async function answer({ id, crd, steps }) {
  let old;
  const answers = steps.map(({ op, doc }) => {
    const result = validateOlmObject(doc, { definitions: crd, ...(op === 'update' && old && { old }) });
    if (result.object !== undefined) {
      old = result.object;
      return { accepted: true, spec: result.object.spec };
    }
    if (result.unknownFields.length > 0) {
      const fields = result.unknownFields.map((field) => `unknown field "${field}"`).join(', ');
      return {
        accepted: false,
        code: 400,
        reason: 'BadRequest',
        message: `strict decoding error: ${fields}`,
      };
    }
    const causes = result.causes.map(({ field, reason, message }) => [field, reason, message]);
    return { accepted: false, code: 422, reason: 'Invalid', causes };
  });
  return { id, steps: answers };
}
