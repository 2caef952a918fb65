import type { ObjectMeta } from '../../kube/meta-types.js';
import { labelKeyFaults, labelValueFaults, maxAnnotationBytes } from '../../kube/names.js';
import { splitApiVersion } from '../../kube/object.js';
import { CheckedField, type Reporter } from './report.js';

/**
 * Checks the metadata of a cluster-scoped object; `nameFaults` checks its name. (Source: apimachinery, api/validation.)
 */
export function checkObjectMeta(
  meta: ObjectMeta,
  report: Reporter,
  nameFaults: (name: string, isPrefix: boolean) => string[] = () => [],
): void {
  const metadata = new CheckedField(report, ['metadata']);
  const { name = '', generateName = '', namespace = '', generation = 0 } = meta;
  const each = (field: CheckedField, value: string, faults: readonly string[]): void => {
    for (const fault of faults) field.invalid(value, fault);
  };
  if (generateName !== '') each(metadata.child('generateName'), generateName, nameFaults(generateName, true));
  if (name === '') metadata.child('name').required('name or generateName is required');
  else each(metadata.child('name'), name, nameFaults(name, false));
  if (namespace !== '') metadata.child('namespace').fail('Forbidden: not allowed on this type');
  if (generation < 0) {
    metadata.child('generation').invalid(generation, 'must be greater than or equal to 0');
  }
  for (const [key, value] of Object.entries(meta.labels ?? {})) {
    const label = metadata.child('labels', ['labels', key]);
    each(label, key, labelKeyFaults(key));
    each(label, value, labelValueFaults(value));
  }
  let size = 0;
  for (const [key, value] of Object.entries(meta.annotations ?? {})) {
    size += Buffer.byteLength(key) + Buffer.byteLength(value);
    each(metadata.child('annotations', ['annotations', key]), key, labelKeyFaults(key.toLowerCase()));
  }
  limitLength(metadata.child('annotations'), size, maxAnnotationBytes);
  checkOwners(meta.ownerReferences ?? [], metadata.child('ownerReferences'));
  const finalizers = metadata.child('finalizers');
  for (const [index, finalizer] of (meta.finalizers ?? []).entries()) {
    each(finalizers.item(index), finalizer, labelKeyFaults(finalizer));
  }
  if (['orphan', 'foregroundDeletion'].every((finalizer) => meta.finalizers?.includes(finalizer))) {
    finalizers.invalid(undefined, 'finalizer orphan and foregroundDeletion cannot be both set');
  }
  for (const [index, entry] of (meta.managedFields ?? []).entries()) {
    const field = metadata.child('managedFields').child(index);
    const { operation = '', fieldsType = '', manager = '', subresource = '' } = entry;
    if (operation !== 'Apply' && operation !== 'Update') {
      field.child('operation').invalid(operation, 'must be `Apply` or `Update`');
    }
    if (fieldsType !== '' && fieldsType !== 'FieldsV1') {
      field.child('fieldsType').invalid(fieldsType, 'must be `FieldsV1`');
    }
    limitLength(field.child('manager'), Buffer.byteLength(manager), 128);
    limitLength(field.child('subresource'), Buffer.byteLength(subresource), 256);
  }
}

function limitLength(field: CheckedField, length: number, max: number): void {
  if (length > max) field.fail(`Too long: may not be more than ${max} bytes`);
}

function checkOwners(owners: NonNullable<ObjectMeta['ownerReferences']>, references: CheckedField): void {
  let controller = '';
  for (const [index, owner] of owners.entries()) {
    const field = references.item(index);
    const { apiVersion, kind, name } = owner;
    if (splitApiVersion(apiVersion).version === '' || apiVersion.split('/').length > 2) {
      field.child('apiVersion').invalid(apiVersion, 'version must not be empty');
    }
    for (const key of ['kind', 'name', 'uid'] as const) {
      if (owner[key] === '') field.child(key).invalid('', 'must not be empty');
    }
    if (apiVersion === 'v1' && kind === 'Event') {
      field.invalid(undefined, '/v1, Kind=Event is disallowed from being an owner');
    }
    if (owner.controller !== true) continue;
    const title = `${kind}/${name}`;
    if (controller === '') controller = title;
    else {
      const detail =
        'Only one reference can have Controller set to true. Found "true" in references for ' +
        `${controller} and ${title}`;
      field.invalid(undefined, detail);
    }
  }
}
