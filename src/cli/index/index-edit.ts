import type { Logger } from '../../core/log.js';
import type { Database } from '../../sqlite/schema/database.js';
import type { CommandSession } from '../session.js';

/** Change of an index in one transaction. */
export interface IndexEdit<R> {
  change(database: Database, session: CommandSession): R | Promise<R>;
  /** Logs the result; `name` is that of the database or index. */
  report(logger: Logger, name: string, result: R): void;
}
