import { type Context, Script, createContext } from 'node:vm';
import { OpmateError, systemCode } from '../../core/errors.js';
import { quoteGo } from '../../document/go-json.js';
import type { BlockedImageConfig } from './image-set-config.js';

/** Maximum time to match all patterns with one image. */
const maxMilliseconds = 2_000;

const script = new Script('patterns.findIndex((pattern) => texts.some((text) => pattern.test(text)))');

/** The patterns of `blockedImages`, matched in a context that can be interrupted: some would never end. */
export class BlockedImages {
  readonly #configs: readonly BlockedImageConfig[];
  readonly #context: Context;

  constructor(configs: readonly BlockedImageConfig[]) {
    this.#configs = configs;
    this.#context = createContext({ patterns: configs.map(({ pattern }) => pattern), texts: [] });
  }

  /** Returns the first pattern, as written, that matches one of the names. Throws OpmateError LIMIT. */
  findMatch(names: readonly string[]): string | undefined {
    if (this.#configs.length === 0) return undefined;
    this.#context['texts'] = names;
    try {
      const match = script.runInContext(this.#context, { timeout: maxMilliseconds }) as number;
      return this.#configs[match]?.name;
    } catch (error) {
      if (systemCode(error) !== 'ERR_SCRIPT_EXECUTION_TIMEOUT') throw error;
      throw new OpmateError('LIMIT', `matching ${quoteGo(names[0] ?? '')} takes too long`, {
        subject: 'mirror.blockedImages',
        hint: 'use a pattern without nested repetition such as (a*)*',
        cause: error,
      });
    }
  }
}
