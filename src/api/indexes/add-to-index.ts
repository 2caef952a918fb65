import { withOpen } from '../../core/concurrency.js';
import { constants } from 'node:fs';
import { access } from 'node:fs/promises';
import path from 'node:path';
import { addContext } from '../../core/diagnostics-error.js';
import { type OpmateError, throwFileError } from '../../core/errors.js';
import { groupBy } from '../../core/groups.js';
import { statIfPresent } from '../../files/file-status.js';
import { type StageOptions, stageBundles } from '../../source/bundles.js';
import type { Session } from '../../source/session.js';
import { type AddOptions, addBundles } from '../../sqlite/add/add.js';
import { BundleImageAlreadyAddedError } from '../../sqlite/add/already-added.js';
import { openDatabase } from '../../sqlite/schema/database.js';
import { type EditOptions, editDatabase } from '../../sqlite/schema/edit.js';

export { parseBundleReference, parsePullFrom } from '../../source/bundles.js';

/** Options of `addToIndex`. */
export interface AddToIndexOptions
  extends Omit<StageOptions, 'onFailure'>, Omit<AddOptions, 'mode' | 'logger' | 'signal'> {
  /** Default `replaces`. */
  mode?: AddOptions['mode'] | undefined;
}

/** Options for a database file, in addition to `AddToIndexOptions`. */
export interface AddToDatabaseOptions extends AddToIndexOptions, Pick<EditOptions, 'outputFile' | 'name'> {}

/** Bundles that were added, and with `permissive` those that were not. */
export interface AddedBundles {
  /** Names of bundles by package. */
  added: Map<string, string[]>;
  /** Errors of omitted bundles, each with the reference of its bundle. */
  failures: OpmateError[];
}

/**
 * Adds bundles (images, directories, layouts, archives) to the database file of an index, all of them or, unless
 * `permissive`, none. A missing database is created; without bundles it is migrated to the latest schema only. All
 * bundles are pulled and read before the transaction begins; when it fails, the database is as it was.
 *
 * Throws OpmateError with every bundle that cannot be added; UsageError where `outputFile` is the input.
 */
export async function addToIndex(
  file: string,
  references: readonly string[],
  session: Session,
  options: AddToDatabaseOptions = {},
): Promise<AddedBundles> {
  const { outputFile, name, pullFrom, requireDigest, concurrency, ...add } = options;
  const { logger, signal } = session;
  const edit = { outputFile, name, create: true };
  await checkDatabase(file, edit);
  const failures: OpmateError[] = [];
  const onFailure = add.permissive
    ? (_reference: string, error: OpmateError) => void failures.push(error)
    : undefined;
  return withOpen(
    stageBundles(references, session, { pullFrom, requireDigest, concurrency, onFailure }),
    async (stage) => {
      const report = await editDatabase(file, { ...edit, signal }, (database) =>
        addBundles(database, stage.bundles, { ...add, mode: add.mode ?? 'replaces', logger, signal }),
      );
      for (const { bundle, error } of report.failures) {
        const namesImage = error instanceof BundleImageAlreadyAddedError;
        failures.push(namesImage ? error : addContext(error, { subject: bundle.reference }));
      }
      const packages = new Map(stage.bundles.map(({ record }) => [record.name, record.packageName]));
      return { added: groupBy(report.added, (bundle) => packages.get(bundle) ?? ''), failures };
    },
  );
}

/** Checks before much is pulled that the database can be written. */
async function checkDatabase(file: string, { outputFile, name }: EditOptions): Promise<void> {
  const inPlace = outputFile === undefined;
  if ((await statIfPresent(file)) !== undefined) {
    await withOpen(openDatabase(file, { access: inPlace ? 'create' : 'read', name }), async (database) => {
      // Takes the lock for writing, and changes nothing.
      if (inPlace) await database.transaction(() => undefined);
    });
    if (inPlace) return;
  }
  const target = outputFile ?? file;
  await access(path.dirname(path.resolve(target)), constants.W_OK).catch(
    throwFileError(target, { file: target }),
  );
}
