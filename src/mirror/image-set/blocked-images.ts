import { Script, createContext } from 'node:vm';
import { OpmateError, systemCode } from '../../core/errors.js';
import { quoteGo } from '../../document/go-json.js';
import type { BlockedImageConfig } from './image-set-config.js';

/** Maximum time to match all patterns with one image. */
const maxMilliseconds = 2_000;

const script = new Script('patterns.findIndex((pattern) => texts.some((text) => pattern.test(text)))');

/**
 * Returns a function that finds the first pattern of `blockedImages`, as written, that matches one of the names of an
 * image; it throws OpmateError LIMIT. Patterns are matched in a context that can be interrupted: some would never end.
 */
export function createBlockedImages(
  configs: readonly BlockedImageConfig[],
): (names: readonly string[]) => string | undefined {
  const context = createContext({ patterns: configs.map(({ pattern }) => pattern), texts: [] });
  return (names) => {
    if (configs.length === 0) return undefined;
    context['texts'] = names;
    try {
      return configs[script.runInContext(context, { timeout: maxMilliseconds }) as number]?.name;
    } catch (error) {
      if (systemCode(error) !== 'ERR_SCRIPT_EXECUTION_TIMEOUT') throw error;
      throw new OpmateError('LIMIT', `matching ${quoteGo(names[0] ?? '')} takes too long`, {
        subject: 'mirror.blockedImages',
        hint: 'use a pattern without nested repetition such as (a*)*',
        cause: error,
      });
    }
  };
}
