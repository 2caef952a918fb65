import { isDeepStrictEqual } from 'node:util';
import { quoteGo } from '../../document/go-json.js';
import { type JsonValue, isJsonObject } from '../../document/json.js';
import type { DocumentPath } from '../../core/diagnostic.js';
import type { OldCrd } from '../../kube/crd-types.js';
import { dns1035LabelFaults, subdomainFaults } from '../../kube/names.js';
import type { ObjectMeta } from '../../kube/meta-types.js';
import { checkObjectMeta } from './object-meta.js';
import { CheckedField, type Reporter } from './report.js';
import { checkSelectableFields } from './selectable-fields.js';
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
export interface CheckedCrd {
  metadata: ObjectMeta;
  spec: Omit<OldSpec, 'versions' | 'additionalPrinterColumns'> & {
    versions?: CrdVersion[];
    additionalPrinterColumns?: PrinterColumn[];
  };
}

type Subresources = NonNullable<OldSpec['subresources']>;
type Conversion = NonNullable<OldSpec['conversion']>;
type WebhookService = NonNullable<NonNullable<Conversion['webhookClientConfig']>['service']>;

const columnTypes = ['boolean', 'date', 'integer', 'number', 'string'];
const columnFormats = ['byte', 'date', 'date-time', 'double', 'float', 'int32', 'int64', 'password'];

/**
 * Checks a definition, except its schemas and fields named `status…`, whose faults upstream filters out. `shared` is the
 * path of fields that apply to all versions. (Source: apiextensions-apiserver, validation.)
 */
export function checkCrdRules(crd: CheckedCrd, shared: DocumentPath, report: Reporter): void {
  const { group, names, scope, versions = [], preserveUnknownFields, ...common } = crd.spec;
  const wanted = `${names.plural}.${group}`;
  checkObjectMeta(crd.metadata, report, (name, isPrefix) => [
    // The generated suffix makes the last dash of a prefix an inner one.
    ...subdomainFaults(isPrefix ? name.replace(/(.)-$/s, '$1a') : name),
    ...(name === wanted ? [] : ['must be spec.names.plural+"."+spec.group']),
  ]);
  const spec = new CheckedField(report, ['spec']);
  const preserve = spec.child('preserveUnknownFields');
  if (preserveUnknownFields === true) {
    const detail =
      'cannot set to true, set x-kubernetes-preserve-unknown-fields to true in spec.versions[*].schema instead';
    preserve.invalid(true, detail);
  }
  const groupFaults = subdomainFaults(group);
  if (group === '') spec.child('group').required();
  else if (groupFaults.length > 0 || group.includes('.')) spec.child('group').invalidAs(group, groupFaults);
  else spec.child('group').invalid(group, 'should be a domain with at least one dot');
  checkApproval(crd, report);
  spec.child('scope').oneOf(scope, ['Cluster', 'Namespaced']);
  const schemas = [common.validation, ...versions.map(({ schema }) => schema)];
  if (preserveUnknownFields !== false && schemas.some((value) => hasDefault(value?.openAPIV3Schema, 0))) {
    preserve.invalid(true, 'must be false in order to use defaults in the schema');
  }
  checkVersions(crd.spec, versions, spec);
  checkNames(names, spec.child('names'));
  const top = (name: string): CheckedField => new CheckedField(report, [...shared, name], `spec.${name}`);
  checkSubresources(common.subresources, top('subresources'));
  checkColumns(common.additionalPrinterColumns, top('additionalPrinterColumns'));
  if (common.selectableFields?.length) {
    const selectable = top('selectableFields');
    if (common.validation === undefined) {
      selectable.invalid('', 'may only be set when validations.schema is included');
    } else checkSelectableFields(common.selectableFields, common.validation.openAPIV3Schema, selectable);
  }
  if (common.conversion !== undefined) {
    checkConversion(common.conversion, preserveUnknownFields, spec.child('conversion'));
  }
}

function checkVersions(crd: CheckedCrd['spec'], versions: readonly CrdVersion[], spec: CheckedField): void {
  const all = spec.child('versions');
  for (const [index, version] of versions.entries()) {
    const field = all.child(index);
    field.child('name').invalidAs(version.name, dns1035LabelFaults(version.name));
    checkDeprecation(version, field.child('deprecationWarning'));
    checkSubresources(version.subresources, field.child('subresources'));
    checkColumns(version.additionalPrinterColumns, field.child('additionalPrinterColumns'));
    if (!version.selectableFields?.length) continue;
    const selectable = field.child('selectableFields');
    const schema = version.schema?.openAPIV3Schema;
    if (schema !== undefined) checkSelectableFields(version.selectableFields, schema, selectable);
    else selectable.invalid('', 'may only be set when `version.schema.openAPIV3Schema` is not included');
  }
  const kinds = [
    ['validation', 'schema', 'schemas'],
    ['subresources', 'subresources', 'subresources'],
    ['additionalPrinterColumns', 'additionalPrinterColumns', 'additionalPrinterColumns'],
  ] as const;
  for (const [top, each, plural] of kinds) {
    const values = versions.map((version) => version[each]);
    if (crd[top] !== undefined && values.some((item) => item !== undefined)) {
      spec.child(top).fail(`Forbidden: top-level and per-version ${plural} are mutually exclusive`);
    }
    const [first] = values;
    if (first !== undefined && values.every((item) => item !== undefined && isDeepStrictEqual(item, first))) {
      const detail = `per-version ${plural} may not all be set to identical values (top-level ${top} should be used instead)`;
      all.invalid(undefined, detail);
    }
  }
  if (new Set(versions.map(({ name }) => name)).size < versions.length) {
    all.invalid(undefined, 'must contain unique version names');
  }
  if (versions.filter(({ storage }) => storage).length !== 1) {
    all.invalid(undefined, 'must have exactly one version marked as storage version');
  }
  const { version = '' } = crd;
  if (version === '') return;
  spec.child('version').invalidAs(version, dns1035LabelFaults(version));
  if (versions[0] !== undefined && versions[0].name !== version) {
    spec.child('version').invalid(version, 'must match the first version in spec.versions');
  }
}

function checkDeprecation({ deprecated, deprecationWarning: text }: CrdVersion, field: CheckedField): void {
  if (text === undefined) return;
  if (deprecated !== true) {
    field.invalid(text, 'can only be set for deprecated versions');
    return;
  }
  if (Buffer.byteLength(text) > 256) field.invalid(text, 'must be <= 256 characters long');
  if (text === '') field.invalid(text, 'must not be an empty string');
  const bad = /[^\p{L}\p{M}\p{N}\p{P}\p{S} ]/u.exec(text);
  if (bad === null) return;
  const index = Buffer.byteLength(text.slice(0, bad.index));
  const detail = `must only contain printable UTF-8 characters; non-printable character found at index ${index}`;
  field.invalid(text, detail);
}

function checkNames(names: OldSpec['names'], field: CheckedField): void {
  for (const key of ['plural', 'singular', 'kind', 'listKind'] as const) {
    const { [key]: name = '' } = names;
    const isKind = key === 'kind' || key === 'listKind';
    if (name === '') field.child(key).required();
    else if (!isKind) field.child(key).invalidAs(name, dns1035LabelFaults(name));
    else {
      const form = 'may have mixed case, but should otherwise match: ';
      field.child(key).invalidAs(name, dns1035LabelFaults(name.toLowerCase()), form);
    }
  }
  for (const key of ['shortNames', 'categories'] as const) {
    for (const [index, name] of (names[key] ?? []).entries()) {
      field.child(key).child(index).invalidAs(name, dns1035LabelFaults(name));
    }
  }
  if (names.kind !== '' && names.kind === names.listKind) {
    field.child('listKind').invalid(names.listKind, 'kind and listKind may not be the same');
  }
}

function checkColumns(columns: readonly PrinterColumn[] = [], all: CheckedField): void {
  for (const [index, column] of columns.entries()) {
    const field = all.child(index);
    const { name, type, format = '' } = column;
    if (name === '') field.child('name').required();
    const types = `must be one of ${columnTypes.join(',')}`;
    if (type === '') field.child('type').required(types);
    else if (!columnTypes.includes(type)) field.child('type').invalid(type, types);
    if (format !== '' && !columnFormats.includes(format)) {
      field.child('format').invalid(format, `must be one of ${columnFormats.join(',')}`);
    }
    const key = column.jsonPath === undefined ? 'JSONPath' : 'jsonPath';
    const path = column[key] ?? '';
    if (path === '') field.child('JSONPath', [key]).required();
    else checkPath(path, field.child('JSONPath', [key]));
  }
}

/** Requires a path with one of these prefixes. */
function checkPath(
  text: string,
  field: CheckedField,
  prefixes: readonly string[] = ['.'],
  detail = '',
): void {
  if (!text.startsWith('.')) field.invalid(text, 'must be a simple json path starting with .');
  else if (!prefixes.some((prefix) => text.startsWith(prefix))) field.invalid(text, detail);
}

function checkSubresources(subresources: Subresources | undefined, field: CheckedField): void {
  const scale = subresources?.scale;
  if (scale === undefined) return;
  const { specReplicasPath, labelSelectorPath = '' } = scale;
  const specReplicas = field.child('scale').child('specReplicasPath');
  if (specReplicasPath === '') specReplicas.required();
  else checkPath(specReplicasPath, specReplicas, ['.spec.'], 'should be a json path under .spec');
  if (labelSelectorPath === '') return;
  const detail = 'should be a json path under either .spec or .status';
  checkPath(
    labelSelectorPath,
    field.child('scale').child('labelSelectorPath'),
    ['.spec.', '.status.'],
    detail,
  );
}

function checkConversion(
  { strategy, webhookClientConfig: client, conversionReviewVersions: versions = [] }: Conversion,
  preserveUnknownFields: boolean | undefined,
  field: CheckedField,
): void {
  if (strategy !== 'None' && preserveUnknownFields !== false) {
    field.child('strategy').invalid(strategy, 'must be None if spec.preserveUnknownFields is true');
  }
  field.child('strategy').oneOf(strategy, ['None', 'Webhook']);
  // In v1 both are under `webhook`; the line is that of the nearest existing parent.
  const atClient = field.child('webhookClientConfig', ['webhook', 'clientConfig']);
  const atVersions = field.child('conversionReviewVersions', ['webhook', 'conversionReviewVersions']);
  if (strategy !== 'Webhook') {
    const problem = 'Forbidden: should not be set when strategy is not set to Webhook';
    if (client !== undefined) atClient.fail(problem);
    if (versions.length > 0) atVersions.fail(problem);
    return;
  }
  if (client === undefined) atClient.required('required when strategy is set to Webhook');
  else if ((client.url === undefined) === (client.service === undefined)) {
    atClient.required('exactly one of url or service is required');
  } else if (client.url !== undefined) checkWebhookUrl(client.url, atClient.child('url'));
  else if (client.service !== undefined) checkWebhookService(client.service, atClient.child('service'));
  if (versions.length === 0) atVersions.required();
  for (const [index, version] of versions.entries()) {
    const isDuplicate = versions.indexOf(version) < index;
    const faults = isDuplicate ? ['duplicate version'] : dns1035LabelFaults(version);
    for (const fault of faults) atVersions.child(index).invalid(version, fault);
  }
  if (versions.length > 0 && !versions.includes('v1') && !versions.includes('v1beta1')) {
    atVersions.invalid([...versions], 'must include at least one of v1, v1beta1');
  }
}

function checkWebhookUrl(text: string, field: CheckedField): void {
  const form = '; desired format: https://host[/path]';
  const [address = '', ...rest] = text.split('#');
  const fragment = rest.join('#');
  const uri = parseRequestUri(address);
  if ('fault' in uri && !uri.fault.endsWith(': invalid URI for request') && address !== '') {
    field.required(`url must be a valid URL: ${uri.fault}${form}`);
    return;
  }
  const { scheme, host, user, query } =
    'fault' in uri ? { scheme: '', host: '', user: undefined, query: '' } : uri;
  if (scheme !== 'https') field.invalid(scheme, `'https' is the only allowed URL scheme${form}`);
  if (host === '') field.invalid(host, `host must be specified${form}`);
  if (user !== undefined) field.invalid(undefined, 'user information is not permitted in the URL');
  if (fragment !== '') field.invalid(fragment, 'fragments are not permitted in the URL');
  if (query !== '') field.invalid(query, 'query parameters are not permitted in the URL');
}

function checkWebhookService(
  { name, namespace, path = '', port = 443 }: WebhookService,
  field: CheckedField,
): void {
  if (name === '') field.child('name').required();
  if (namespace === '') field.child('namespace').required();
  if (port < 1 || port > 65535) {
    field.child('port').invalid(port, 'port is not valid: must be between 1 and 65535, inclusive');
  }
  if (path === '/' || path === '') return;
  const atPath = field.child('path');
  if (path === '//') {
    atPath.invalid(path, 'segment[0] may not be empty');
    return;
  }
  if (!path.startsWith('/')) atPath.invalid(path, "must start with a '/'");
  for (const [index, step] of path.slice(1).replace(/\/$/, '').split('/').entries()) {
    if (step === '') atPath.invalid(path, `segment[${index}] may not be empty`);
    else for (const fault of subdomainFaults(step)) atPath.invalid(path, `segment[${index}]: ${fault}`);
  }
}

function checkApproval({ metadata, spec: { group } }: CheckedCrd, report: Reporter): void {
  if (!/(?:^|\.)(?:k8s|kubernetes)\.io$/.test(group)) return;
  const key = 'api-approved.kubernetes.io';
  const field = new CheckedField(report, ['metadata', 'annotations', key], `metadata.annotations[${key}]`);
  const approval = metadata.annotations?.[key] ?? '';
  const proposal = 'https://github.com/kubernetes/enhancements/pull/1111';
  const needed = `protected groups must have approval annotation ${quoteGo(key)}`;
  if (approval === '') field.required(`${needed}, see ${proposal}`);
  if (approval === '' || approval.startsWith('unapproved')) return;
  const uri = parseRequestUri(approval);
  if (!('fault' in uri) && uri.host !== '' && uri.scheme !== '') return;
  const detail = `${needed} with either a URL or a reason starting with "unapproved", see ${proposal}`;
  field.invalid(approval, detail);
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
