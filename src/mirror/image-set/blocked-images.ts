import { type Context, Script, createContext } from 'node:vm';
import { OpmateError, systemCode } from '../../core/errors.js';
import { quoteGo } from '../../document/go-json.js';
import type { BlockedImageConfig } from './image-set-config.js';

/** Longest that the patterns together may look at one image. */
const maxMilliseconds = 2_000;

const script = new Script('patterns.findIndex((pattern) => texts.some((text) => pattern.test(text)))');

/**
 * The patterns of `blockedImages`. Some take longer than anyone lives to find that they do not match, and could not
 * even be interrupted: these are stopped.
 */
export class BlockedImages {
  readonly #configs: readonly BlockedImageConfig[];
  readonly #context: Context;

  constructor(configs: readonly BlockedImageConfig[]) {
    this.#configs = configs;
    this.#context = createContext({ patterns: configs.map(({ pattern }) => pattern), texts: [] });
  }

  /** The first pattern, as it is written, that matches one of the names. Throws OpmateError LIMIT. */
  patternFor(names: readonly string[]): string | undefined {
    if (this.#configs.length === 0) return undefined;
    this.#context['texts'] = names;
    try {
      const match = script.runInContext(this.#context, { timeout: maxMilliseconds }) as number;
      return this.#configs[match]?.name;
    } catch (error) {
      if (systemCode(error) !== 'ERR_SCRIPT_EXECUTION_TIMEOUT') throw error;
      const problem = `mirror.blockedImages: looking at ${quoteGo(names[0] ?? '')} takes too long`;
      const hint = 'use a pattern without nested repetition such as (a*)*';
      throw new OpmateError('LIMIT', problem, { hint, cause: error });
    }
  }
}
