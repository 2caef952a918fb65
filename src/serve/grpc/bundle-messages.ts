import { isUtf8 } from 'node:buffer';
import { decodeUtf8, encodeGoJson, sortKeysDeep } from '../../document/go-json.js';
import { foldFieldName } from '../../document/go-json-fold.js';
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
import { bundleFields } from './bundle-fields.js';
import { writeDeprecation } from './messages.js';
import { MessageWriter, encodeMessage } from './protobuf.js';

/**
 * An `api.Bundle` is sent as several messages, one after the other, which readers of protocol buffers take for one:
 * its facts, its manifests, and what belongs to a channel. So a bundle is encoded and kept once, whatever the number
 * of its channels, and lists go without the manifests.
 */

/** Property types that are not sent as properties: what they hold is in `csvJson` and `object`. */
const manifestTypes: ReadonlySet<string> = new Set([propertyTypes.bundleObject, propertyTypes.csvMetadata]);

/** What is told of a bundle in a channel besides what is in its blob. */
export interface ChannelPart {
  channelName: string;
  entry: ChannelEntry;
  /** Whether `replaces` and `skips` are told, which only a list of all bundles does. */
  withUpgrades: boolean;
  deprecation?: { message: string } | undefined;
}

/** The part of a bundle's message that is not in its blob. */
export function encodeChannelPart({ channelName, entry, withUpgrades, deprecation }: ChannelPart): Buffer {
  return encodeMessage((message) => {
    message.text(bundleFields.channelName, channelName).text(bundleFields.skipRange, entry.skipRange);
    if (withUpgrades)
      message.text(bundleFields.replaces, entry.replaces).items(bundleFields.skips, entry.skips);
    writeDeprecation(message, bundleFields.deprecation, deprecation);
  });
}

/**
 * The part of a bundle's message that its blob tells, without manifests. Throws OpmateError INVALID for a property of
 * the wrong form.
 */
export function encodeFacts(blob: BundleBlob): Buffer {
  return encodeMessage((message) => {
    message
      .text(bundleFields.csvName, blob.name)
      .text(bundleFields.packageName, blob.package)
      .text(bundleFields.bundlePath, blob.image);
    for (const { type, value } of blob.properties) {
      const text = manifestTypes.has(type) ? '' : encodeGoJson(value);
      writeProperty(message, type, text, value);
    }
  });
}

function writeProperty(message: MessageWriter, type: string, text: string, value: EncodableJson): void {
  const dependency = (dependencyType: string, json: string): void =>
    void message.message(bundleFields.dependencies, (inner) => inner.text(1, dependencyType).text(2, json));
  switch (type) {
    case propertyTypes.package:
      message.text(bundleFields.version, parsePackageProperty(value).version);
      break;
    case propertyTypes.gvk:
      writeApi(message, bundleFields.providedApis, value);
      break;
    case propertyTypes.gvkRequired:
      writeApi(message, bundleFields.requiredApis, value);
      dependency(propertyTypes.gvk, text);
      break;
    case propertyTypes.packageRequired: {
      const packageName = textOf(value, 'packageName');
      const version = textOf(value, 'versionRange');
      dependency(propertyTypes.package, encodeGoJson({ packageName, version }));
      break;
    }
  }
  if (!manifestTypes.has(type)) {
    message.message(bundleFields.properties, (inner) => inner.text(1, type).text(2, text));
  }
}

function writeApi(message: MessageWriter, field: number, value: EncodableJson): void {
  const { group, version, kind } = apiOf(value);
  message.message(field, (inner) => inner.text(1, group).text(2, version).text(3, kind));
}

/** The APIs that a bundle provides, from its `olm.gvk` properties. */
export function providedApis(blob: BundleBlob): { group: string; version: string; kind: string }[] {
  return blob.properties.filter(({ type }) => type === propertyTypes.gvk).map(({ value }) => apiOf(value));
}

function apiOf(value: EncodableJson): { group: string; version: string; kind: string } {
  return { group: textOf(value, 'group'), version: textOf(value, 'version'), kind: textOf(value, 'kind') };
}

/** A text field of a property's value, whatever the case of its name; the value has been checked. */
function textOf(value: EncodableJson, field: string): string {
  const found = fieldOf(value, field);
  return typeof found === 'string' ? found : '';
}

function fieldOf(given: EncodableJson, field: string): EncodableJson | undefined {
  const value = unwrap(given);
  if (!isJsonObject(value)) return undefined;
  if (Object.hasOwn(value, field)) return value[field];
  // Keys are in byte order; of several spellings the last one counts, as for Go.
  const folded = foldFieldName(field);
  const key = Object.keys(value).findLast((name) => foldFieldName(name) === folded);
  return key === undefined ? undefined : value[key];
}

/**
 * The manifests of a bundle as fields of its message: `csvJson` and `object`. A bundle that has no
 * ClusterServiceVersion among its objects but one `olm.csv.metadata` gets one made of that.
 */
export function encodeManifests(blob: BundleBlob, owner: () => Promise<PackageBlob>): Promise<Buffer> {
  const objects = blob.properties
    .filter(({ type }) => type === propertyTypes.bundleObject)
    .map(({ value }) => objectOf(value));
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
  return encodeMessage((message) => {
    if (csv !== undefined && csv.length > 0) message.bytes(bundleFields.csvJson, csv);
    for (const object of objects) message.bytes(bundleFields.object, object);
  });
}

/** An object as JSON: as it is where it is JSON, otherwise what its YAML says. */
function objectOf(value: EncodableJson): Buffer {
  const data = textOf(value, 'data');
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
  const of = (field: string): JsonObject[string] => (fieldOf(metadata, field) ?? null) as JsonObject[string];
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
