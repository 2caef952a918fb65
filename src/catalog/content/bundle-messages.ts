import { isUtf8 } from 'node:buffer';
import { decodeUtf8, encodeGoJson, sortKeysDeep } from '../../document/go-json.js';
import { findField } from '../../document/go-json-fold.js';
import { type EncodableJson, type JsonObject, isJsonObject } from '../../document/json.js';
import { parseYaml } from '../../document/yaml.js';
import { formatVersion, parseVersion } from '../../core/semver.js';
import { isCsv } from '../../model/csv.js';
import { buildCsvMetadata } from '../../model/csv-metadata.js';
import {
  type BundleBlob,
  type ChannelEntry,
  type PackageBlob,
  propertyTypes,
} from '../../model/declarative-config.js';
import { parsePackageProperty, getPropertyValue } from '../../model/properties.js';
import { type BundleMessage, bundleType } from './messages.js';
import type { ApiName } from '../../model/csv.js';

/**
 * An `api.Bundle` is sent as concatenated messages, which protocol buffers merge into one: facts, manifests, and the
 * fields of a channel. So a bundle is encoded and cached once for all its channels, and lists omit the manifests.
 */

/** Property types that are sent as `csvJson` and `object` instead. */
const manifestTypes: ReadonlySet<string> = new Set([propertyTypes.bundleObject, propertyTypes.csvMetadata]);

interface ChannelPart {
  channelName: string;
  entry: ChannelEntry;
  /** Include `replaces` and `skips`, which only a list of all bundles has. */
  withUpgrades: boolean;
  /** Deprecation message of the bundle. */
  deprecation: string | undefined;
}

/** Returns a deprecation for an encoded message. */
export function toDeprecation(message: string | undefined): { message: string } | undefined {
  return message === undefined ? undefined : { message };
}

/** Encodes the fields of a bundle that depend on the channel. */
export function encodeChannelPart({ channelName, entry, withUpgrades, deprecation }: ChannelPart): Buffer {
  const { replaces, skips, skipRange } = entry;
  const upgrades = withUpgrades ? { replaces, skips } : {};
  return bundleType.encode({ channelName, skipRange, ...upgrades, deprecation: toDeprecation(deprecation) });
}

/** Encodes the fields of a bundle from its blob, without manifests. Throws OpmateError INVALID for a malformed property. */
export function encodeFacts(blob: BundleBlob): Buffer {
  let version = '';
  const providedApis: ApiName[] = [];
  const requiredApis: ApiName[] = [];
  const dependencies: BundleMessage['dependencies'] = [];
  const properties: BundleMessage['properties'] = [];
  for (const { type, value } of blob.properties) {
    if (manifestTypes.has(type)) continue;
    const text = encodeGoJson(value);
    properties.push({ type, value: text });
    switch (type) {
      case propertyTypes.package:
        version = parsePackageProperty(value).version;
        break;
      case propertyTypes.gvk:
        providedApis.push(getApi(value));
        break;
      case propertyTypes.gvkRequired:
        requiredApis.push(getApi(value));
        dependencies.push({ type: propertyTypes.gvk, value: text });
        break;
      case propertyTypes.packageRequired:
        dependencies.push({
          type: propertyTypes.package,
          value: encodeGoJson({
            packageName: toText(value, 'packageName'),
            version: toText(value, 'versionRange'),
          }),
        });
        break;
    }
  }
  return bundleType.encode({
    csvName: blob.name,
    packageName: blob.package,
    bundlePath: blob.image,
    version,
    providedApis,
    requiredApis,
    dependencies,
    properties,
  });
}

/** Returns the provided APIs of a bundle, from its `olm.gvk` properties. */
export function getProvidedApis(blob: BundleBlob): ApiName[] {
  return blob.properties.filter(({ type }) => type === propertyTypes.gvk).map(({ value }) => getApi(value));
}

function getApi(value: EncodableJson): ApiName {
  return { group: toText(value, 'group'), version: toText(value, 'version'), kind: toText(value, 'kind') };
}

/** Reads a string field of a checked value; its name matches in any case. */
function toText(value: EncodableJson, field: string): string {
  const match = readField(value, field);
  return typeof match === 'string' ? match : '';
}

function readField(input: EncodableJson, field: string): EncodableJson | undefined {
  const value = getPropertyValue(input);
  return isJsonObject(value) ? findField(value, field) : undefined;
}

/**
 * Encodes the manifests of a bundle: `csvJson` and `object`. Without a ClusterServiceVersion among its objects, one is
 * synthesized from a single `olm.csv.metadata`.
 */
export async function encodeManifests(blob: BundleBlob, owner: () => Promise<PackageBlob>): Promise<Buffer> {
  const objects = blob.properties
    .filter(({ type }) => type === propertyTypes.bundleObject)
    .map(({ value }) => toObject(value));
  const csv = objects.find(isCsvText);
  const metadata = blob.properties.filter(({ type }) => type === propertyTypes.csvMetadata);
  const [only] = metadata;
  if (csv !== undefined || only === undefined || metadata.length > 1) {
    return bundleType.encode({ csvJson: csv, object: objects });
  }
  const synthesized = Buffer.from(synthesizeCsv(blob, only.value, await owner()));
  return bundleType.encode({ csvJson: synthesized, object: objects.length === 0 ? [synthesized] : objects });
}

/** Returns an object as JSON: unchanged JSON or converted YAML. */
function toObject(value: EncodableJson): Buffer {
  const data = toText(value, 'data');
  const bytes = Buffer.from(data, 'base64');
  if (startsWithBrace(bytes)) return isUtf8(bytes) ? bytes : Buffer.from(decodeUtf8(bytes));
  return Buffer.from(encodeGoJson(sortKeysDeep(parseYaml(decodeUtf8(bytes))), { escapeHtml: true }));
}

function startsWithBrace(bytes: Buffer): boolean {
  for (const byte of bytes) {
    if (byte === 0x7b) return true;
    if (byte !== 0x20 && (byte < 0x09 || byte > 0x0d)) return false;
  }
  return false;
}

const csvKind = Buffer.from('ClusterServiceVersion');

function isCsvText(object: Buffer): boolean {
  if (!object.includes(csvKind)) return false;
  try {
    return isCsv(JSON.parse(object.toString()) as JsonObject);
  } catch {
    return false;
  }
}

/**
 * Synthesizes a ClusterServiceVersion from `olm.csv.metadata`, without deployments, byte for byte as upstream encodes it.
 * (Source: ConvertModelBundleToAPIBundle of operator-registry; v1alpha1 of operator-framework/api.)
 */
function synthesizeCsv(blob: BundleBlob, metadata: EncodableJson, owner: PackageBlob): string {
  const get = (field: string): JsonObject[string] =>
    (readField(metadata, field) ?? null) as JsonObject[string];
  // Fields in their order, without the empty ones.
  const fields = buildCsvMetadata({
    metadata: { annotations: get('annotations'), labels: get('labels') },
    spec: {
      apiservicedefinitions: get('apiServiceDefinitions'),
      customresourcedefinitions: get('crdDescriptions'),
      description: get('description'),
      displayName: get('displayName'),
      installModes: get('installModes'),
      keywords: get('keywords'),
      links: get('links'),
      maintainers: get('maintainers'),
      maturity: get('maturity'),
      minKubeVersion: get('minKubeVersion'),
      nativeAPIs: get('nativeAPIs'),
      provider: get('provider'),
    },
  });
  const version = packageVersion(blob);
  const { icon } = owner;
  const description = fields['description'] ?? (owner.description === '' ? undefined : owner.description);
  return encodeGoJson(
    {
      kind: 'ClusterServiceVersion',
      apiVersion: 'operators.coreos.com/v1alpha1',
      metadata: {
        name: blob.name,
        ...ifSet('labels', fields['labels']),
        ...ifSet('annotations', fields['annotations']),
      },
      spec: {
        install: { strategy: 'deployment', spec: { deployments: null } },
        version,
        ...ifSet('maturity', fields['maturity']),
        customresourcedefinitions: fields['crdDescriptions'] ?? {},
        apiservicedefinitions: fields['apiServiceDefinitions'] ?? {},
        ...ifSet('nativeAPIs', fields['nativeAPIs']),
        ...ifSet('minKubeVersion', fields['minKubeVersion']),
        displayName: fields['displayName'] ?? '',
        ...ifSet('description', description),
        ...ifSet('keywords', fields['keywords']),
        ...ifSet('maintainers', fields['maintainers']),
        provider: fields['provider'] ?? {},
        ...ifSet('links', fields['links']),
        ...ifSet(
          'icon',
          icon === undefined ? undefined : [{ base64data: icon.base64data ?? '', mediatype: icon.mediatype }],
        ),
        ...ifSet('installModes', fields['installModes']),
        cleanup: { enabled: false },
        ...ifSet(
          'relatedImages',
          blob.relatedImages.length === 0
            ? undefined
            : blob.relatedImages.map(({ name, image }) => ({ name, image })),
        ),
      },
      status: { cleanup: {} },
    },
    { escapeHtml: true },
  );
}

function ifSet(key: string, value: EncodableJson | undefined): { [key: string]: EncodableJson } {
  return value === undefined ? {} : { [key]: value };
}

function packageVersion(blob: BundleBlob): string {
  const property = blob.properties.find(({ type }) => type === propertyTypes.package);
  return property === undefined
    ? ''
    : formatVersion(parseVersion(parsePackageProperty(property.value).version));
}
