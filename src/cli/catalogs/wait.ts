import { setTimeout as sleep } from 'node:timers/promises';
import { OpmateError, UsageError, getMessage, throwIfCancelled } from '../../core/errors.js';
import { argument, defineCommand } from '../command/declaration.js';
import { parsed, text } from '../command/flags.js';
import { milliseconds } from '../command/values.js';
import { useSession } from '../session.js';
import { findCondition, getName, readStatuses, serverFlags } from './server-state.js';

/** `opmate catalogs wait`: ends with 0 as soon as the catalogs, all of them unless named, have the condition. */
export const command = defineCommand({
  summary: 'wait until catalogs are served',
  arguments: [argument('[name...]', 'catalogs (default: all)')],
  flags: {
    for: text('condition', 'condition: Serving or Progressing, optionally =True or =False', {
      default: 'Serving',
      group: 'Behavior',
    }),
    timeout: parsed('duration', 'maximum time to wait (default: 60s)', milliseconds, { group: 'Limits' }),
    ...serverFlags,
  },
  examples: [
    ['Wait until all catalogs are served', 'opmate catalogs wait'],
    [
      'Wait at most two minutes for one',
      'opmate catalogs wait demo --url http://127.0.0.1:8080 --timeout 2m',
    ],
  ],
  async run({ context, args: [names], options }) {
    const [wanted, state = 'True'] = options.for.split('=');
    if (!['Serving', 'Progressing'].includes(wanted ?? '') || !['True', 'False'].includes(state)) {
      throw new UsageError(`--for ${options.for}: not a condition`, { hint: 'use Serving or Progressing' });
    }
    // The loop asks again, within the time that is left.
    const attempts = { ...options, maxAttempts: options.maxAttempts ?? 1 };
    return useSession(context, attempts, async (session) => {
      const until = context.now().getTime() + (options.timeout ?? 60_000);
      for (;;) {
        throwIfCancelled(context.signal);
        let missing: string;
        try {
          const all = await readStatuses(context, options, session);
          const waited = names.length === 0 ? all.map(getName) : names;
          const left = waited.filter((name) => {
            const status = all.find((value) => getName(value) === name);
            return status === undefined || findCondition(status, wanted as string)?.['status'] !== state;
          });
          if (waited.length > 0 && left.length === 0) return 0;
          missing =
            left.length === 0 ? 'there are no catalogs' : `${left.join(', ')}: not ${wanted}=${state}`;
        } catch (error) {
          // A server that has not begun yet is what one waits for.
          if (!(error instanceof OpmateError) || error.code === 'USAGE') throw error;
          missing = getMessage(error);
        }
        if (context.now().getTime() >= until) {
          throw new OpmateError('NOT_FOUND', `${missing} within the time`, {
            hint: 'run opmate catalogs status to see the reason, or increase --timeout',
          });
        }
        await sleep(200, undefined, { signal: context.signal }).catch(() => undefined);
      }
    });
  },
});
