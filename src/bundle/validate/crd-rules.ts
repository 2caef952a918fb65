import { isDeepStrictEqual } from 'node:util';
import { quoteGo } from '../../document/go-json.js';
import { type JsonValue, isJsonObject } from '../../document/json.js';
import type { DocumentPath } from '../../core/diagnostic.js';
import type { OldCrd } from '../../kube/crd-types.js';
import { dns1035LabelFaults, subdomainFaults } from '../../kube/names.js';
import type { ObjectMeta } from '../../kube/meta-types.js';
import { checkObjectMeta } from './object-meta.js';
import { Spot, type Tell } from './report.js';
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

const columnTypes = ['boolean', 'date', 'integer', 'number', 'string'];
const columnFormats = ['byte', 'date', 'date-time', 'double', 'float', 'int32', 'int64', 'password'];

/**
 * Checks a definition, except its schemas and fields named `status…`, whose faults upstream filters out. `shared` is the
 * path of fields that apply to all versions. (Source: apiextensions-apiserver, validation.)
 */
export function checkCrdRules(crd: Crd, shared: DocumentPath, tell: Tell): void {
  const { group, names, scope, versions = [], preserveUnknownFields, ...common } = crd.spec;
  const wanted = `${names.plural}.${group}`;
  checkObjectMeta(crd.metadata, tell, (name, isPrefix) => [
    // The generated suffix makes the last dash of a prefix an inner one.
    ...subdomainFaults(isPrefix ? name.replace(/(.)-$/s, '$1a') : name),
    ...(name === wanted ? [] : ['must be spec.names.plural+"."+spec.group']),
  ]);
  const spec = new Spot(tell, ['spec']);
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
  checkApproval(crd, tell);
  spec.child('scope').oneOf(scope, ['Cluster', 'Namespaced']);
  const schemas = [common.validation, ...versions.map(({ schema }) => schema)];
  if (preserveUnknownFields !== false && schemas.some((value) => hasDefault(value?.openAPIV3Schema, 0))) {
    preserve.invalid(true, 'must be false in order to use defaults in the schema');
  }
  checkVersions(crd.spec, versions, spec);
  checkNames(names, spec.child('names'));
  const top = (field: string): Spot => new Spot(tell, [...shared, field], `spec.${field}`);
  checkSubresources(common.subresources, top('subresources'));
  checkColumns(common.additionalPrinterColumns, top('additionalPrinterColumns'));
  if (common.selectableFields !== undefined) {
    const selectable = top('selectableFields');
    if (common.validation === undefined) {
      selectable.invalid('', 'may only be set when validations.schema is included');
    } else checkSelectableFields(common.selectableFields, common.validation.openAPIV3Schema, selectable);
  }
  if (common.conversion !== undefined) {
    checkConversion(common.conversion, preserveUnknownFields, spec.child('conversion'));
  }
}

function checkVersions(crd: Crd['spec'], versions: readonly CrdVersion[], spec: Spot): void {
  const all = spec.child('versions');
  for (const [index, version] of versions.entries()) {
    const spot = all.child(index);
    spot.child('name').invalidAs(version.name, dns1035LabelFaults(version.name));
    checkDeprecation(version, spot.child('deprecationWarning'));
    checkSubresources(version.subresources, spot.child('subresources'));
    checkColumns(version.additionalPrinterColumns, spot.child('additionalPrinterColumns'));
    if (version.selectableFields === undefined) continue;
    const selectable = spot.child('selectableFields');
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

function checkDeprecation({ deprecated, deprecationWarning: text }: CrdVersion, spot: Spot): void {
  if (text === undefined) return;
  if (deprecated !== true) {
    spot.invalid(text, 'can only be set for deprecated versions');
    return;
  }
  if (Buffer.byteLength(text) > 256) spot.invalid(text, 'must be <= 256 characters long');
  if (text === '') spot.invalid(text, 'must not be an empty string');
  const bad = /[^\p{L}\p{M}\p{N}\p{P}\p{S} ]/u.exec(text);
  if (bad === null) return;
  const index = Buffer.byteLength(text.slice(0, bad.index));
  const detail = `must only contain printable UTF-8 characters; non-printable character found at index ${index}`;
  spot.invalid(text, detail);
}

function checkNames(names: OldSpec['names'], spot: Spot): void {
  for (const field of ['plural', 'singular', 'kind', 'listKind'] as const) {
    const { [field]: name = '' } = names;
    const isKind = field === 'kind' || field === 'listKind';
    if (name === '') spot.child(field).required();
    else if (!isKind) spot.child(field).invalidAs(name, dns1035LabelFaults(name));
    else {
      const form = 'may have mixed case, but should otherwise match: ';
      spot.child(field).invalidAs(name, dns1035LabelFaults(name.toLowerCase()), form);
    }
  }
  for (const field of ['shortNames', 'categories'] as const) {
    for (const [index, name] of (names[field] ?? []).entries()) {
      spot.child(field).child(index).invalidAs(name, dns1035LabelFaults(name));
    }
  }
  if (names.kind !== '' && names.kind === names.listKind) {
    spot.child('listKind').invalid(names.listKind, 'kind and listKind may not be the same');
  }
}

function checkColumns(columns: readonly PrinterColumn[] = [], all: Spot): void {
  for (const [index, column] of columns.entries()) {
    const spot = all.child(index);
    const { name, type, format = '' } = column;
    if (name === '') spot.child('name').required();
    const types = `must be one of ${columnTypes.join(',')}`;
    if (type === '') spot.child('type').required(types);
    else if (!columnTypes.includes(type)) spot.child('type').invalid(type, types);
    if (format !== '' && !columnFormats.includes(format)) {
      spot.child('format').invalid(format, `must be one of ${columnFormats.join(',')}`);
    }
    const key = column.jsonPath === undefined ? 'JSONPath' : 'jsonPath';
    const path = column[key] ?? '';
    if (path === '') spot.child('JSONPath', [key]).required();
    else checkPath(path, spot.child('JSONPath', [key]));
  }
}

/** Requires a path with one of these prefixes. */
function checkPath(text: string, spot: Spot, prefixes: readonly string[] = ['.'], detail = ''): void {
  if (!text.startsWith('.')) spot.invalid(text, 'must be a simple json path starting with .');
  else if (!prefixes.some((prefix) => text.startsWith(prefix))) spot.invalid(text, detail);
}

function checkSubresources(subresources: Subresources | undefined, spot: Spot): void {
  const scale = subresources?.scale;
  if (scale === undefined) return;
  const { specReplicasPath, labelSelectorPath = '' } = scale;
  const specReplicas = spot.child('scale').child('specReplicasPath');
  if (specReplicasPath === '') specReplicas.required();
  else checkPath(specReplicasPath, specReplicas, ['.spec.'], 'should be a json path under .spec');
  if (labelSelectorPath === '') return;
  const detail = 'should be a json path under either .spec or .status';
  checkPath(
    labelSelectorPath,
    spot.child('scale').child('labelSelectorPath'),
    ['.spec.', '.status.'],
    detail,
  );
}

function checkConversion(
  { strategy, webhookClientConfig: client, conversionReviewVersions: versions = [] }: Conversion,
  preserveUnknownFields: boolean | undefined,
  spot: Spot,
): void {
  if (strategy !== 'None' && preserveUnknownFields !== false) {
    spot.child('strategy').invalid(strategy, 'must be None if spec.preserveUnknownFields is true');
  }
  spot.child('strategy').oneOf(strategy, ['None', 'Webhook']);
  // In v1 both are under `webhook`; the line is that of the nearest existing parent.
  const atClient = spot.child('webhookClientConfig', ['webhook', 'clientConfig']);
  const atVersions = spot.child('conversionReviewVersions', ['webhook', 'conversionReviewVersions']);
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

function checkWebhookUrl(text: string, spot: Spot): void {
  const form = '; desired format: https://host[/path]';
  const [address = '', ...rest] = text.split('#');
  const fragment = rest.join('#');
  const uri = parseRequestUri(address);
  if ('fault' in uri && !uri.fault.endsWith(': invalid URI for request') && address !== '') {
    spot.required(`url must be a valid URL: ${uri.fault}${form}`);
    return;
  }
  const { scheme, host, user, query } =
    'fault' in uri ? { scheme: '', host: '', user: undefined, query: '' } : uri;
  if (scheme !== 'https') spot.invalid(scheme, `'https' is the only allowed URL scheme${form}`);
  if (host === '') spot.invalid(host, `host must be specified${form}`);
  if (user !== undefined) spot.invalid(undefined, 'user information is not permitted in the URL');
  if (fragment !== '') spot.invalid(fragment, 'fragments are not permitted in the URL');
  if (query !== '') spot.invalid(query, 'query parameters are not permitted in the URL');
}

function checkWebhookService({ name, namespace, path = '', port = 443 }: WebhookService, spot: Spot): void {
  if (name === '') spot.child('name').required();
  if (namespace === '') spot.child('namespace').required();
  if (port < 1 || port > 65535) {
    spot.child('port').invalid(port, 'port is not valid: must be between 1 and 65535, inclusive');
  }
  if (path === '/' || path === '') return;
  const atPath = spot.child('path');
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

function checkApproval({ metadata, spec: { group } }: Crd, tell: Tell): void {
  if (!/(?:^|\.)(?:k8s|kubernetes)\.io$/.test(group)) return;
  const key = 'api-approved.kubernetes.io';
  const spot = new Spot(tell, ['metadata', 'annotations', key], `metadata.annotations[${key}]`);
  const approval = metadata.annotations?.[key] ?? '';
  const proposal = 'https://github.com/kubernetes/enhancements/pull/1111';
  const needed = `protected groups must have approval annotation ${quoteGo(key)}`;
  if (approval === '') spot.required(`${needed}, see ${proposal}`);
  if (approval === '' || approval.startsWith('unapproved')) return;
  const uri = parseRequestUri(approval);
  if (!('fault' in uri) && uri.host !== '' && uri.scheme !== '') return;
  const detail = `${needed} with either a URL or a reason starting with "unapproved", see ${proposal}`;
  spot.invalid(approval, detail);
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
