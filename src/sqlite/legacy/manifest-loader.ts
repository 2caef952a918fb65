import { addContext } from '../../core/diagnostics-error.js';
import type { Bundle } from '../../bundle/parse.js';
import type { PackageManifest } from '../../bundle/package-manifests.js';
import type { CancelOptions } from '../../core/concurrency.js';
import { OpmateError, throwIfCancelled } from '../../core/errors.js';
import { type Logger, silentLogger } from '../../core/log.js';
import { compareBytes } from '../../core/order.js';
import type { LinkOptions } from '../../files/directory-root.js';
import { toRecord } from '../schema/bundle-record.js';
import type { Database } from '../schema/database.js';
import { withIndexes } from '../schema/helper-indexes.js';
import { insertBundle } from '../schema/insert-bundle.js';
import { writePackageChannels } from '../schema/package-channels.js';

/** What loading manifests needs of a session. */
export interface LoadSession extends CancelOptions, LinkOptions {
  logger?: Logger | undefined;
}

/** How manifests that belong to no bundle image are loaded. */
export interface LoadOptions {
  /** How messages name where the manifests are. */
  label?: string | undefined;
  /** Keep what is right, and report the rest. */
  permissive?: boolean | undefined;
}

/** What was loaded. */
export interface LoadReport {
  /** Names of the bundles, in the order in which they were added. */
  bundles: string[];
  /** Sorted. */
  packages: string[];
  /** With `permissive`: what is wrong; the bundles and packages that it is about may be missing. */
  problems: OpmateError[];
}

/** Manifests that cannot be loaded, with everything that is wrong with them. */
export class ManifestsError extends OpmateError {
  override readonly name: string = 'ManifestsError';
  readonly problems: readonly OpmateError[];

  constructor(label: string, problems: readonly OpmateError[]) {
    const first = problems[0] as OpmateError;
    const { hint, file, line, cause } = first;
    if (problems.length === 1) super(first.code, first.message, { hint, file, line, cause });
    else {
      super('INVALID', `error loading manifests from ${label}: ${problems.length} problems`, {
        hint: 'fix them, or add --permissive to load the rest',
        cause: first,
      });
    }
    this.problems = problems;
  }
}

/**
 * Puts bundles without images and then their packages into a database, in the caller's transaction. Each
 * bundle and each package is there wholly or not at all.
 */
export class ManifestLoader {
  readonly #database: Database;
  readonly #session: LoadSession;
  readonly #isPermissive: boolean;
  readonly #label: string;
  /** Where each bundle was found that was added, by its name. */
  readonly #bundles = new Map<string, string>();
  readonly #problems: OpmateError[] = [];
  readonly #packages: PackageManifest[] = [];

  constructor(database: Database, label: string, session: LoadSession, { permissive = false }: LoadOptions) {
    this.#database = database;
    this.#label = label;
    this.#session = session;
    this.#isPermissive = permissive;
  }

  addProblem(error: OpmateError): void {
    this.#problems.push(error);
  }

  addSkipped(file: string, reason: string): void {
    const level = /\.(?:ya?ml|json)$/i.test(file) ? 'warn' : 'debug';
    (this.#session.logger ?? silentLogger).log(level, `${file}: passed over: ${reason}`);
  }

  async addBundle(bundle: Bundle, subject: string): Promise<void> {
    throwIfCancelled(this.#session.signal);
    await this.#tried(async () => {
      const { record, manifests } = toRecord(bundle, '', subject);
      if (record.substitutesFor !== '') {
        throw new OpmateError('INVALID', 'SubstitutesFor is an alpha-only feature', {
          subject,
          file: subject,
          hint: 'add the bundle with opmate registry add --enable-alpha, or remove the annotation olm.substitutesFor',
        });
      }
      const earlier = this.#bundles.get(record.name);
      if (earlier !== undefined) {
        const problem = `failed to add bundle "${record.name}": it is also in ${earlier}`;
        throw new OpmateError('INVALID', problem, {
          subject,
          file: subject,
          hint: 'keep one of the two, or rename one',
        });
      }
      await this.#database.transaction(() => insertBundle(this.#database, record, manifests));
      this.#bundles.set(record.name, subject);
    }, subject);
  }

  /** Takes a package; it is written by `finish`, when all bundles are there. */
  addPackage(manifest: PackageManifest): void {
    this.#packages.push(manifest);
  }

  /**
   * Writes the packages. Throws ManifestsError with everything that is wrong, also what was added as a
   * problem, unless the load is permissive.
   */
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
    const problems = this.#problems;
    if (problems.length > 0 && !this.#isPermissive) throw new ManifestsError(this.#label, problems);
    return { bundles: [...this.#bundles.keys()], packages: written, problems };
  }

  /** Each package once, sorted; of several manifests the last counts, as for `opm`, but that is a problem. */
  #distinctPackages(): PackageManifest[] {
    const byName = new Map<string, PackageManifest>();
    for (const manifest of [...this.#packages].sort((a, b) => compareWalk(a.file, b.file))) {
      const { packageName, file } = manifest;
      const earlier = byName.get(packageName);
      byName.set(packageName, manifest);
      if (earlier === undefined || getContent(earlier) === getContent(manifest)) continue;
      this.#problems.push(
        new OpmateError(
          'INVALID',
          `package ${JSON.stringify(packageName)} is also in ${earlier.file}, with other content`,
          { subject: file, file, hint: 'keep one of these files' },
        ),
      );
    }
    return [...byName.values()].sort((a, b) => compareBytes(a.packageName, b.packageName));
  }

  /** Runs one part of the work; when its input is at fault, that is a problem of this part alone. */
  async #tried(work: () => Promise<void>, subject: string): Promise<void> {
    try {
      await work();
    } catch (error) {
      // A full disk or a damaged database ends the transaction, or is no fault of the input.
      const own = error instanceof OpmateError && ['INVALID', 'SYNTAX', 'UNSUPPORTED'].includes(error.code);
      if (!own || !this.#database.inTransaction) throw error;
      this.#problems.push(
        error.file === undefined ? addContext(error, { subject, file: subject, line: error.line }) : error,
      );
    }
  }
}

/** Files in the order of a walk through directories, which is not that of their paths as text. */
function compareWalk(a: string, b: string): number {
  return compareBytes(a.replaceAll('/', '\0'), b.replaceAll('/', '\0'));
}

function getContent({ channels, defaultChannel }: PackageManifest): string {
  return JSON.stringify([channels, defaultChannel]);
}
