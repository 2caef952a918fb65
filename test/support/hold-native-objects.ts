/**
 * Tests read databases with better-sqlite3 itself, beside opmate. From Node.js 24.19 on, an object of its native
 * part that is collected at the wrong moment ends the process (see src/sqlite/schema/database.ts, which holds its own), so
 * those that tests make are held too.
 */
import type { Database } from 'better-sqlite3';

const world = globalThis as { heldNativeObjects?: object[] };

// Files that share a worker share what was changed for the first of them.
if (world.heldNativeObjects === undefined) {
  const held = (world.heldNativeObjects = []);
  await holdNativeObjects(held);
}

async function holdNativeObjects(held: object[]): Promise<void> {
  try {
    const { default: Sqlite } = await import('better-sqlite3');
    const prototype = Sqlite.prototype as Database;
    const prepare = Object.getOwnPropertyDescriptor(prototype, 'prepare')?.value as Database['prepare'];
    Object.assign(prototype, {
      prepare(this: Database, sql: string) {
        const statement = prepare.call(this, sql);
        const iterate = statement.iterate.bind(statement) as (
          ...values: unknown[]
        ) => IterableIterator<unknown>;
        statement.iterate = (...values: unknown[]) => {
          const rows = iterate(...values);
          held.push(rows);
          return rows;
        };
        held.push(this, statement);
        return statement;
      },
      pragma(this: Database, source: string, { simple = false } = {}) {
        const statement = this.prepare(`PRAGMA ${source}`);
        if (!statement.reader) return statement.run();
        return simple ? statement.pluck().get() : statement.all();
      },
    });
  } catch {
    // Built for another Node.js: the tests that need it say so.
  }
}
