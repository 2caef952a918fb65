import { LimitError } from '../../core/errors.js';
import { runWithin } from '../time-limit.js';

const maxMilliseconds = 1000;

/** Matches a text, which may backtrack without end. Throws LimitError at the time limit. */
export function execWithin(pattern: RegExp, text: string): RegExpExecArray | null {
  let result: RegExpExecArray | null = null;
  const isDone = runWithin(maxMilliseconds, () => {
    result = pattern.exec(text);
  });
  if (!isDone) throw new LimitError(`pattern timed out after ${maxMilliseconds} ms`);
  return result;
}
