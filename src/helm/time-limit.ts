import { Script, createContext } from 'node:vm';
import { systemCode } from '../core/errors.js';

const script = new Script('work()');

/**
 * Runs `work` and returns whether it ended within the limit. Also ends what counts no steps, such as a regular
 * expression that backtracks. Throws what `work` throws.
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
