import { getMessage } from '../../core/errors.js';
import type { Logger } from '../../core/log.js';
import type { CatalogRecords } from './catalog-records.js';
import { type CatalogCondition, type CatalogRecord, withCondition } from './catalog-status.js';

/** A condition before it is dated. */
type Condition = Omit<CatalogCondition, 'lastTransitionTime'>;

/** The condition of a catalog that is served. */
export const served: Condition = {
  type: 'Serving',
  status: 'True',
  reason: 'Available',
  message: 'the catalog is served',
};
/** The condition of a catalog that nothing is known of yet. */
export const noContent: Condition = {
  type: 'Serving',
  status: 'False',
  reason: 'Unavailable',
  message: 'no content yet',
};

interface RecordOptions {
  /** Where records are written; they stay in memory where it is left out. */
  records: CatalogRecords | undefined;
  now: () => Date;
  logger: Logger;
  /** Fires once the catalog is no longer wanted: nothing is written from then on. */
  gone: AbortSignal;
}

/** The record of one catalog, which is written down after each change that a restart must know. */
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

  /** Whether the last attempt to write it succeeded. */
  get isWritten(): boolean {
    return this.#isWritten;
  }

  /** Changes fields, in memory only. */
  change(changes: Partial<CatalogRecord>): void {
    this.#value = { ...this.#value, ...changes };
  }

  /** Takes the place of the whole record, in memory only. */
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

  /** Writes the record. Never throws: a disk that takes nothing does not stop serving. */
  async write(): Promise<void> {
    const { records, logger, gone } = this.#options;
    if (records === undefined || gone.aborted) return;
    try {
      await records.write(this.#value);
      this.#isWritten = true;
    } catch (error) {
      const level = this.#isWritten ? 'warn' : 'debug';
      logger.log(level, `${getMessage(error)}; a restart will read it again`);
      this.#isWritten = false;
    }
  }
}
