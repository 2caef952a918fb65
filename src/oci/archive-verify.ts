import type { CancelOptions } from '../core/concurrency.js';
import { OpmateError } from '../core/errors.js';
import type { Logger } from '../core/log.js';

/** A fault of an archive set. */
export interface ArchiveFault {
  /** File of the part, or of the index. */
  file: string;
  /** The blob that is damaged, where one is. */
  digest?: string | undefined;
  message: string;
}

/** Reads every byte of an archive set and reports all that is damaged, missing or should not be there. */
export function verifyArchiveSet(
  directory: string,
  options: CancelOptions & { logger?: Logger },
): Promise<ArchiveFault[]> {
  throw new OpmateError('INTERNAL', `${directory}: not built yet`, { cause: options });
}
