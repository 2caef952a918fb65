import { Assembly } from '../../catalog/assemble.js';
import { type DecodedBlob, addToFacts } from '../../catalog/blob.js';
import { TemplateErrors, rendering } from '../../catalog/template/template-errors.js';
import type { Template, TemplateImage } from '../../catalog/template/template.js';
import { mapConcurrent } from '../../core/concurrency.js';
import { CancelledError, OpmateError } from '../../core/errors.js';
import { groupBy } from '../../core/groups.js';
import { silentLogger } from '../../core/log.js';
import { findReference } from '../../core/reference.js';
import { quoteGo } from '../../document/go-json.js';
import type { YamlPath } from '../../document/yaml/full.js';
import type { CatalogDiagnostic } from '../../model/catalog-diagnostic.js';
import type { BundleBlob } from '../../model/declarative-config.js';
import type { CatalogFormat } from '../../model/encode.js';
import { type BlobOrigin, emptyFacts } from '../../model/facts.js';
import { findCsvText, migrateBundle } from '../../model/migrations.js';
import { inReference } from '../reference-error.js';
import type { SourceSession } from '../session.js';

/** Options of rendering a template. */
export interface TemplateRunOptions {
  format: CatalogFormat;
  /** Result of `resolveMigrationLevel`; applies to fetched bundles, not to those in the template. */
  migrationLevel: string;
  /** Maximum number of parallel image downloads; default 8. */
  concurrency?: number | undefined;
  /** Reads the bundle in an image without migrating it. */
  readBundle: (image: string) => Promise<BundleBlob>;
}

/** Indexes of an image in a template, at least one. */
type Places = [first: number, ...others: number[]];

/** Uses a fetched bundle, migrated, with its ClusterServiceVersion and its indexes in the list of images. */
type UseBundle = (blob: BundleBlob, csvText: string | undefined, places: Places) => Promise<void>;

/** The rendering of one template: what it adds to the catalog, and its errors. */
export class TemplateRun {
  readonly facts = emptyFacts();
  readonly errors: TemplateErrors;
  readonly assembly: Assembly;
  readonly #template: Template;
  readonly #session: SourceSession;
  readonly #options: TemplateRunOptions;

  constructor(template: Template, session: SourceSession, options: TemplateRunOptions) {
    const { format } = options;
    const { temporaryDirectory } = session;
    this.#template = template;
    this.#session = session;
    this.#options = options;
    this.errors = new TemplateErrors(template.file, (path) => template.findLine(path));
    this.assembly = new Assembly({ format, migrationLevel: 'none', temporaryDirectory });
  }

  /** Returns the origin of an entry, with its index as offset. */
  getOrigin(position: number): BlobOrigin {
    return { file: this.#template.file, offset: position, length: 0, syntax: 'yaml' };
  }

  async addEntry(item: DecodedBlob, position: number, origin?: BlobOrigin): Promise<void> {
    addToFacts(this.facts, item, origin);
    await this.assembly.addBlob(item, position);
  }

  /**
   * Fetches each image once and passes its bundle to `use`. Continues after a failure, except with images of an
   * unreachable registry; then throws all failures, each after `getContext` of its place.
   */
  async fetch(
    images: readonly TemplateImage[],
    use: UseBundle,
    getContext: (place: number) => string = () => '',
  ): Promise<void> {
    const byImage = groupBy(images.keys(), (place) => (images[place] as TemplateImage).image);
    const fetching = new ImageFetch(this.#options, use);
    const { logger = silentLogger } = this.#session;
    const task = `render ${this.#template.file}`;
    let fetched = 0;
    const report = (): void =>
      logger.progress({ task, state: 'update', current: fetched++, total: byImage.size, unit: 'items' });
    report();
    const fetchNext = ([image, places]: [string, number[]]): Promise<void> =>
      fetching.fetch(image, places as Places).finally(report);
    await mapConcurrent([...byImage], this.#options.concurrency ?? 8, fetchNext, this.#session).finally(() =>
      logger.progress({ task, state: 'done' }),
    );
    for (const [place, { code, message, hint }] of fetching.sortedFailures()) {
      this.fail((images[place] as TemplateImage).path, getContext(place) + message, hint, code);
    }
    await this.errors.throwIfAny();
  }

  fail(path: YamlPath, problem: string, hint?: string, code?: OpmateError['code']): void {
    this.errors.report(path, rendering + problem, hint, code);
  }
}

/** Fetches images and keeps their failures. */
class ImageFetch {
  readonly #options: TemplateRunOptions;
  readonly #use: UseBundle;
  readonly #failures = new Map<number, OpmateError>();
  readonly #unreachable = new Set<string>();

  constructor(options: TemplateRunOptions, use: UseBundle) {
    this.#options = options;
    this.#use = use;
  }

  async fetch(image: string, places: Places): Promise<void> {
    const reference = findReference(image);
    const registry = reference?.transport === 'docker' ? reference.registry : undefined;
    if (registry !== undefined && this.#unreachable.has(registry)) {
      const problem = `render reference ${quoteGo(image)}: skipped: ${registry} is unreachable`;
      this.#failures.set(places[0], new OpmateError('NETWORK', problem));
      return;
    }
    try {
      const blob = await this.#options.readBundle(image);
      const csvText = findCsvText(blob);
      await this.#use(migrateBundle(blob, this.#options.migrationLevel, csvText), csvText, places);
    } catch (error) {
      const failure = inReference(error, image);
      if (!(failure instanceof OpmateError) || failure instanceof CancelledError) throw failure;
      if (failure.code === 'NETWORK' && registry !== undefined) this.#unreachable.add(registry);
      this.#failures.set(places[0], failure);
    }
  }

  /** Returns the failures by their first place. */
  sortedFailures(): [number, OpmateError][] {
    return [...this.#failures].sort(([a], [b]) => a - b);
  }
}

/** Returns the path of a problem in its template; undefined if it is not about an entry. */
export function findEntryPath(
  entries: readonly { path: YamlPath }[],
  { origin, path = [] }: CatalogDiagnostic,
): YamlPath | undefined {
  const entry = origin === undefined ? undefined : entries[origin.offset];
  return entry === undefined ? undefined : [...entry.path, ...path];
}
