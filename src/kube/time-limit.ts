import { Script, createContext } from 'node:vm';
import { systemCode } from '../core/errors.js';

const script = new Script('work()');

/**
 * Runs `work` and returns whether it finished within the limit. Also stops work without steps, such as a backtracking
 * regular expression. Throws what `work` throws.
 */
export function runWithin(maxMilliseconds: number, work: () => void): boolean {
  try {
    script.runInContext(createContext({ work }), { timeout: maxMilliseconds });
    return true;
  } catch (error) {
    if (systemCode(error) !== 'ERR_SCRIPT_EXECUTION_TIMEOUT') throw error;
    return false;
  }
}
