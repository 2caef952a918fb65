import { type RemovedApi, findRemovedApi } from '../../bundle/plain/object-warnings.js';
import type { DecodedBlob } from '../../catalog/blob.js';
import { compareBytes } from '../../core/order.js';
import { maxOpenShiftProperty } from '../../core/openshift-version.js';
import { parseRange, parseTolerantVersion, tryParse } from '../../core/semver.js';
import { encodeGoJson, parseGoJson } from '../../document/go-json.js';
import { parseYaml } from '../../document/yaml.js';
import { getObjects, getText, getValue } from '../../document/json-fields.js';
import {
  type BundleBlob,
  type ChannelBlob,
  type PackageBlob,
  propertyTypes,
} from '../../model/declarative-config.js';
import { getPropertyValue, parseGvkProperty, parsePackageRequiredProperty } from '../../model/properties.js';
import type { RuleProperty } from '../../model/property-rule.js';
import { readBundleProperties } from './bundle-properties.js';
import type { InlineManifests, BundleProperties, CatalogKey, ResolverEntry } from './resolver-types.js';

/** Bundle as all its channels share it. */
interface SharedBundle extends BundleProperties {
  version: ResolverEntry['version'];
  versionText: string;
  manifests: InlineManifests | undefined;
  installModes: readonly string[] | undefined;
  maxOpenShift: readonly string[];
  removedApis: readonly RemovedApi[];
}

/** What is read of bundles in addition. */
interface EntriesOptions {
  /** Packages whose objects are searched for removed APIs; default none. */
  searched?: ReadonlySet<string>;
}

/** Collects blobs of a catalog and returns the entries that the resolver gets from its server. */
export class CatalogEntries {
  readonly #defaultChannels = new Map<string, string>();
  readonly #channels: Pick<ChannelBlob, 'package' | 'name' | 'entries'>[] = [];
  readonly #bundles = new Map<string, SharedBundle>();
  readonly #options: EntriesOptions;

  constructor(options: EntriesOptions = {}) {
    this.#options = options;
  }

  /** Adds a blob; those without entries are ignored. */
  add(decoded: DecodedBlob): void {
    if (decoded.kind === 'package') this.addPackage(decoded.blob);
    else if (decoded.kind === 'channel') this.addChannel(decoded.blob);
    else if (decoded.kind === 'bundle') this.addBundle(decoded.blob);
  }

  addPackage({ name, defaultChannel }: PackageBlob): void {
    this.#defaultChannels.set(name, defaultChannel);
  }

  addChannel({ package: packageName, name, entries }: ChannelBlob): void {
    this.#channels.push({ package: packageName, name, entries });
  }

  /** Adds a bundle. One without exactly one package, or with an invalid requirement, is left out, as OLM does. */
  addBundle(blob: BundleBlob): void {
    const properties: RuleProperty[] = [];
    for (const { type, value } of blob.properties) {
      if (type === propertyTypes.bundleObject || type === propertyTypes.csvMetadata) continue;
      properties.push({ type, value: getPropertyValue(value) });
    }
    const shared = readBundleProperties([...properties, ...repeatRequirements(properties)]);
    const [own] = properties.filter(({ type }) => type === propertyTypes.package);
    const versionText = getText(own?.value, 'version');
    this.#bundles.set(bundleKey(blob.package, blob.name), {
      ...shared,
      version: tryParse(parseTolerantVersion, versionText),
      versionText,
      manifests: blob.image === '' ? readManifests(blob) : undefined,
      installModes: readInstallModes(blob),
      removedApis: this.#options.searched?.has(blob.package) === true ? readRemovedApis(blob) : [],
      maxOpenShift: blob.properties.flatMap(({ type, value }) =>
        type === maxOpenShiftProperty ? [encodeGoJson(value)] : [],
      ),
    });
  }

  /** Returns the names of the packages that have channels. */
  listPackages(): string[] {
    return [...new Set(this.#channels.map((channel) => channel.package))];
  }

  /** Returns the default channel of a package; undefined for an unknown package. */
  getDefaultChannel(packageName: string): string | undefined {
    return this.#defaultChannels.get(packageName);
  }

  /** Returns the entries of all channels, in the order of ListBundles: by channel, package and name. */
  list(catalog: CatalogKey): ResolverEntry[] {
    const entries: ResolverEntry[] = [];
    for (const { package: packageName, name: channel, entries: listed } of this.#channels)
      for (const { name, replaces, skips, skipRange } of listed ?? []) {
        const bundle = this.#bundles.get(bundleKey(packageName, name));
        if (bundle === undefined) continue;
        entries.push({
          ...bundle,
          name,
          catalog,
          package: packageName,
          channel,
          isDefaultChannel: this.#defaultChannels.get(packageName) === channel,
          replaces,
          skips,
          skipRange: tryParse(parseRange, skipRange),
          isSubscribed: false,
        });
      }
    return entries.sort(
      (a, b) =>
        compareBytes(a.channel, b.channel) ||
        compareBytes(a.package, b.package) ||
        compareBytes(a.name, b.name),
    );
  }
}

function bundleKey(packageName: string, name: string): string {
  return `${packageName}/${name}`;
}

/** Returns requirements once more, as the registry's API has them and OLM adds them. */
function repeatRequirements(properties: readonly RuleProperty[]): RuleProperty[] {
  return properties.flatMap(({ type, value }): RuleProperty[] => {
    if (type === propertyTypes.gvkRequired) {
      const { group, version, kind } = parseGvkProperty(value);
      return [{ type, value: { group, version, kind } }];
    }
    if (type !== propertyTypes.packageRequired) return [];
    const { packageName, versionRange } = parsePackageRequiredProperty(value);
    return [{ type, value: { packageName, versionRange } }];
  });
}

function readInstallModes({ properties }: BundleBlob): string[] | undefined {
  const metadata = properties.find(({ type }) => type === propertyTypes.csvMetadata);
  const modes = metadata && getValue(getPropertyValue(metadata.value), 'installModes');
  if (modes === undefined) return undefined;
  return getObjects({ modes }, 'modes')
    .filter((mode) => mode['supported'] === true)
    .map((mode) => getText(mode, 'type'));
}

function readRemovedApis(blob: BundleBlob): RemovedApi[] {
  return readManifests(blob).objects.flatMap(
    (object) => findRemovedApi(getText(object, 'apiVersion'), getText(object, 'kind')) ?? [],
  );
}

function readManifests({ properties }: BundleBlob): InlineManifests {
  const objects: unknown[] = [];
  for (const { type, value } of properties) {
    if (type !== propertyTypes.bundleObject) continue;
    const text = Buffer.from(getText(getPropertyValue(value), 'data'), 'base64').toString();
    objects.push(text.trimStart().startsWith('{') ? parseGoJson(text) : parseYaml(text));
  }
  return { objects };
}
