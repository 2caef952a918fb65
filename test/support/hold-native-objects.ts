/**
 * Tests read databases with better-sqlite3 itself, beside opmate. From Node.js 24.19 on, an object of its native
 * part that is collected at the wrong moment ends the process (see src/sqlite/schema/database.ts, which holds its own), so
 * those that tests make are held too.
 */
import type { Database } from 'better-sqlite3';

const held: object[] = [];
Object.assign(globalThis, { heldNativeObjects: held });

try {
  const { default: Sqlite } = await import('better-sqlite3');
  const prototype = Sqlite.prototype as Database;
  const prepare = Object.getOwnPropertyDescriptor(prototype, 'prepare')?.value as Database['prepare'];
  Object.assign(prototype, {
    prepare(this: Database, sql: string) {
      const statement = prepare.call(this, sql);
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
