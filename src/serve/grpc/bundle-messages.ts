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
import { parsePackageProperty, unwrap } from '../../model/properties.js';
import { type BundleMessage, bundleType } from './messages.js';
import type { ApiName } from './registry-answers.js';

/**
 * An `api.Bundle` is sent as several messages, one after the other, which readers of protocol buffers take for one:
 * its facts, its manifests, and what belongs to a channel. So a bundle is encoded and kept once, whatever the number
 * of its channels, and lists go without the manifests.
 */

/** Property types that are not sent as properties: what they hold is in `csvJson` and `object`. */
const manifestTypes: ReadonlySet<string> = new Set([propertyTypes.bundleObject, propertyTypes.csvMetadata]);

/** What is told of a bundle in a channel in addition to what is in its blob. */
interface ChannelPart {
  channelName: string;
  entry: ChannelEntry;
  /** Whether to include `replaces` and `skips`, which only a list of all bundles has. */
  withUpgrades: boolean;
  deprecation?: { message: string } | undefined;
}

/** Encodes the part of a bundle's message that is not in its blob. */
export function encodeChannelPart({ channelName, entry, withUpgrades, deprecation }: ChannelPart): Buffer {
  const { replaces, skips, skipRange } = entry;
  const upgrades = withUpgrades ? { replaces, skips } : {};
  return bundleType.encode({ channelName, skipRange, ...upgrades, deprecation });
}

/**
 * Encodes the part of a bundle's message that is in its blob, without manifests. Throws OpmateError INVALID for a
 * property of the wrong form.
 */
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

/** The APIs that a bundle provides, from its `olm.gvk` properties. */
export function providedApis(blob: BundleBlob): ApiName[] {
  return blob.properties.filter(({ type }) => type === propertyTypes.gvk).map(({ value }) => getApi(value));
}

function getApi(value: EncodableJson): ApiName {
  return { group: toText(value, 'group'), version: toText(value, 'version'), kind: toText(value, 'kind') };
}

/** A text field of a property's value, whatever the case of its name; the value has been checked. */
function toText(value: EncodableJson, field: string): string {
  const match = readField(value, field);
  return typeof match === 'string' ? match : '';
}

function readField(input: EncodableJson, field: string): EncodableJson | undefined {
  const value = unwrap(input);
  return isJsonObject(value) ? findField(value, field) : undefined;
}

/**
 * The manifests of a bundle as fields of its message: `csvJson` and `object`. A bundle that has no
 * ClusterServiceVersion among its objects but one `olm.csv.metadata` gets one made of that.
 */
export function encodeManifests(blob: BundleBlob, owner: () => Promise<PackageBlob>): Promise<Buffer> {
  const objects = blob.properties
    .filter(({ type }) => type === propertyTypes.bundleObject)
    .map(({ value }) => toObject(value));
  const csv = objects.find(isCsvText);
  const metadata = blob.properties.filter(({ type }) => type === propertyTypes.csvMetadata);
  const [only] = metadata;
  if (csv !== undefined || only === undefined || metadata.length > 1) {
    return Promise.resolve(manifestFields(csv, objects));
  }
  return owner().then((packageBlob) => {
    const made = Buffer.from(synthesizeCsv(blob, only.value, packageBlob));
    return manifestFields(made, objects.length === 0 ? [made] : objects);
  });
}

function manifestFields(csv: Buffer | undefined, objects: readonly Buffer[]): Buffer {
  return bundleType.encode({ csvJson: csv, object: objects });
}

/** An object as JSON: as it is where it is JSON, otherwise what its YAML says. */
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
 * A ClusterServiceVersion from what `olm.csv.metadata` has kept of one, with the text that upstream's encoder would
 * write: enough for user interfaces, without deployments. (Source: ConvertModelBundleToAPIBundle of
 * operator-registry; v1alpha1 of operator-framework/api.)
 */
function synthesizeCsv(blob: BundleBlob, metadata: EncodableJson, owner: PackageBlob): string {
  const of = (field: string): JsonObject[string] =>
    (readField(metadata, field) ?? null) as JsonObject[string];
  // The record in its own field order, without what is empty.
  const read = buildCsvMetadata({
    metadata: { annotations: of('annotations'), labels: of('labels') },
    spec: {
      apiservicedefinitions: of('apiServiceDefinitions'),
      customresourcedefinitions: of('crdDescriptions'),
      description: of('description'),
      displayName: of('displayName'),
      installModes: of('installModes'),
      keywords: of('keywords'),
      links: of('links'),
      maintainers: of('maintainers'),
      maturity: of('maturity'),
      minKubeVersion: of('minKubeVersion'),
      nativeAPIs: of('nativeAPIs'),
      provider: of('provider'),
    },
  });
  const version = packageVersion(blob);
  const { icon } = owner;
  const description = read['description'] ?? (owner.description === '' ? undefined : owner.description);
  return encodeGoJson(
    {
      kind: 'ClusterServiceVersion',
      apiVersion: 'operators.coreos.com/v1alpha1',
      metadata: {
        name: blob.name,
        ...given('labels', read['labels']),
        ...given('annotations', read['annotations']),
      },
      spec: {
        install: { strategy: 'deployment', spec: { deployments: null } },
        version,
        ...given('maturity', read['maturity']),
        customresourcedefinitions: read['crdDescriptions'] ?? {},
        apiservicedefinitions: read['apiServiceDefinitions'] ?? {},
        ...given('nativeAPIs', read['nativeAPIs']),
        ...given('minKubeVersion', read['minKubeVersion']),
        displayName: read['displayName'] ?? '',
        ...given('description', description),
        ...given('keywords', read['keywords']),
        ...given('maintainers', read['maintainers']),
        provider: read['provider'] ?? {},
        ...given('links', read['links']),
        ...given(
          'icon',
          icon === undefined ? undefined : [{ base64data: icon.base64data ?? '', mediatype: icon.mediatype }],
        ),
        ...given('installModes', read['installModes']),
        cleanup: { enabled: false },
        ...given(
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

function given(key: string, value: EncodableJson | undefined): { [key: string]: EncodableJson } {
  return value === undefined ? {} : { [key]: value };
}

function packageVersion(blob: BundleBlob): string {
  const property = blob.properties.find(({ type }) => type === propertyTypes.package);
  return property === undefined
    ? ''
    : formatVersion(parseVersion(parsePackageProperty(property.value).version));
}
