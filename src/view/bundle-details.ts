import { decodeUtf8, encodeGoJson } from '../document/go-json.js';
import { type EncodableJson, type JsonObject, isJsonObject } from '../document/json.js';
import { unwrap } from '../model/properties.js';
import { sortedByBytes } from '../core/order.js';
import { type BundleBlob, propertyTypes } from '../model/declarative-config.js';
import { findCsvText } from '../model/migrations.js';
import type { ApiAnswer, BundleAnswer, PermissionAnswer } from './answers.js';

/** Characters of a description that are sent; of other texts, see `shortText`. */
const maxDescription = 200_000;
const maxText = 2_000;
/** Entries of a list that are sent. */
const maxItems = 1_000;

/** Annotations that are programs' business: long JSON, or shown elsewhere. */
const hiddenAnnotations =
  /^(alm-examples|operatorframework\.io\/(initialization-resource|suggested-namespace-template)|description)/;

/** What a bundle's blob alone tells. */
type BundleDetails = Omit<
  BundleAnswer,
  'package' | 'name' | 'version' | 'deprecation' | 'places' | 'problems'
>;

/**
 * Reads what people want to know of a bundle: from its ClusterServiceVersion where the catalog holds it, else from
 * its `olm.csv.metadata`, and from its other properties. Nothing in a blob makes it fail: what has the wrong type
 * is left out, for the checks report it.
 */
export function readBundleDetails(blob: BundleBlob): BundleDetails {
  const csv = csvOf(blob);
  const spec = objectOf(csv?.['spec']);
  const metadata = propertiesOf(blob, propertyTypes.csvMetadata).map(objectOf)[0] ?? {};
  // The metadata has the fields of the spec, and beside them annotations.
  const shown = csv === undefined ? metadata : spec;
  const annotations = objectOf(
    csv === undefined ? metadata['annotations'] : objectOf(csv['metadata'])['annotations'],
  );
  return {
    image: blob.image,
    displayName: textOf(shown['displayName']),
    provider: textOf(objectOf(shown['provider'])['name']),
    description: textOf(shown['description'], maxDescription),
    summary: textOf(annotations['description']),
    facts: factsOf(shown, annotations),
    links: listOf(shown['links'])
      .map(objectOf)
      .map((link) => ({ name: textOf(link['name']), url: textOf(link['url']) })),
    keywords: listOf(shown['keywords']).map((word) => textOf(word)),
    installModes: listOf(shown['installModes'])
      .map(objectOf)
      .map((mode) => ({ type: textOf(mode['type']), isSupported: mode['supported'] === true })),
    ...apisOf(blob, shown),
    requiredPackages: propertiesOf(blob, propertyTypes.packageRequired)
      .map(objectOf)
      .map((value) => ({ package: textOf(value['packageName']), range: textOf(value['versionRange']) })),
    constraints: propertiesOf(blob, propertyTypes.constraint).map((value) =>
      encodeGoJson(value).slice(0, maxText),
    ),
    images: blob.relatedImages.slice(0, maxItems).map(({ name, image }) => ({ name, image })),
    ...(csv !== undefined && { permissions: permissionsOf(spec) }),
    deployments: deploymentsOf(spec),
    manifests: countsOf(manifestKinds(blob)).map(([kind, count]) => ({ kind, count })),
    annotations: sortedByBytes(Object.keys(annotations))
      .filter((name) => !hiddenAnnotations.test(name))
      .slice(0, maxItems)
      .map((name) => ({ name, value: textOf(annotations[name]) })),
    properties: countsOf(blob.properties.map(({ type }) => type)).map(([type, count]) => ({ type, count })),
  };
}

/** What the list of packages shows of the bundle at the head of the default channel. */
export function readBundleHeading(blob: BundleBlob): Pick<
  BundleDetails,
  'displayName' | 'provider' | 'description' | 'summary' | 'keywords'
> & {
  categories: string[];
} {
  const csv = csvOf(blob);
  const metadata = propertiesOf(blob, propertyTypes.csvMetadata).map(objectOf)[0] ?? {};
  const shown = csv === undefined ? metadata : objectOf(csv['spec']);
  const annotations = objectOf(
    csv === undefined ? metadata['annotations'] : objectOf(csv['metadata'])['annotations'],
  );
  return {
    displayName: textOf(shown['displayName']),
    provider: textOf(objectOf(shown['provider'])['name']),
    description: textOf(shown['description'], maxDescription),
    summary: textOf(annotations['description']),
    keywords: listOf(shown['keywords']).map((word) => textOf(word)),
    categories: textOf(annotations['categories'])
      .split(',')
      .map((category) => category.trim())
      .filter((category) => category !== ''),
  };
}

function csvOf(blob: BundleBlob): JsonObject | undefined {
  let text: string | undefined;
  try {
    text = findCsvText(blob);
    const csv: unknown = text === undefined ? undefined : JSON.parse(text);
    return isJsonObject(csv) ? csv : undefined;
  } catch {
    // Objects that cannot be read are reported by the checks.
    return undefined;
  }
}

function factsOf(shown: JsonObject, annotations: JsonObject): BundleAnswer['facts'] {
  const facts = [
    { name: 'Maturity', value: textOf(shown['maturity']) },
    { name: 'Capabilities', value: textOf(annotations['capabilities']) },
    { name: 'Categories', value: textOf(annotations['categories']) },
    { name: 'Created', value: textOf(annotations['createdAt']) },
    { name: 'Kubernetes at least', value: textOf(shown['minKubeVersion']) },
    { name: 'Repository', value: textOf(annotations['repository']) },
    { name: 'Support', value: textOf(annotations['support']) },
    {
      name: 'Maintainers',
      value: listOf(shown['maintainers'])
        .map(objectOf)
        .map(({ name, email }) => [textOf(name), textOf(email)].filter((part) => part !== '').join(', '))
        .join('; '),
    },
  ];
  return facts.filter(({ value }) => value !== '');
}

/** The APIs that its properties declare, with the names that its ClusterServiceVersion gives them. */
function apisOf(blob: BundleBlob, shown: JsonObject): Pick<BundleAnswer, 'provided' | 'required'> {
  const described = (owner: 'owned' | 'required'): Map<string, ApiAnswer> => {
    const found = new Map<string, ApiAnswer>();
    const crds = listOf(objectOf(shown['customresourcedefinitions'])[owner]).map(objectOf);
    for (const crd of crds) {
      const name = textOf(crd['name']);
      const group = name.slice(name.indexOf('.') + 1);
      const api = { ...apiOf(crd), group, ...namesOf(crd) };
      found.set(keyOf(api), api);
    }
    for (const service of listOf(objectOf(shown['apiservicedefinitions'])[owner]).map(objectOf)) {
      const api = { ...apiOf(service), ...namesOf(service) };
      found.set(keyOf(api), api);
    }
    return found;
  };
  const declared = (type: string, known: Map<string, ApiAnswer>): ApiAnswer[] => {
    for (const value of propertiesOf(blob, type)) {
      const api = { ...apiOf(objectOf(value)), displayName: '', description: '' };
      if (!known.has(keyOf(api))) known.set(keyOf(api), api);
    }
    return [...known.values()].slice(0, maxItems);
  };
  return {
    provided: declared(propertyTypes.gvk, described('owned')),
    required: declared(propertyTypes.gvkRequired, described('required')),
  };
}

function apiOf(value: JsonObject): Pick<ApiAnswer, 'kind' | 'group' | 'version'> {
  return { kind: textOf(value['kind']), group: textOf(value['group']), version: textOf(value['version']) };
}

function namesOf(value: JsonObject): Pick<ApiAnswer, 'displayName' | 'description'> {
  return { displayName: textOf(value['displayName']), description: textOf(value['description']) };
}

function keyOf({ group, version, kind }: ApiAnswer): string {
  return `${group}/${version}/${kind}`;
}

function permissionsOf(spec: JsonObject): PermissionAnswer[] {
  const install = objectOf(objectOf(spec['install'])['spec']);
  const rules = (field: 'clusterPermissions' | 'permissions'): PermissionAnswer[] =>
    listOf(install[field])
      .map(objectOf)
      .flatMap((one) =>
        listOf(one['rules'])
          .map(objectOf)
          .map((rule) => ({
            account: textOf(one['serviceAccountName']),
            isClusterWide: field === 'clusterPermissions',
            groups: textsOf(rule['apiGroups']),
            resources: textsOf(rule['resources']),
            names: textsOf(rule['resourceNames']),
            urls: textsOf(rule['nonResourceURLs']),
            verbs: textsOf(rule['verbs']),
          })),
      );
  return [...rules('clusterPermissions'), ...rules('permissions')].slice(0, maxItems);
}

function deploymentsOf(spec: JsonObject): string[] {
  const install = objectOf(objectOf(spec['install'])['spec']);
  return listOf(install['deployments'])
    .map(objectOf)
    .map(({ name }) => textOf(name));
}

function manifestKinds(blob: BundleBlob): string[] {
  return propertiesOf(blob, propertyTypes.bundleObject).map((value) => {
    const data = objectOf(value)['data'];
    const text = typeof data === 'string' ? decodeUtf8(Buffer.from(data, 'base64')) : '';
    try {
      const manifest: unknown = JSON.parse(text);
      return (isJsonObject(manifest) && textOf(manifest['kind'])) || 'other';
    } catch {
      // YAML: its kind stands on a line of its own.
      return /^kind:\s*([A-Za-z]+)\s*$/m.exec(text)?.[1] ?? 'other';
    }
  });
}

function countsOf(names: readonly string[]): [string, number][] {
  const counts = new Map<string, number>();
  for (const name of names) counts.set(name, (counts.get(name) ?? 0) + 1);
  return sortedByBytes(counts.keys()).map((name) => [name, counts.get(name) as number]);
}

function propertiesOf(blob: BundleBlob, wanted: string): EncodableJson[] {
  return blob.properties
    .filter(({ type }) => type === wanted)
    .slice(0, maxItems)
    .map(({ value }) => unwrap(value));
}

function objectOf(value: unknown): JsonObject {
  return isJsonObject(value) ? value : {};
}

function listOf(value: unknown): unknown[] {
  return Array.isArray(value) ? value.slice(0, maxItems) : [];
}

function textsOf(value: unknown): string[] {
  return listOf(value).map((one) => textOf(one));
}

/** A text, cut where it is longer than anyone wants to read; of other scalars what they are written as. */
function textOf(value: unknown, limit: number = maxText): string {
  const text =
    typeof value === 'string'
      ? value
      : typeof value === 'number' || typeof value === 'bigint' || typeof value === 'boolean'
        ? String(value)
        : '';
  return text.length > limit ? `${text.slice(0, limit)}…` : text;
}
