import type { ObjectMeta } from '../../kube/meta-types.js';
import { type CheckDiagnostic, errorAt } from './diagnostic.js';
import { type Place, child, forbidden, invalid, required } from './field-diagnostics.js';
import { labelKeyFaults, labelValueFaults } from '../../kube/names.js';
import { splitApiVersion } from '../../kube/object.js';

const maxAnnotationBytes = 256 * 1024;

/**
 * Returns the faults of the metadata of a cluster-scoped object; `nameFaults` checks its name. (Source: apimachinery,
 * api/validation.)
 */
export function objectMetaFaults(
  meta: ObjectMeta,
  nameFaults: (name: string, isPrefix: boolean) => string[] = () => [],
): CheckDiagnostic[] {
  const location: Place = { field: 'metadata', path: ['metadata'] };
  const faults: CheckDiagnostic[] = [];
  const { name = '', generateName = '', namespace = '', generation = 0 } = meta;
  if (generateName !== '') {
    for (const fault of nameFaults(generateName, true))
      faults.push(invalid(child(location, 'generateName'), generateName, fault));
  }
  if (name === '') faults.push(required(child(location, 'name'), 'name or generateName is required'));
  else
    for (const fault of nameFaults(name, false)) faults.push(invalid(child(location, 'name'), name, fault));
  if (namespace !== '') faults.push(forbidden(child(location, 'namespace'), 'not allowed on this type'));
  if (generation < 0) {
    faults.push(invalid(child(location, 'generation'), generation, 'must be greater than or equal to 0'));
  }
  const inMap = (field: string, key: string): Place => ({
    ...child(location, field),
    path: ['metadata', field, key],
  });
  for (const [key, value] of Object.entries(meta.labels ?? {})) {
    for (const fault of labelKeyFaults(key)) faults.push(invalid(inMap('labels', key), key, fault));
    for (const fault of labelValueFaults(value)) faults.push(invalid(inMap('labels', key), value, fault));
  }
  let size = 0;
  for (const [key, value] of Object.entries(meta.annotations ?? {})) {
    size += Buffer.byteLength(key) + Buffer.byteLength(value);
    for (const fault of labelKeyFaults(key.toLowerCase())) {
      faults.push(invalid(inMap('annotations', key), key, fault));
    }
  }
  if (size > maxAnnotationBytes) {
    faults.push(tooLong(child(location, 'annotations'), maxAnnotationBytes));
  }
  faults.push(...ownerFaults(meta.ownerReferences ?? [], child(location, 'ownerReferences')));
  faults.push(...finalizerFaults(meta.finalizers ?? [], child(location, 'finalizers')));
  for (const [index, entry] of (meta.managedFields ?? []).entries()) {
    const place = child(location, 'managedFields', index);
    const { operation = '', fieldsType = '', manager = '', subresource = '' } = entry;
    if (operation !== 'Apply' && operation !== 'Update') {
      faults.push(invalid(child(place, 'operation'), operation, 'must be `Apply` or `Update`'));
    }
    if (fieldsType !== '' && fieldsType !== 'FieldsV1') {
      faults.push(invalid(child(place, 'fieldsType'), fieldsType, 'must be `FieldsV1`'));
    }
    for (const [field, text, max] of [
      ['manager', manager, 128],
      ['subresource', subresource, 256],
    ] as const) {
      if (Buffer.byteLength(text) > max) faults.push(tooLong(child(place, field), max));
    }
  }
  return faults;
}

function tooLong({ field, path }: Place, max: number): CheckDiagnostic {
  return errorAt(path, `${field}: Too long: may not be more than ${max} bytes`);
}

function ownerFaults(owners: NonNullable<ObjectMeta['ownerReferences']>, location: Place): CheckDiagnostic[] {
  const faults: CheckDiagnostic[] = [];
  let controller = '';
  for (const [index, owner] of owners.entries()) {
    const place = { ...location, path: [...location.path, index] };
    if (splitApiVersion(owner.apiVersion).version === '' || owner.apiVersion.split('/').length > 2) {
      faults.push(invalid(child(place, 'apiVersion'), owner.apiVersion, 'version must not be empty'));
    }
    for (const field of ['kind', 'name', 'uid'] as const) {
      if (owner[field] === '') faults.push(invalid(child(place, field), '', 'must not be empty'));
    }
    if (owner.apiVersion === 'v1' && owner.kind === 'Event') {
      faults.push(invalid(place, undefined, '/v1, Kind=Event is disallowed from being an owner'));
    }
    if (owner.controller !== true) continue;
    const title = `${owner.kind}/${owner.name}`;
    if (controller === '') {
      controller = title;
      continue;
    }
    const detail =
      'Only one reference can have Controller set to true. Found "true" in references for ' +
      `${controller} and ${title}`;
    faults.push(invalid(place, undefined, detail));
  }
  return faults;
}

function finalizerFaults(finalizers: string[], place: Place): CheckDiagnostic[] {
  const faults = finalizers.flatMap((finalizer, index) =>
    labelKeyFaults(finalizer).map((fault) =>
      invalid({ ...place, path: [...place.path, index] }, finalizer, fault),
    ),
  );
  if (finalizers.includes('orphan') && finalizers.includes('foregroundDeletion')) {
    faults.push(invalid(place, undefined, 'finalizer orphan and foregroundDeletion cannot be both set'));
  }
  return faults;
}
