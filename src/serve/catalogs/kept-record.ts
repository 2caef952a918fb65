import { getMessage } from '../../core/errors.js';
import type { Logger } from '../../core/log.js';
import type { CatalogRecords } from './catalog-records.js';
import { type CatalogCondition, type CatalogRecord, withCondition } from './catalog-status.js';

/** A condition without its date. */
type Condition = Omit<CatalogCondition, 'lastTransitionTime'>;

/** Condition of a served catalog. */
export const served: Condition = {
  type: 'Serving',
  status: 'True',
  reason: 'Available',
  message: 'the catalog is served',
};
/** Condition of a catalog without content. */
export const noContent: Condition = {
  type: 'Serving',
  status: 'False',
  reason: 'Unavailable',
  message: 'no content yet',
};

/** Returns the condition of a catalog that is up to date or being retried. */
export function progress(reason: 'Succeeded' | 'Retrying', message: string): Condition {
  return { type: 'Progressing', status: 'True', reason, message };
}

/** Returns the condition of a catalog that needs another manifest or content. */
export function blocked({ message }: { message: string }): Condition {
  return { type: 'Progressing', status: 'False', reason: 'Blocked', message };
}

interface RecordOptions {
  /** Storage of records; undefined keeps them in memory. */
  records: CatalogRecords | undefined;
  now: () => Date;
  logger: Logger;
  /** Aborted once the catalog is removed: nothing is written afterwards. */
  gone: AbortSignal;
}

/** Record of one catalog, written after each change that a restart needs. */
export class KeptRecord {
  #value: CatalogRecord;
  #isWritten = true;
  readonly #options: RecordOptions;

  constructor(value: CatalogRecord, options: RecordOptions) {
    this.#value = value;
    this.#options = options;
  }

  get value(): CatalogRecord {
    return this.#value;
  }

  /** The last write succeeded. */
  get isWritten(): boolean {
    return this.#isWritten;
  }

  /** Changes fields, in memory only. */
  change(changes: Partial<CatalogRecord>): void {
    this.#value = { ...this.#value, ...changes };
  }

  /** Replaces the whole record, in memory only. */
  replace(value: CatalogRecord): void {
    this.#value = value;
  }

  /** Sets a condition, in memory only. */
  setCondition(condition: Condition): void {
    const { now } = this.#options;
    this.change({ conditions: withCondition(this.#value.conditions, condition, now()) });
  }

  /** Sets conditions and writes the record. */
  async note(...conditions: Condition[]): Promise<void> {
    for (const condition of conditions) this.setCondition(condition);
    await this.write();
  }

  /** Writes the record. Never throws: a full disk does not stop serving. */
  async write(): Promise<void> {
    const { records, logger, gone } = this.#options;
    if (records === undefined || gone.aborted) return;
    try {
      await records.write(this.#value);
      this.#isWritten = true;
    } catch (error) {
      const level = this.#isWritten ? 'warn' : 'debug';
      logger.log(level, `${getMessage(error)}; a restart will read the catalog again`);
      this.#isWritten = false;
    }
  }
}
