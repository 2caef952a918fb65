import { isDeepStrictEqual } from 'node:util';
import { quoteGo } from '../../document/go-json.js';
import { type JsonValue, isJsonObject } from '../../document/json.js';
import type { CheckDiagnostic } from './diagnostic.js';
import { type Place, child, forbidden, invalid, notSupported, required } from './field-diagnostics.js';
import type { OldCrd } from '../../kube/crd-types.js';
import { dns1035LabelFaults, subdomainFaults } from '../../kube/names.js';
import type { ObjectMeta } from '../../kube/meta-types.js';
import { objectMetaFaults } from './object-meta.js';
import { selectableFieldFaults } from './selectable-fields.js';
import { parseRequestUri } from './uri.js';

type OldSpec = OldCrd['spec'];
type OldVersion = NonNullable<OldSpec['versions']>[number];
type OldColumn = NonNullable<OldSpec['additionalPrinterColumns']>[number];

/** A column of `kubectl get`. Its path is `JSONPath` in the old form. */
type PrinterColumn = Omit<OldColumn, 'JSONPath'> & { jsonPath?: string; JSONPath?: string };

/** A version of a custom resource, from a definition of v1 or v1beta1. */
type CrdVersion = Omit<OldVersion, 'additionalPrinterColumns'> & {
  additionalPrinterColumns?: PrinterColumn[];
};

/** A custom resource definition of v1beta1, or one of v1 in the same form. */
export interface Crd {
  metadata: ObjectMeta;
  spec: Omit<OldSpec, 'versions' | 'additionalPrinterColumns'> & {
    versions?: CrdVersion[];
    additionalPrinterColumns?: PrinterColumn[];
  };
}

type Subresources = NonNullable<OldSpec['subresources']>;
type Conversion = NonNullable<OldSpec['conversion']>;
type WebhookService = NonNullable<NonNullable<Conversion['webhookClientConfig']>['service']>;

const spec: Place = { field: 'spec', path: ['spec'] };
const columnTypes = ['boolean', 'date', 'integer', 'number', 'string'];
const columnFormats = ['byte', 'date', 'date-time', 'double', 'float', 'int32', 'int64', 'password'];

/**
 * Returns the faults of a definition, except those of its schemas and of fields named `status…`, which upstream filters
 * out. `shared` is the path of fields that apply to all versions. (Source: apiextensions-apiserver, validation.)
 */
export function crdFaults(crd: Crd, shared: readonly (string | number)[]): CheckDiagnostic[] {
  const { group, names } = crd.spec;
  const wanted = `${names.plural}.${group}`;
  const faults = objectMetaFaults(crd.metadata, (name, isPrefix) => [
    // The generated suffix makes the last dash of a prefix an inner one.
    ...subdomainFaults(isPrefix ? name.replace(/(.)-$/s, '$1a') : name),
    ...(name === wanted ? [] : ['must be spec.names.plural+"."+spec.group']),
  ]);
  faults.push(...specFaults(crd, shared), ...approvalFaults(crd));
  if (crd.spec.preserveUnknownFields === true) {
    const detail =
      'cannot set to true, set x-kubernetes-preserve-unknown-fields to true in spec.versions[*].schema instead';
    faults.push(invalid(child(spec, 'preserveUnknownFields'), true, detail));
  }
  return faults;
}

function specFaults({ spec: crd }: Crd, shared: readonly (string | number)[]): CheckDiagnostic[] {
  const faults: CheckDiagnostic[] = [];
  const { group, names, scope, versions = [] } = crd;
  const groupFaults = subdomainFaults(group);
  const atGroup = child(spec, 'group');
  if (group === '') faults.push(required(atGroup));
  else if (groupFaults.length > 0) faults.push(invalid(atGroup, group, groupFaults.join(',')));
  else if (!group.includes('.')) {
    faults.push(invalid(atGroup, group, 'should be a domain with at least one dot'));
  }
  if (scope === '') faults.push(required(child(spec, 'scope')));
  else if (scope !== 'Cluster' && scope !== 'Namespaced') {
    faults.push(notSupported(child(spec, 'scope'), scope, ['Cluster', 'Namespaced']));
  }
  const schemas = [crd.validation, ...versions.map(({ schema }) => schema)];
  if (crd.preserveUnknownFields !== false && schemas.some((value) => hasDefault(value?.openAPIV3Schema, 0))) {
    const place = child(spec, 'preserveUnknownFields');
    faults.push(invalid(place, true, 'must be false in order to use defaults in the schema'));
  }
  faults.push(...versionsFaults(crd, versions));
  for (const field of ['plural', 'singular', 'kind', 'listKind'] as const) {
    if ((names[field] ?? '') === '') faults.push(required(child(spec, 'names', field)));
  }
  faults.push(...namesFaults(names));
  const top = (field: string): Place => ({ field: `spec.${field}`, path: [...shared, field] });
  faults.push(...subresourceFaults(crd.subresources, top('subresources')));
  faults.push(...columnFaults(crd.additionalPrinterColumns, top('additionalPrinterColumns')));
  if (crd.selectableFields !== undefined) {
    const place = top('selectableFields');
    if (crd.validation === undefined) {
      faults.push(invalid(place, '', 'may only be set when validations.schema is included'));
    } else {
      faults.push(...selectableFieldFaults(crd.selectableFields, crd.validation.openAPIV3Schema, place));
    }
  }
  return [...faults, ...conversionFaults(crd.conversion, crd.preserveUnknownFields)];
}

function versionsFaults(crd: Crd['spec'], versions: readonly CrdVersion[]): CheckDiagnostic[] {
  const faults: CheckDiagnostic[] = [];
  const all = child(spec, 'versions');
  for (const [index, version] of versions.entries()) {
    const place = child(all, index);
    const nameFaults = dns1035LabelFaults(version.name);
    if (nameFaults.length > 0) faults.push(invalid(child(place, 'name'), version.name, nameFaults.join(',')));
    faults.push(...deprecationFaults(version, child(place, 'deprecationWarning')));
    faults.push(...subresourceFaults(version.subresources, child(place, 'subresources')));
    faults.push(...columnFaults(version.additionalPrinterColumns, child(place, 'additionalPrinterColumns')));
    if (version.selectableFields === undefined) continue;
    const selectable = child(place, 'selectableFields');
    if (version.schema?.openAPIV3Schema === undefined) {
      const detail = 'may only be set when `version.schema.openAPIV3Schema` is not included';
      faults.push(invalid(selectable, '', detail));
    } else {
      const schema = version.schema.openAPIV3Schema;
      faults.push(...selectableFieldFaults(version.selectableFields, schema, selectable));
    }
  }
  const kinds = [
    ['validation', 'schema', 'schemas'],
    ['subresources', 'subresources', 'subresources'],
    ['additionalPrinterColumns', 'additionalPrinterColumns', 'additionalPrinterColumns'],
  ] as const;
  for (const [top, each, plural] of kinds) {
    const values = versions.map((version) => version[each]);
    if (crd[top] !== undefined && values.some((item) => item !== undefined)) {
      const detail = `top-level and per-version ${plural} are mutually exclusive`;
      faults.push(forbidden(child(spec, top), detail));
    }
    const [first] = values;
    if (first !== undefined && values.every((item) => item !== undefined && isDeepStrictEqual(item, first))) {
      const detail = `per-version ${plural} may not all be set to identical values (top-level ${top} should be used instead)`;
      faults.push(invalid(all, undefined, detail));
    }
  }
  if (new Set(versions.map(({ name }) => name)).size < versions.length) {
    faults.push(invalid(all, undefined, 'must contain unique version names'));
  }
  if (versions.filter(({ storage }) => storage).length !== 1) {
    faults.push(invalid(all, undefined, 'must have exactly one version marked as storage version'));
  }
  const { version = '' } = crd;
  if (version !== '') {
    const nameFaults = dns1035LabelFaults(version);
    if (nameFaults.length > 0) faults.push(invalid(child(spec, 'version'), version, nameFaults.join(',')));
    if (versions[0] !== undefined && versions[0].name !== version) {
      faults.push(invalid(child(spec, 'version'), version, 'must match the first version in spec.versions'));
    }
  }
  return faults;
}

function deprecationFaults(
  { deprecated, deprecationWarning: warning }: CrdVersion,
  place: Place,
): CheckDiagnostic[] {
  if (warning === undefined) return [];
  if (deprecated !== true) return [invalid(place, warning, 'can only be set for deprecated versions')];
  const faults: CheckDiagnostic[] = [];
  if (Buffer.byteLength(warning) > 256)
    faults.push(invalid(place, warning, 'must be <= 256 characters long'));
  if (warning === '') faults.push(invalid(place, warning, 'must not be an empty string'));
  const bad = /[^\p{L}\p{M}\p{N}\p{P}\p{S} ]/u.exec(warning);
  if (bad !== null) {
    const index = Buffer.byteLength(warning.slice(0, bad.index));
    const detail = `must only contain printable UTF-8 characters; non-printable character found at index ${index}`;
    faults.push(invalid(place, warning, detail));
  }
  return faults;
}

function namesFaults(names: OldSpec['names']): CheckDiagnostic[] {
  const place = child(spec, 'names');
  const faults: CheckDiagnostic[] = [];
  for (const field of ['plural', 'singular'] as const) {
    const name = names[field] ?? '';
    const problems = name === '' ? [] : dns1035LabelFaults(name);
    if (problems.length > 0) faults.push(invalid(child(place, field), name, problems.join(',')));
  }
  for (const field of ['kind', 'listKind'] as const) {
    const name = names[field] ?? '';
    const problems = name === '' ? [] : dns1035LabelFaults(name.toLowerCase());
    if (problems.length === 0) continue;
    const detail = `may have mixed case, but should otherwise match: ${problems.join(',')}`;
    faults.push(invalid(child(place, field), name, detail));
  }
  for (const field of ['shortNames', 'categories'] as const) {
    for (const [index, name] of (names[field] ?? []).entries()) {
      const problems = dns1035LabelFaults(name);
      if (problems.length > 0) faults.push(invalid(child(place, field, index), name, problems.join(',')));
    }
  }
  if (names.kind !== '' && names.kind === names.listKind) {
    faults.push(invalid(child(place, 'listKind'), names.listKind, 'kind and listKind may not be the same'));
  }
  return faults;
}

function columnFaults(columns: readonly PrinterColumn[] | undefined, place: Place): CheckDiagnostic[] {
  return (columns ?? []).flatMap((column, index) => {
    const faults: CheckDiagnostic[] = [];
    const location = child(place, index);
    if (column.name === '') faults.push(required(child(location, 'name')));
    const types = `must be one of ${columnTypes.join(',')}`;
    if (column.type === '') faults.push(required(child(location, 'type'), types));
    else if (!columnTypes.includes(column.type))
      faults.push(invalid(child(location, 'type'), column.type, types));
    const { format = '' } = column;
    if (format !== '' && !columnFormats.includes(format)) {
      faults.push(invalid(child(location, 'format'), format, `must be one of ${columnFormats.join(',')}`));
    }
    const key = column.jsonPath === undefined ? 'JSONPath' : 'jsonPath';
    const path: Place = { field: `${location.field}.JSONPath`, path: [...location.path, key] };
    const value = column[key] ?? '';
    if (value === '') faults.push(required(path));
    else faults.push(...simplePathFaults(value, path));
    return faults;
  });
}

function simplePathFaults(text: string, place: Place): CheckDiagnostic[] {
  return text.startsWith('.') ? [] : [invalid(place, text, 'must be a simple json path starting with .')];
}

function subresourceFaults(subresources: Subresources | undefined, place: Place): CheckDiagnostic[] {
  const scale = subresources?.scale;
  if (scale === undefined) return [];
  const faults: CheckDiagnostic[] = [];
  const paths = [
    ['specReplicasPath', ['.spec.'], 'should be a json path under .spec'],
    ['labelSelectorPath', ['.spec.', '.status.'], 'should be a json path under either .spec or .status'],
  ] as const;
  for (const [field, prefixes, detail] of paths) {
    const text = scale[field] ?? '';
    const location = child(place, 'scale', field);
    if (text === '') {
      if (field !== 'labelSelectorPath') faults.push(required(location));
      continue;
    }
    const problems = simplePathFaults(text, location);
    if (problems.length === 0 && !prefixes.some((prefix) => text.startsWith(prefix))) {
      problems.push(invalid(location, text, detail));
    }
    faults.push(...problems);
  }
  return faults;
}

function conversionFaults(
  conversion: Conversion | undefined,
  preserveUnknownFields?: boolean,
): CheckDiagnostic[] {
  if (conversion === undefined) return [];
  const place = child(spec, 'conversion');
  const faults: CheckDiagnostic[] = [];
  const { strategy, webhookClientConfig: client, conversionReviewVersions: versions = [] } = conversion;
  if (strategy !== 'None' && preserveUnknownFields !== false) {
    const detail = 'must be None if spec.preserveUnknownFields is true';
    faults.push(invalid(child(place, 'strategy'), strategy, detail));
  }
  if (strategy === '') faults.push(required(child(place, 'strategy')));
  else if (strategy !== 'None' && strategy !== 'Webhook') {
    faults.push(notSupported(child(place, 'strategy'), strategy, ['None', 'Webhook']));
  }
  // In v1 both are under `webhook`; the line is that of the nearest existing parent.
  const atClient: Place = {
    field: 'spec.conversion.webhookClientConfig',
    path: ['spec', 'conversion', 'webhook', 'clientConfig'],
  };
  const atVersions: Place = {
    field: 'spec.conversion.conversionReviewVersions',
    path: ['spec', 'conversion', 'webhook', 'conversionReviewVersions'],
  };
  if (strategy !== 'Webhook') {
    const detail = 'should not be set when strategy is not set to Webhook';
    if (client !== undefined) faults.push(forbidden(atClient, detail));
    if (versions.length > 0) faults.push(forbidden(atVersions, detail));
    return faults;
  }
  if (client === undefined) faults.push(required(atClient, 'required when strategy is set to Webhook'));
  else if ((client.url === undefined) === (client.service === undefined)) {
    faults.push(required(atClient, 'exactly one of url or service is required'));
  } else if (client.url !== undefined) faults.push(...webhookUrlFaults(client.url, child(atClient, 'url')));
  else if (client.service !== undefined) {
    faults.push(...webhookServiceFaults(client.service, child(atClient, 'service')));
  }
  if (versions.length === 0) faults.push(required(atVersions));
  else faults.push(...reviewVersionFaults(versions, atVersions));
  return faults;
}

function reviewVersionFaults(versions: readonly string[], place: Place): CheckDiagnostic[] {
  const faults: CheckDiagnostic[] = [];
  for (const [index, version] of versions.entries()) {
    const location = child(place, index);
    if (versions.indexOf(version) < index) faults.push(invalid(location, version, 'duplicate version'));
    else for (const fault of dns1035LabelFaults(version)) faults.push(invalid(location, version, fault));
  }
  if (!versions.includes('v1') && !versions.includes('v1beta1')) {
    faults.push(invalid(place, [...versions], 'must include at least one of v1, v1beta1'));
  }
  return faults;
}

function webhookUrlFaults(text: string, place: Place): CheckDiagnostic[] {
  const form = '; desired format: https://host[/path]';
  const [address = '', ...fragment] = text.split('#');
  const uri = parseRequestUri(address);
  if ('fault' in uri && !uri.fault.endsWith(': invalid URI for request') && address !== '') {
    return [required(place, `url must be a valid URL: ${uri.fault}${form}`)];
  }
  const { scheme, host, user, query } =
    'fault' in uri ? { scheme: '', host: '', user: undefined, query: '' } : uri;
  const faults: CheckDiagnostic[] = [];
  if (scheme !== 'https')
    faults.push(invalid(place, scheme, `'https' is the only allowed URL scheme${form}`));
  if (host === '') faults.push(invalid(place, host, `host must be specified${form}`));
  if (user !== undefined) {
    faults.push(invalid(place, undefined, 'user information is not permitted in the URL'));
  }
  if (fragment.length > 0 && fragment.join('#') !== '') {
    faults.push(invalid(place, fragment.join('#'), 'fragments are not permitted in the URL'));
  }
  if (query !== '') faults.push(invalid(place, query, 'query parameters are not permitted in the URL'));
  return faults;
}

function webhookServiceFaults(
  { name, namespace, path, port = 443 }: WebhookService,
  place: Place,
): CheckDiagnostic[] {
  const faults: CheckDiagnostic[] = [];
  if (name === '') faults.push(required(child(place, 'name')));
  if (namespace === '') faults.push(required(child(place, 'namespace')));
  if (port < 1 || port > 65535) {
    const detail = 'port is not valid: must be between 1 and 65535, inclusive';
    faults.push(invalid(child(place, 'port'), port, detail));
  }
  if (path === undefined || path === '/' || path === '') return faults;
  const location = child(place, 'path');
  if (path === '//') return [...faults, invalid(location, path, 'segment[0] may not be empty')];
  if (!path.startsWith('/')) faults.push(invalid(location, path, "must start with a '/'"));
  for (const [index, step] of path.slice(1).replace(/\/$/, '').split('/').entries()) {
    if (step === '') faults.push(invalid(location, path, `segment[${index}] may not be empty`));
    else {
      for (const fault of subdomainFaults(step))
        faults.push(invalid(location, path, `segment[${index}]: ${fault}`));
    }
  }
  return faults;
}

const approvalAnnotation = 'api-approved.kubernetes.io';

function approvalFaults({ metadata, spec: { group } }: Crd): CheckDiagnostic[] {
  if (!/(?:^|\.)(?:k8s|kubernetes)\.io$/.test(group)) return [];
  const place: Place = {
    field: `metadata.annotations[${approvalAnnotation}]`,
    path: ['metadata', 'annotations', approvalAnnotation],
  };
  const approval = metadata.annotations?.[approvalAnnotation] ?? '';
  const proposal = 'https://github.com/kubernetes/enhancements/pull/1111';
  if (approval === '') {
    const detail = `protected groups must have approval annotation ${quoteGo(approvalAnnotation)}, see ${proposal}`;
    return [required(place, detail)];
  }
  if (approval.startsWith('unapproved')) return [];
  const uri = parseRequestUri(approval);
  if (!('fault' in uri) && uri.host !== '' && uri.scheme !== '') return [];
  const detail =
    `protected groups must have approval annotation ${quoteGo(approvalAnnotation)} with either a URL or a ` +
    `reason starting with "unapproved", see ${proposal}`;
  return [invalid(place, approval, detail)];
}

const schemaLists = ['allOf', 'oneOf', 'anyOf'];
const schemaMaps = ['properties', 'patternProperties', 'definitions', 'dependencies'];
const schemaValues = ['not', 'items', 'additionalProperties', 'additionalItems'];

/** Reports whether a schema has a default at any level. */
function hasDefault(schema: JsonValue | undefined, depth: number): boolean {
  if (depth > 1000) return false;
  if (Array.isArray(schema)) return schema.some((item) => hasDefault(item, depth + 1));
  if (!isJsonObject(schema)) return false;
  if (schema['default'] !== undefined) return true;
  return (
    schemaLists.some((key) => hasDefault(schema[key], depth + 1)) ||
    schemaValues.some((key) => hasDefault(schema[key], depth + 1)) ||
    schemaMaps.some((key) => {
      const map = schema[key];
      return isJsonObject(map) && Object.values(map).some((item) => hasDefault(item, depth + 1));
    })
  );
}
