import { cpuUsage } from 'node:process';
import { Script, createContext } from 'node:vm';
import { OpmateError, systemCode } from '../../core/errors.js';
import { quoteGo } from '../../document/go-json.js';
import type { BlockedImageConfig } from './image-set-config.js';

/** Maximum processor time to match one pattern with one image; on a busy machine it takes longer. */
const defaultMilliseconds = 2_000;
/** Maximum time for that, as a multiple. */
const maxFactor = 32;

const script = new Script('patterns.findIndex((pattern) => texts.some((text) => pattern.test(text)))');

/**
 * Returns a function that finds the first pattern of `blockedImages`, as written, that matches one of the names of an
 * image; it throws OpmateError LIMIT. Patterns are matched in a context that can be interrupted: some would never end.
 */
export function createBlockedImages(
  configs: readonly BlockedImageConfig[],
  { maxMilliseconds = defaultMilliseconds }: { maxMilliseconds?: number } = {},
): (names: readonly string[]) => string | undefined {
  const context = createContext({ patterns: [], texts: [] });

  /** Returns the index of the first matching pattern, -1 for none; undefined after the time limit. */
  const match = (
    patterns: readonly RegExp[],
    names: readonly string[],
    timeout = maxMilliseconds,
  ): number | undefined => {
    Object.assign(context, { patterns, texts: names });
    try {
      return script.runInContext(context, { timeout }) as number;
    } catch (error) {
      if (systemCode(error) !== 'ERR_SCRIPT_EXECUTION_TIMEOUT') throw error;
      return undefined;
    }
  };

  /** Matches one pattern until it has used its processor time; the context measures elapsed time. */
  const matchAlone = ({ pattern, name }: BlockedImageConfig, names: readonly string[]): boolean => {
    for (let factor = 1; factor <= maxFactor; factor *= 2) {
      const before = cpuUsage();
      const index = match([pattern], names, factor * maxMilliseconds);
      if (index !== undefined) return index === 0;
      const { user, system } = cpuUsage(before);
      if ((user + system) / 1000 >= 0.9 * maxMilliseconds) break;
    }
    throw new OpmateError('LIMIT', `matching ${quoteGo(names[0] ?? '')} takes too long`, {
      subject: `mirror.blockedImages: ${quoteGo(name)}`,
      hint: 'use a pattern without nested repetition such as (a*)*',
    });
  };

  return (names) => {
    if (configs.length === 0) return undefined;
    const index = match(
      configs.map(({ pattern }) => pattern),
      names,
    );
    if (index !== undefined) return configs[index]?.name;
    return configs.find((config) => matchAlone(config, names))?.name;
  };
}
