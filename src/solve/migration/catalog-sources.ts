import { groupBy } from '../../core/groups.js';
import { compareBytes } from '../../core/order.js';
import { quoteGo } from '../../document/go-json.js';
import { getList, getObject, getText, getValue } from '../../document/json-fields.js';
import { isJsonObject, type JsonObject } from '../../document/json.js';
import { parseGoDuration } from '../../core/text/go-duration.js';
import { isImageSource } from './checks.js';
import { getAnnotation, getKey, getName, getNamespace } from '../../kube/object.js';
import { type ClusterIndex, kinds } from './cluster-index.js';
import { migrationKeys } from './options.js';

/** Options of `migrateCatalogSources`. */
export interface MigrateCatalogsOptions {
  /** Say what would be done. */
  dryRun?: boolean | undefined;
  /** Delete CatalogSources that no Subscription refers to. */
  deletesSources?: boolean | undefined;
  /** Limit priorities to 32 bits. */
  capsPriority?: boolean | undefined;
}

/** Result for one CatalogSource, in the words of the migration library. */
export interface MigratedCatalogSource {
  catalogSource: string;
  namespace: string;
  /** Absent if it has no ClusterCatalog. */
  clusterCatalog?: string;
  status: 'created' | 'adopted' | 'skipped' | 'error' | 'dry-run';
  reason: string;
  notes: string[];
}

/**
 * Converts CatalogSources to ClusterCatalogs as the migration library does, and returns all ClusterCatalogs that exist
 * afterwards: an existing one with the same image is adopted, sources with one name share one if their images are equal.
 */
export function migrateCatalogSources(
  cluster: ClusterIndex,
  options: MigrateCatalogsOptions,
): { results: MigratedCatalogSource[]; clusterCatalogs: JsonObject[] } {
  const sources = cluster.list(kinds.catalogSource);
  const images = sources.filter(isImageSource);
  const others = sources.filter((source) => !isImageSource(source));
  const run = new CatalogRun(cluster, images, options);
  const results = [...others.map(skipSource), ...images.map((source) => run.migrate(source))];
  return { results, clusterCatalogs: run.catalogs };
}

function result(
  source: JsonObject,
  status: MigratedCatalogSource['status'],
  reason: string,
  details: { clusterCatalog?: string; notes?: string[] } = {},
): MigratedCatalogSource {
  const { clusterCatalog, notes = [] } = details;
  return {
    catalogSource: getName(source),
    namespace: getNamespace(source),
    ...(clusterCatalog !== undefined && { clusterCatalog }),
    status,
    reason,
    notes,
  };
}

function skipSource(source: JsonObject): MigratedCatalogSource {
  const type = getText(source, 'spec', 'sourceType');
  const none = 'has no OLMv1 equivalent';
  const reasons: Readonly<Record<string, string>> = {
    configmap: `configmap-type CatalogSource ${none}`,
    internal: `internal-type CatalogSource ${none}`,
    grpc: `grpc address-only CatalogSource (no spec.image) ${none}`,
  };
  const reason = Object.hasOwn(reasons, type) ? reasons[type] : undefined;
  return result(source, 'skipped', reason ?? `unsupported sourceType ${quoteGo(type)}`);
}

function getImage(source: JsonObject): string {
  return getText(source, 'spec', 'image');
}

function getCatalogImage(catalog: JsonObject): string {
  return getText(catalog, 'spec', 'source', 'image', 'ref');
}

class CatalogRun {
  readonly #cluster: ClusterIndex;
  readonly #options: MigrateCatalogsOptions;
  /** ClusterCatalogs that exist, by name. */
  readonly #catalogs: Map<string, JsonObject>;
  /** Images of catalogs that this run created or adopted. */
  readonly #used = new Map<string, string>();
  /** Names of sources whose images differ. */
  readonly #ambiguous: ReadonlySet<string>;

  constructor(cluster: ClusterIndex, images: readonly JsonObject[], options: MigrateCatalogsOptions) {
    this.#cluster = cluster;
    this.#options = options;
    this.#catalogs = new Map(
      cluster.list(kinds.clusterCatalog).map((catalog) => [getName(catalog), describeCatalog(catalog)]),
    );
    const groups = groupBy(images, getName);
    this.#ambiguous = new Set(
      [...groups].filter(([, members]) => new Set(members.map(getImage)).size > 1).map(([name]) => name),
    );
  }

  /** All ClusterCatalogs, by name. */
  get catalogs(): JsonObject[] {
    return [...this.#catalogs.values()].sort((a, b) => compareBytes(getName(a), getName(b)));
  }

  migrate(source: JsonObject): MigratedCatalogSource {
    const isAmbiguous = this.#ambiguous.has(getName(source));
    const name = isAmbiguous ? `${getName(source)}-${getNamespace(source)}` : getName(source);
    const priority = readPriority(source, this.#options.capsPriority === true);
    if (typeof priority === 'string') return result(source, 'skipped', priority, { clusterCatalog: name });
    const notes = sourceNotes(source);
    const image = getImage(source);
    const details = { clusterCatalog: name, notes };
    const used = this.#used.get(name);
    if (used !== undefined && used !== image) {
      return result(source, 'error', mismatch(name, 'selected', used, image), details);
    }
    if (used !== undefined) {
      const reason = `consolidated into shared ClusterCatalog ${name}`;
      return this.#finish(source, result(source, 'adopted', reason, details));
    }
    const matching = this.catalogs.filter((catalog) => getCatalogImage(catalog) === image);
    const adopted = matching.find((catalog) => getName(catalog) === name) ?? matching[0];
    if (adopted !== undefined) return this.#adopt(source, adopted, notes);
    const existing = this.#catalogs.get(name);
    if (existing !== undefined) {
      return result(source, 'error', mismatch(name, 'exists', getCatalogImage(existing), image), details);
    }
    return this.#create(source, name, priority, notes);
  }

  #adopt(source: JsonObject, catalog: JsonObject, notes: string[]): MigratedCatalogSource {
    const name = getName(catalog);
    const details = { clusterCatalog: name, notes };
    if (this.#options.dryRun === true) {
      const reason = `would adopt existing ClusterCatalog ${name}`;
      return this.#finish(source, result(source, 'dry-run', reason, details));
    }
    if (getAnnotation(catalog, migrationKeys.fromCatalogSource) === '') {
      const metadata = getObject(catalog, 'metadata');
      const annotations = {
        ...getObject(metadata, 'annotations'),
        [migrationKeys.fromCatalogSource]: getKey(source),
      };
      this.#catalogs.set(name, { ...catalog, metadata: { ...metadata, annotations } });
    }
    this.#used.set(name, getImage(source));
    const reason = 'existing ClusterCatalog with matching image adopted';
    return this.#finish(source, result(source, 'adopted', reason, details));
  }

  #create(source: JsonObject, name: string, priority: number, notes: string[]): MigratedCatalogSource {
    const image = getImage(source);
    const details = { clusterCatalog: name, notes };
    if (this.#options.dryRun === true) {
      const reason = `would create ClusterCatalog ${name} from image ${image}`;
      return this.#finish(source, result(source, 'dry-run', reason, details));
    }
    const pollIntervalMinutes = readPollMinutes(source);
    this.#catalogs.set(name, {
      ...kinds.clusterCatalog,
      metadata: { name, annotations: { [migrationKeys.fromCatalogSource]: getKey(source) } },
      spec: {
        source: {
          type: 'Image',
          image: { ref: image, ...(pollIntervalMinutes !== undefined && { pollIntervalMinutes }) },
        },
        priority,
        availabilityMode: 'Available',
      },
    });
    this.#used.set(name, image);
    return this.#finish(source, result(source, 'created', `created from image ${image}`, details));
  }

  /** Adds what happens to the source itself. */
  #finish(source: JsonObject, migrated: MigratedCatalogSource): MigratedCatalogSource {
    if (this.#options.deletesSources !== true) return migrated;
    const isReferenced = this.#cluster
      .list(kinds.subscription)
      .some(
        ({ spec }) => `${getText(spec, 'sourceNamespace')}/${getText(spec, 'source')}` === getKey(source),
      );
    const note = isReferenced
      ? 'CatalogSource retained because one or more Subscriptions still reference it'
      : this.#options.dryRun === true
        ? 'would delete unreferenced CatalogSource'
        : 'deleted unreferenced CatalogSource';
    return { ...migrated, notes: [...migrated.notes, note] };
  }
}

function mismatch(name: string, verb: 'selected' | 'exists', existing: string, image: string): string {
  const state = verb === 'selected' ? 'already selected' : 'already exists';
  return `ClusterCatalog ${name} ${state} with image ${quoteGo(existing)}, which does not match CatalogSource image ${quoteGo(image)}`;
}

/** Returns an existing catalog as its Go type writes it. */
function describeCatalog(catalog: JsonObject): JsonObject {
  const { name, labels, annotations } = getObject(catalog, 'metadata');
  const spec = getObject(catalog, 'spec');
  return {
    ...kinds.clusterCatalog,
    metadata: {
      name: name ?? '',
      ...(isJsonObject(labels) && { labels }),
      ...(isJsonObject(annotations) && { annotations }),
    },
    spec: { ...spec, priority: spec['priority'] ?? 0 },
  };
}

function sourceNotes(source: JsonObject): string[] {
  const secrets = getList(source, 'spec', 'secrets').length;
  const notes: string[] = [];
  if (secrets > 0) {
    notes.push(
      `spec.secrets (${secrets} secret(s)) has no OLMv1 equivalent; OLMv1 uses the cluster global pull secret`,
    );
  }
  if (isJsonObject(getValue(source, 'spec', 'grpcPodConfig'))) {
    notes.push('spec.grpcPodConfig has no OLMv1 equivalent; catalogd manages the serving pod configuration');
  }
  return notes;
}

const maxInt32 = 2 ** 31 - 1;
const minInt32 = -(2 ** 31);

/** Returns the priority, or why it is refused. */
function readPriority(source: JsonObject, caps: boolean): number | string {
  const value = getValue(source, 'spec', 'priority');
  if (typeof value !== 'number' && typeof value !== 'bigint') return 0;
  if (value >= minInt32 && value <= maxInt32) return Number(value);
  if (caps) return value > 0 ? maxInt32 : minInt32;
  return `spec.priority ${value} is out of int32 range; pass --acknowledge-priority-overflow to cap and proceed`;
}

/** Returns the interval in whole minutes; undefined without one, and for an image that cannot change. */
function readPollMinutes(source: JsonObject): number | undefined {
  if (getImage(source).includes('@sha256:')) return undefined;
  const interval = getText(source, 'spec', 'updateStrategy', 'registryPoll', 'interval');
  const milliseconds = parseGoDuration(interval) ?? 0;
  return milliseconds === 0 ? undefined : Math.max(1, Math.floor(milliseconds / 60_000));
}
