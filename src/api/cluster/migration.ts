import type { Diagnostic } from '../../core/diagnostic.js';
import { getOrAdd } from '../../core/groups.js';
import { getObjects, getText, getValue } from '../../document/json-fields.js';
import { isJsonObject, type JsonObject } from '../../document/json.js';
import { readManifests } from '../../kube/manifests.js';
import {
  migrateCatalogSources,
  type MigrateCatalogsOptions,
  type MigratedCatalogSource,
} from '../../solve/migration/catalog-sources.js';
import type { FindOffer, OfferedPackage } from '../../solve/migration/catalogs.js';
import { ClusterIndex } from '../../solve/migration/cluster-index.js';
import {
  type ConvertedSubscription,
  type ConvertOptions,
  convertSubscription,
} from '../../solve/migration/convert.js';
import type { Acknowledgment } from '../../solve/migration/options.js';
import { type MigrationRollback, rollBackMigration } from '../../solve/migration/rollback.js';
import { judgeMigration, type MigrationVerdict } from '../../solve/migration/verdicts.js';

/** Packages of ClusterCatalogs, by name of the catalog, then of the package. */
export type OfferedPackages = ReadonlyMap<string, ReadonlyMap<string, OfferedPackage>>;

/** Objects of a cluster, and the content of its ClusterCatalogs. */
export interface MigrationInput {
  objects: readonly JsonObject[];
  catalogs: OfferedPackages;
}

/** Operators of a cluster, and how they move from OLM v0 to OLM v1. */
export interface MigrationPlanner {
  /** Returns a verdict on every Subscription. */
  check(acknowledged?: Iterable<Acknowledgment>): MigrationVerdict[];
  /** Returns the documents that replace a Subscription. */
  convert(options: ConvertOptions): ConvertedSubscription | { error: string };
  /** Returns the ClusterCatalogs that replace the CatalogSources. */
  convertCatalogs(options?: MigrateCatalogsOptions): {
    results: MigratedCatalogSource[];
    clusterCatalogs: JsonObject[];
  };
  /** Returns how an operator goes back to OLM v0. */
  rollBack(extension: string, acknowledgesInstalled?: boolean): MigrationRollback | { error: string };
}

/** Reads all objects of YAML or JSON texts, such as the output of kubectl, with Lists expanded. */
export function readClusterTexts(texts: readonly { name: string; content: Buffer }[]): {
  objects: JsonObject[];
  findings: Diagnostic[];
} {
  const { manifests, findings } = readManifests(texts, { prefix: '' });
  return { objects: manifests.map((manifest) => manifest.load()), findings };
}

/** Plans the migration of the operators of a cluster from OLM v0 to OLM v1, as the migration library of OLM does. */
export function planMigration({ objects, catalogs }: MigrationInput): MigrationPlanner {
  const cluster = new ClusterIndex(objects);
  const findOffer: FindOffer = (catalog, packageName) => catalogs.get(catalog)?.get(packageName);
  return {
    check: (acknowledged = []) => judgeMigration(cluster, findOffer, new Set(acknowledged)),
    convert: (options) => convertSubscription(cluster, findOffer, options),
    convertCatalogs: (options = {}) => migrateCatalogSources(cluster, options),
    rollBack: (extension, acknowledgesInstalled = false) =>
      rollBackMigration(cluster, extension, acknowledgesInstalled),
  };
}

/** Returns the packages of catalog blobs. */
export function listOfferedPackages(blobs: Iterable<JsonObject>): Map<string, OfferedPackage> {
  const packages = new Map<
    string,
    { isPackage: boolean; defaultChannel: string; channels: Set<string>; versions: Set<string> }
  >();
  const find = (name: string) =>
    getOrAdd(packages, name, () => ({
      isPackage: false,
      defaultChannel: '',
      channels: new Set(),
      versions: new Set(),
    }));
  for (const blob of blobs) {
    const [schema, name] = [getText(blob, 'schema'), getText(blob, 'name')];
    if (schema === 'olm.package') {
      const offer = find(name);
      offer.isPackage = true;
      offer.defaultChannel = getText(blob, 'defaultChannel') || offer.defaultChannel;
    } else if (schema === 'olm.channel') find(getText(blob, 'package')).channels.add(name);
    else if (schema === 'olm.bundle') {
      const version = bundleVersion(blob);
      if (version !== '') find(getText(blob, 'package')).versions.add(version);
    }
  }
  return new Map([...packages].filter(([, { isPackage }]) => isPackage));
}

function bundleVersion(bundle: JsonObject): string {
  const property = getObjects(bundle, 'properties').find(({ type }) => type === 'olm.package');
  const value = getValue(property, 'value');
  return isJsonObject(value) ? getText(value, 'version') : '';
}
