import Sqlite from 'better-sqlite3';

/** The rows of a query on a database file, each a list of its columns, read without opmate. */
export function readRows(file: string, sql: string): unknown[][] {
  const database = new Sqlite(file, { readonly: true });
  try {
    return database.prepare(sql).raw().all() as unknown[][];
  } finally {
    database.close();
  }
}
