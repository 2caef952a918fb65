import { waitForCatalogs } from '../../api/served/wait-for-catalogs.js';
import { invalidValue } from '../../core/errors.js';
import { argument, defineCommand } from '../command/declaration.js';
import { parsed, text } from '../command/flags.js';
import { duration } from '../command/values.js';
import { useSession } from '../session.js';
import { findServed, serverFlags } from './server-state.js';

/** By name as users write it; `Ready` is Serving, as other objects call it. */
const conditions: Readonly<Record<string, 'Serving' | 'Progressing'>> = {
  Serving: 'Serving',
  Ready: 'Serving',
  Progressing: 'Progressing',
};
const states = ['True', 'False'] as const;

/** `opmate catalogs wait`. */
export const command = defineCommand({
  summary: 'wait until catalogs are served',
  arguments: [argument('[name...]', 'catalogs (default: all)')],
  flags: {
    for: text('condition', 'condition: Serving (or Ready) or Progressing, optionally =False', {
      default: 'Serving',
      group: 'Behavior',
    }),
    timeout: parsed('duration', 'maximum time to wait (default: 60s)', duration(), { group: 'Limits' }),
    ...serverFlags,
  },
  examples: {
    'Wait until all catalogs are served': 'opmate catalogs wait',
    'Wait up to two minutes for one catalog':
      'opmate catalogs wait demo --url http://127.0.0.1:8080 --timeout 2m',
  },
  async run({ context, args: [names], options }) {
    // kubectl wait has condition= in front.
    const [wanted = '', value = 'True'] = options.for.replace(/^condition=/, '').split('=');
    const condition = Object.hasOwn(conditions, wanted) ? conditions[wanted] : undefined;
    const state = states.find((item) => item === value);
    if (condition === undefined || state === undefined) {
      throw invalidValue('--for', options.for, 'not a condition', {
        hint: 'use Serving, Ready or Progressing',
      });
    }
    // Waiting asks again, within the time that is left.
    const attempts = { ...options, maxAttempts: options.maxAttempts ?? 1 };
    await useSession(context, attempts, (session) =>
      waitForCatalogs(() => findServed(context, options), session, {
        names,
        condition,
        state,
        timeoutMs: options.timeout,
      }),
    );
  },
});
