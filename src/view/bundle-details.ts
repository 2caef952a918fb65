import { decodeUtf8, encodeGoJson } from '../document/go-json.js';
import { type EncodableJson, type JsonObject, isJsonObject } from '../document/json.js';
import { getObject, getText, getValue } from '../document/json-fields.js';
import { getPropertyValue } from '../model/properties.js';
import { getOrAdd } from '../core/groups.js';
import { sortedByBytes } from '../core/order.js';
import { type BundleBlob, propertyTypes } from '../model/declarative-config.js';
import { findCsvText } from '../model/migrations.js';
import type { BundleApi, BundleDetails, BundlePermission } from './responses.js';

/** Maximum characters of a description, and of other texts. */
const maxDescription = 200_000;
const maxText = 2_000;
/** Maximum entries of a list. */
const maxItems = 1_000;

/** Annotations for programs: long JSON, or shown elsewhere. */
const hiddenAnnotations =
  /^(alm-examples|operatorframework\.io\/(initialization-resource|suggested-namespace-template)|description)/;

/** Details that come from the blob of a bundle alone. */
type ManifestDetails = Omit<
  BundleDetails,
  'package' | 'name' | 'version' | 'deprecation' | 'places' | 'problems'
>;

/** Fields of a bundle that the list of packages shows. */
interface BundleHeading extends Pick<
  ManifestDetails,
  'displayName' | 'provider' | 'description' | 'summary' | 'keywords'
> {
  categories: string[];
}

/** Fields of a ClusterServiceVersion, or of `olm.csv.metadata`, which has annotations beside the fields of the spec. */
interface CsvFields {
  spec: JsonObject;
  annotations: JsonObject;
  /** False for metadata, which lacks permissions. */
  isComplete: boolean;
}

/**
 * Reads the details of a bundle from its ClusterServiceVersion, or from `olm.csv.metadata` if the catalog lacks it, and
 * from its other properties. Never fails: values of a wrong type, which the checks report, are omitted.
 */
export function readBundleDetails(blob: BundleBlob): ManifestDetails {
  const { spec, annotations, isComplete } = readCsvFields(blob);
  const { displayName, provider, description, summary, keywords } = readHeading(spec, annotations);
  return {
    image: blob.image,
    displayName,
    provider,
    description,
    summary,
    keywords,
    facts: getFacts(spec, annotations),
    links: toObjects(spec['links']).map(({ name, url }) => ({ name: toText(name), url: toText(url) })),
    installModes: toObjects(spec['installModes']).map(({ type, supported }) => ({
      type: toText(type),
      isSupported: supported === true,
    })),
    ...getApis(blob, spec),
    requiredPackages: getProperties(blob, propertyTypes.packageRequired)
      .map(toObject)
      .map((value) => ({ package: toText(value['packageName']), range: toText(value['versionRange']) })),
    constraints: getProperties(blob, propertyTypes.constraint).map((value) =>
      encodeGoJson(value).slice(0, maxText),
    ),
    images: blob.relatedImages.slice(0, maxItems).map(({ name, image }) => ({ name, image })),
    ...(isComplete && { permissions: getPermissions(spec) }),
    deployments: toObjects(getValue(spec, 'install', 'spec', 'deployments')).map(({ name }) => toText(name)),
    manifests: getCounts(getManifestKinds(blob)).map(([kind, count]) => ({ kind, count })),
    annotations: sortedByBytes(Object.keys(annotations))
      .filter((name) => !hiddenAnnotations.test(name))
      .slice(0, maxItems)
      .map((name) => ({ name, value: toText(annotations[name]) })),
    properties: getCounts(blob.properties.map(({ type }) => type)).map(([type, count]) => ({ type, count })),
  };
}

/** Reads the fields that the list of packages shows. */
export function readBundleHeading(blob: BundleBlob): BundleHeading {
  const { spec, annotations } = readCsvFields(blob);
  return readHeading(spec, annotations);
}

function readHeading(spec: JsonObject, annotations: JsonObject): BundleHeading {
  return {
    displayName: toText(spec['displayName']),
    provider: toText(getValue(spec, 'provider', 'name')),
    description: toText(spec['description'], maxDescription),
    summary: toText(annotations['description']),
    keywords: toTexts(spec['keywords']),
    categories: toText(annotations['categories'])
      .split(',')
      .map((category) => category.trim())
      .filter((category) => category !== ''),
  };
}

function readCsvFields(blob: BundleBlob): CsvFields {
  try {
    const csv: unknown = JSON.parse(findCsvText(blob) ?? 'null');
    if (isJsonObject(csv)) {
      const annotations = getObject(csv, 'metadata', 'annotations');
      return { spec: getObject(csv, 'spec'), annotations, isComplete: true };
    }
  } catch {
    // The checks report objects that cannot be read.
  }
  const metadata = toObject(getProperties(blob, propertyTypes.csvMetadata)[0]);
  return { spec: metadata, annotations: getObject(metadata, 'annotations'), isComplete: false };
}

function getFacts(spec: JsonObject, annotations: JsonObject): BundleDetails['facts'] {
  const facts = [
    { name: 'Maturity', value: toText(spec['maturity']) },
    { name: 'Capabilities', value: toText(annotations['capabilities']) },
    { name: 'Categories', value: toText(annotations['categories']) },
    { name: 'Created', value: toText(annotations['createdAt']) },
    { name: 'Minimum Kubernetes version', value: toText(spec['minKubeVersion']) },
    { name: 'Repository', value: toText(annotations['repository']) },
    { name: 'Support', value: toText(annotations['support']) },
    {
      name: 'Maintainers',
      value: toObjects(spec['maintainers'])
        .map(({ name, email }) => [toText(name), toText(email)].filter((part) => part !== '').join(', '))
        .join('; '),
    },
  ];
  return facts.filter(({ value }) => value !== '');
}

/** Returns the APIs of the properties, with the names and descriptions of the ClusterServiceVersion. */
function getApis(blob: BundleBlob, spec: JsonObject): Pick<BundleDetails, 'provided' | 'required'> {
  const list = (owner: 'owned' | 'required', propertyType: string): BundleApi[] => {
    const crds = toObjects(getValue(spec, 'customresourcedefinitions', owner)).map((crd) => {
      const name = toText(crd['name']);
      return { ...toApi(crd), group: name.slice(name.indexOf('.') + 1) };
    });
    const services = toObjects(getValue(spec, 'apiservicedefinitions', owner)).map(toApi);
    const apis = new Map([...crds, ...services].map((api) => [toKey(api), api]));
    for (const { kind, group, version } of getProperties(blob, propertyType).map(toObject)) {
      const api = toApi({ kind, group, version });
      getOrAdd(apis, toKey(api), () => api);
    }
    return [...apis.values()].slice(0, maxItems);
  };
  return {
    provided: list('owned', propertyTypes.gvk),
    required: list('required', propertyTypes.gvkRequired),
  };
}

function toApi(value: Partial<JsonObject>): BundleApi {
  return {
    kind: toText(value['kind']),
    group: toText(value['group']),
    version: toText(value['version']),
    displayName: toText(value['displayName']),
    description: toText(value['description']),
  };
}

function toKey({ group, version, kind }: BundleApi): string {
  return `${group}/${version}/${kind}`;
}

function getPermissions(spec: JsonObject): BundlePermission[] {
  const list = (field: 'clusterPermissions' | 'permissions'): BundlePermission[] =>
    toObjects(getValue(spec, 'install', 'spec', field)).flatMap((permission) =>
      toObjects(permission['rules']).map((rule) => ({
        account: toText(permission['serviceAccountName']),
        isClusterWide: field === 'clusterPermissions',
        groups: toTexts(rule['apiGroups']),
        resources: toTexts(rule['resources']),
        names: toTexts(rule['resourceNames']),
        urls: toTexts(rule['nonResourceURLs']),
        verbs: toTexts(rule['verbs']),
      })),
    );
  return [...list('clusterPermissions'), ...list('permissions')].slice(0, maxItems);
}

function getManifestKinds(blob: BundleBlob): string[] {
  return getProperties(blob, propertyTypes.bundleObject).map((value) => {
    const data = getText(value, 'data');
    const text = decodeUtf8(Buffer.from(data, 'base64'));
    try {
      return toText(getValue(JSON.parse(text), 'kind')) || 'other';
    } catch {
      // YAML
      return /^kind:\s*([A-Za-z]+)\s*$/m.exec(text)?.[1] ?? 'other';
    }
  });
}

function getCounts(names: readonly string[]): [string, number][] {
  const counts = new Map<string, number>();
  for (const name of names) counts.set(name, (counts.get(name) ?? 0) + 1);
  return sortedByBytes(counts.keys()).map((name) => [name, counts.get(name) as number]);
}

function getProperties(blob: BundleBlob, propertyType: string): EncodableJson[] {
  return blob.properties
    .filter(({ type }) => type === propertyType)
    .slice(0, maxItems)
    .map(({ value }) => getPropertyValue(value));
}

function toObject(value: unknown): JsonObject {
  return isJsonObject(value) ? value : {};
}

function toList(value: unknown): unknown[] {
  return Array.isArray(value) ? value.slice(0, maxItems) : [];
}

function toObjects(value: unknown): JsonObject[] {
  return toList(value).map(toObject);
}

function toTexts(value: unknown): string[] {
  return toList(value).map((item) => toText(item));
}

/** Converts a scalar to text of limited length; other values to an empty text. */
function toText(value: unknown, limit: number = maxText): string {
  const text =
    typeof value === 'string'
      ? value
      : typeof value === 'number' || typeof value === 'bigint' || typeof value === 'boolean'
        ? String(value)
        : '';
  return text.length > limit ? `${text.slice(0, limit)}…` : text;
}
