import { decodeUtf8, encodeGoJson } from '../document/go-json.js';
import { type EncodableJson, type JsonObject, isJsonObject } from '../document/json.js';
import { unwrap } from '../model/properties.js';
import { sortedByBytes } from '../core/order.js';
import { type BundleBlob, propertyTypes } from '../model/declarative-config.js';
import { findCsvText } from '../model/migrations.js';
import type { BundleApi, BundleDetails, BundlePermission } from './answers.js';

/** Characters of a description that are sent; of other texts, see `shortText`. */
const maxDescription = 200_000;
const maxText = 2_000;
/** Entries of a list that are sent. */
const maxItems = 1_000;

/** Annotations that are programs' business: long JSON, or shown elsewhere. */
const hiddenAnnotations =
  /^(alm-examples|operatorframework\.io\/(initialization-resource|suggested-namespace-template)|description)/;

/** What a bundle's blob alone tells. */
type ManifestDetails = Omit<
  BundleDetails,
  'package' | 'name' | 'version' | 'deprecation' | 'places' | 'problems'
>;

/**
 * Reads what people want to know of a bundle: from its ClusterServiceVersion where the catalog holds it, else from
 * its `olm.csv.metadata`, and from its other properties. Nothing in a blob makes it fail: what has the wrong type
 * is left out, for the checks report it.
 */
export function readBundleDetails(blob: BundleBlob): ManifestDetails {
  const csv = findCsv(blob);
  const spec = toObject(csv?.['spec']);
  const metadata = getProperties(blob, propertyTypes.csvMetadata).map(toObject)[0] ?? {};
  // The metadata has the fields of the spec, and beside them annotations.
  const shown = csv === undefined ? metadata : spec;
  const annotations = toObject(
    csv === undefined ? metadata['annotations'] : toObject(csv['metadata'])['annotations'],
  );
  return {
    image: blob.image,
    displayName: toText(shown['displayName']),
    provider: toText(toObject(shown['provider'])['name']),
    description: toText(shown['description'], maxDescription),
    summary: toText(annotations['description']),
    facts: getFacts(shown, annotations),
    links: toList(shown['links'])
      .map(toObject)
      .map((link) => ({ name: toText(link['name']), url: toText(link['url']) })),
    keywords: toList(shown['keywords']).map((word) => toText(word)),
    installModes: toList(shown['installModes'])
      .map(toObject)
      .map((mode) => ({ type: toText(mode['type']), isSupported: mode['supported'] === true })),
    ...getApis(blob, shown),
    requiredPackages: getProperties(blob, propertyTypes.packageRequired)
      .map(toObject)
      .map((value) => ({ package: toText(value['packageName']), range: toText(value['versionRange']) })),
    constraints: getProperties(blob, propertyTypes.constraint).map((value) =>
      encodeGoJson(value).slice(0, maxText),
    ),
    images: blob.relatedImages.slice(0, maxItems).map(({ name, image }) => ({ name, image })),
    ...(csv !== undefined && { permissions: getPermissions(spec) }),
    deployments: getDeployments(spec),
    manifests: getCounts(manifestKinds(blob)).map(([kind, count]) => ({ kind, count })),
    annotations: sortedByBytes(Object.keys(annotations))
      .filter((name) => !hiddenAnnotations.test(name))
      .slice(0, maxItems)
      .map((name) => ({ name, value: toText(annotations[name]) })),
    properties: getCounts(blob.properties.map(({ type }) => type)).map(([type, count]) => ({ type, count })),
  };
}

/** What the list of packages shows of the bundle at the head of the default channel. */
export function readBundleHeading(blob: BundleBlob): Pick<
  ManifestDetails,
  'displayName' | 'provider' | 'description' | 'summary' | 'keywords'
> & {
  categories: string[];
} {
  const csv = findCsv(blob);
  const metadata = getProperties(blob, propertyTypes.csvMetadata).map(toObject)[0] ?? {};
  const shown = csv === undefined ? metadata : toObject(csv['spec']);
  const annotations = toObject(
    csv === undefined ? metadata['annotations'] : toObject(csv['metadata'])['annotations'],
  );
  return {
    displayName: toText(shown['displayName']),
    provider: toText(toObject(shown['provider'])['name']),
    description: toText(shown['description'], maxDescription),
    summary: toText(annotations['description']),
    keywords: toList(shown['keywords']).map((word) => toText(word)),
    categories: toText(annotations['categories'])
      .split(',')
      .map((category) => category.trim())
      .filter((category) => category !== ''),
  };
}

function findCsv(blob: BundleBlob): JsonObject | undefined {
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

function getFacts(shown: JsonObject, annotations: JsonObject): BundleDetails['facts'] {
  const facts = [
    { name: 'Maturity', value: toText(shown['maturity']) },
    { name: 'Capabilities', value: toText(annotations['capabilities']) },
    { name: 'Categories', value: toText(annotations['categories']) },
    { name: 'Created', value: toText(annotations['createdAt']) },
    { name: 'Kubernetes at least', value: toText(shown['minKubeVersion']) },
    { name: 'Repository', value: toText(annotations['repository']) },
    { name: 'Support', value: toText(annotations['support']) },
    {
      name: 'Maintainers',
      value: toList(shown['maintainers'])
        .map(toObject)
        .map(({ name, email }) => [toText(name), toText(email)].filter((part) => part !== '').join(', '))
        .join('; '),
    },
  ];
  return facts.filter(({ value }) => value !== '');
}

/** The APIs that its properties declare, with the names that its ClusterServiceVersion gives them. */
function getApis(blob: BundleBlob, shown: JsonObject): Pick<BundleDetails, 'provided' | 'required'> {
  const described = (owner: 'owned' | 'required'): Map<string, BundleApi> => {
    const matches = new Map<string, BundleApi>();
    const crds = toList(toObject(shown['customresourcedefinitions'])[owner]).map(toObject);
    for (const crd of crds) {
      const name = toText(crd['name']);
      const group = name.slice(name.indexOf('.') + 1);
      const api = { ...getApi(crd), group, ...getNames(crd) };
      matches.set(toKey(api), api);
    }
    for (const service of toList(toObject(shown['apiservicedefinitions'])[owner]).map(toObject)) {
      const api = { ...getApi(service), ...getNames(service) };
      matches.set(toKey(api), api);
    }
    return matches;
  };
  const declared = (type: string, known: Map<string, BundleApi>): BundleApi[] => {
    for (const value of getProperties(blob, type)) {
      const api = { ...getApi(toObject(value)), displayName: '', description: '' };
      if (!known.has(toKey(api))) known.set(toKey(api), api);
    }
    return [...known.values()].slice(0, maxItems);
  };
  return {
    provided: declared(propertyTypes.gvk, described('owned')),
    required: declared(propertyTypes.gvkRequired, described('required')),
  };
}

function getApi(value: JsonObject): Pick<BundleApi, 'kind' | 'group' | 'version'> {
  return { kind: toText(value['kind']), group: toText(value['group']), version: toText(value['version']) };
}

function getNames(value: JsonObject): Pick<BundleApi, 'displayName' | 'description'> {
  return { displayName: toText(value['displayName']), description: toText(value['description']) };
}

function toKey({ group, version, kind }: BundleApi): string {
  return `${group}/${version}/${kind}`;
}

function getPermissions(spec: JsonObject): BundlePermission[] {
  const install = toObject(toObject(spec['install'])['spec']);
  const rules = (field: 'clusterPermissions' | 'permissions'): BundlePermission[] =>
    toList(install[field])
      .map(toObject)
      .flatMap((value) =>
        toList(value['rules'])
          .map(toObject)
          .map((rule) => ({
            account: toText(value['serviceAccountName']),
            isClusterWide: field === 'clusterPermissions',
            groups: toTexts(rule['apiGroups']),
            resources: toTexts(rule['resources']),
            names: toTexts(rule['resourceNames']),
            urls: toTexts(rule['nonResourceURLs']),
            verbs: toTexts(rule['verbs']),
          })),
      );
  return [...rules('clusterPermissions'), ...rules('permissions')].slice(0, maxItems);
}

function getDeployments(spec: JsonObject): string[] {
  const install = toObject(toObject(spec['install'])['spec']);
  return toList(install['deployments'])
    .map(toObject)
    .map(({ name }) => toText(name));
}

function manifestKinds(blob: BundleBlob): string[] {
  return getProperties(blob, propertyTypes.bundleObject).map((value) => {
    const data = toObject(value)['data'];
    const text = typeof data === 'string' ? decodeUtf8(Buffer.from(data, 'base64')) : '';
    try {
      const manifest: unknown = JSON.parse(text);
      return (isJsonObject(manifest) && toText(manifest['kind'])) || 'other';
    } catch {
      // YAML: its kind stands on a line of its own.
      return /^kind:\s*([A-Za-z]+)\s*$/m.exec(text)?.[1] ?? 'other';
    }
  });
}

function getCounts(names: readonly string[]): [string, number][] {
  const counts = new Map<string, number>();
  for (const name of names) counts.set(name, (counts.get(name) ?? 0) + 1);
  return sortedByBytes(counts.keys()).map((name) => [name, counts.get(name) as number]);
}

function getProperties(blob: BundleBlob, wanted: string): EncodableJson[] {
  return blob.properties
    .filter(({ type }) => type === wanted)
    .slice(0, maxItems)
    .map(({ value }) => unwrap(value));
}

function toObject(value: unknown): JsonObject {
  return isJsonObject(value) ? value : {};
}

function toList(value: unknown): unknown[] {
  return Array.isArray(value) ? value.slice(0, maxItems) : [];
}

function toTexts(value: unknown): string[] {
  return toList(value).map((item) => toText(item));
}

/** A text, cut where it is longer than anyone wants to read; of other scalars what they are written as. */
function toText(value: unknown, limit: number = maxText): string {
  const text =
    typeof value === 'string'
      ? value
      : typeof value === 'number' || typeof value === 'bigint' || typeof value === 'boolean'
        ? String(value)
        : '';
  return text.length > limit ? `${text.slice(0, limit)}…` : text;
}
