import { decodeMeta } from '../../catalog/blob.js';
import { type IndexTree, removePackageDirectory, replacePackage } from '../../catalog/image/index-edit.js';
import type { Meta } from '../../catalog/meta.js';
import { withOpen } from '../../core/concurrency.js';
import { type EncodableBlob, encodeBlob } from '../../model/encode.js';
import { migrateBundle } from '../../model/migrations.js';
import type { Session } from '../../source/session.js';
import { openSqliteCatalog } from '../../sqlite/read/catalog.js';
import { removePackages } from '../../sqlite/remove/remove.js';
import type { Database } from '../../sqlite/schema/database.js';
import { editDatabase } from '../../sqlite/schema/edit.js';

/** Database of packages that index builds keep beside the catalog. (Source: release-engineering/iib.) */
export const hiddenDatabase = 'var/lib/iib/_hidden/do.not.edit.db';

/** Changes the hidden database of an unpacked index in one transaction. */
export function editHiddenDatabase<R>(
  file: string,
  { signal }: Session,
  change: (database: Database) => R | Promise<R>,
): Promise<R> {
  return editDatabase(file, { name: hiddenDatabase, signal }, change);
}

/** Removes packages from the hidden database; returns those that it had. */
export async function removeFromDatabase(
  file: string | undefined,
  names: readonly string[],
  session: Session,
): Promise<string[]> {
  if (file === undefined) return [];
  return editHiddenDatabase(file, session, async (database) => {
    const known = getPackageNames(database);
    const wanted = names.filter((name) => known.includes(name));
    if (wanted.length > 0) await removePackages(database, wanted, session);
    return wanted;
  });
}

/** Returns the packages of the hidden database. */
export function listDatabasePackages(file: string, session: Session): Promise<string[]> {
  return editHiddenDatabase(file, session, getPackageNames);
}

const getPackageNames = (database: Database): string[] =>
  database.all<{ name: string }>('SELECT name FROM package').map(({ name }) => name);

/** Writes packages of the hidden database to the catalog, and removes those that the database no longer has. */
export async function renderDatabasePackages(
  tree: IndexTree,
  file: string,
  packages: ReadonlySet<string>,
  migrationLevel: string,
  session: Session,
): Promise<void> {
  const stored = new Set(await listDatabasePackages(file, session));
  for (const name of packages) if (!stored.has(name)) await removePackageDirectory(tree, name);
  const { logger, signal } = session;
  await withOpen(openSqliteCatalog(file, session, { name: hiddenDatabase }), async (catalog) => {
    const metas = catalog.metas({ packages, logger, signal });
    let next = await metas.next();
    while (next.done !== true) {
      const { value: first } = next;
      const owner = getOwner(first);
      await replacePackage(tree, owner, async (handle) => {
        while (next.done !== true && getOwner(next.value) === owner) {
          await handle.writeFile(encodeBlob(migrateBlob(next.value, migrationLevel), 'json'));
          next = await metas.next();
        }
      });
    }
  });
}

const getOwner = (meta: Meta): string => meta.package;

function migrateBlob(meta: Meta, level: string): EncodableBlob {
  const decoded = decodeMeta(meta);
  return decoded.kind === 'bundle' ? { ...decoded, blob: migrateBundle(decoded.blob, level) } : decoded;
}
