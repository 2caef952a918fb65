import { addContext } from '../../core/diagnostics-error.js';
import type { Bundle } from '../../bundle/parse.js';
import { type PackageManifest, readPackageManifests } from '../../bundle/package-manifests.js';
import type { CancelOptions } from '../../core/concurrency.js';
import { OpmateError, throwIfCancelled } from '../../core/errors.js';
import { type Logger, silentLogger } from '../../core/log.js';
import { compareBytes } from '../../core/order.js';
import type { LinkOptions } from '../../files/directory-root.js';
import { toBundleRecord } from '../schema/bundle-record.js';
import type { Database } from '../schema/database.js';
import { withIndexes } from '../schema/helper-indexes.js';
import { insertBundle } from '../schema/insert-bundle.js';
import { writePackageChannels } from '../schema/package-channels.js';

/** Session of loading manifests. */
export interface LoadSession extends CancelOptions, LinkOptions {
  logger?: Logger | undefined;
}

/** Options for manifests without a bundle image. */
export interface LoadOptions {
  /** Origin of the manifests in messages. */
  label?: string | undefined;
  /** Keep valid content, and report the rest. */
  permissive?: boolean | undefined;
}

/** Loaded content. */
export interface LoadReport {
  /** Names of the bundles, in order of addition. */
  bundles: string[];
  /** Package names, sorted. */
  packages: string[];
  /** With `permissive`: all problems; their bundles and packages may be missing. */
  problems: OpmateError[];
}

/** Manifests cannot be loaded; has all problems. */
export class ManifestsError extends OpmateError {
  override readonly name: string = 'ManifestsError';
  readonly problems: readonly OpmateError[];

  constructor(label: string, problems: readonly OpmateError[]) {
    const first = problems[0] as OpmateError;
    const { hint, file, line, cause } = first;
    if (problems.length === 1) super(first.code, first.message, { hint, file, line, cause });
    else {
      super('INVALID', `error loading manifests from ${label}: ${problems.length} problems`, {
        hint: 'fix them, or add options.permissive to load the rest',
        cause: first,
      });
    }
    this.problems = problems;
  }
}

/**
 * Adds bundles without images, then their packages, to a database in the caller's transaction. Each bundle and
 * package is added completely or not at all.
 */
export class ManifestLoader {
  readonly #database: Database;
  readonly #session: LoadSession;
  readonly #isPermissive: boolean;
  readonly #label: string;
  /** Place of each added bundle, by name. */
  readonly #bundles = new Map<string, string>();
  readonly problems: OpmateError[] = [];
  /** Packages, which `finish` writes when all bundles exist. */
  readonly packages: PackageManifest[] = [];

  constructor(database: Database, label: string, session: LoadSession, { permissive = false }: LoadOptions) {
    this.#database = database;
    this.#label = label;
    this.#session = session;
    this.#isPermissive = permissive;
  }

  addSkipped(file: string, reason: string): void {
    const level = /\.(?:ya?ml|json)$/i.test(file) ? 'warn' : 'debug';
    (this.#session.logger ?? silentLogger).log(level, `${file}: skipped: ${reason}`);
  }

  async addBundle(bundle: Bundle, subject: string): Promise<void> {
    throwIfCancelled(this.#session.signal);
    await this.#tried(async () => {
      const { record, manifests } = toBundleRecord(bundle, '', subject);
      if (record.substitutesFor !== '') {
        throw new OpmateError('INVALID', 'SubstitutesFor is an alpha-only feature', {
          about: subject,
          hint: 'add the bundle with api.editIndex add options.enableAlpha, or remove the annotation olm.substitutesFor',
        });
      }
      const earlier = this.#bundles.get(record.name);
      if (earlier !== undefined) {
        const problem = `failed to add bundle "${record.name}": it is also in ${earlier}`;
        throw new OpmateError('INVALID', problem, {
          about: subject,
          hint: 'keep one of the two, or rename one',
        });
      }
      await this.#database.transaction(() => insertBundle(this.#database, record, manifests));
      this.#bundles.set(record.name, subject);
    }, subject);
  }

  /** Writes the packages. Throws ManifestsError with all problems, including registered ones, unless permissive. */
  async finish(): Promise<LoadReport> {
    const packages = this.#distinctPackages();
    const written: string[] = [];
    await withIndexes(this.#database, 'entries', async () => {
      for (const { packageName, channels, defaultChannel, file } of packages) {
        throwIfCancelled(this.#session.signal);
        await this.#tried(async () => {
          await writePackageChannels(this.#database, { packageName, channels, defaultChannel });
          written.push(packageName);
        }, file);
      }
    });
    const { problems } = this;
    if (problems.length > 0 && !this.#isPermissive) throw new ManifestsError(this.#label, problems);
    return { bundles: [...this.#bundles.keys()], packages: written, problems };
  }

  /**
   * Returns packages without duplicates, sorted; the last manifest takes precedence, as in `opm`, and the duplicate
   * is reported.
   */
  #distinctPackages(): PackageManifest[] {
    const byName = new Map<string, PackageManifest>();
    for (const manifest of [...this.packages].sort((a, b) => compareWalk(a.file, b.file))) {
      const { packageName, file } = manifest;
      const earlier = byName.get(packageName);
      byName.set(packageName, manifest);
      if (earlier === undefined || getContent(earlier) === getContent(manifest)) continue;
      this.problems.push(
        new OpmateError(
          'INVALID',
          `package ${JSON.stringify(packageName)} is also in ${earlier.file}, with other content`,
          { about: file, hint: 'keep one of these files' },
        ),
      );
    }
    return [...byName.values()].sort((a, b) => compareBytes(a.packageName, b.packageName));
  }

  /** Runs one part of the work; errors of its input are problems of this part alone. */
  async #tried(work: () => Promise<void>, subject: string): Promise<void> {
    try {
      await work();
    } catch (error) {
      // A full disk or damaged database ends the transaction, or is no fault of the input.
      const own = error instanceof OpmateError && ['INVALID', 'SYNTAX', 'UNSUPPORTED'].includes(error.code);
      if (!own || !this.#database.inTransaction) throw error;
      this.problems.push(
        error.file === undefined ? addContext(error, { subject, file: subject, line: error.line }) : error,
      );
    }
  }
}

/**
 * Loads a tree of package manifests: its bundles, which have no image, then its packages. Runs in the caller's
 * transaction. Throws ManifestsError with all problems unless permissive, and as reading the tree.
 */
export async function loadPackageManifests(
  database: Database,
  directory: string,
  session: LoadSession = {},
  options: LoadOptions = {},
): Promise<LoadReport> {
  const { label = directory } = options;
  const loader = new ManifestLoader(database, label, session, options);
  await loadManifestTree(loader, directory, label, session);
  return loader.finish();
}

/** Passes the content of a tree to a loader. */
export async function loadManifestTree(
  loader: ManifestLoader,
  directory: string,
  label: string,
  { signal, followLinks }: LoadSession,
): Promise<void> {
  for await (const item of readPackageManifests(directory, { label, signal, followLinks })) {
    if (item.kind === 'bundle') await loader.addBundle(item.bundle, item.file);
    else if (item.kind === 'package') loader.packages.push(item.manifest);
    else if (item.kind === 'problem') loader.problems.push(item.error);
    else loader.addSkipped(item.file, item.reason);
  }
}

/** Compares paths in directory walk order, which differs from text order. */
function compareWalk(a: string, b: string): number {
  return compareBytes(a.replaceAll('/', '\0'), b.replaceAll('/', '\0'));
}

function getContent({ channels, defaultChannel }: PackageManifest): string {
  return JSON.stringify([channels, defaultChannel]);
}
