import { addContext } from '../../core/diagnostics-error.js';
import { UsageError } from '../../core/errors.js';
import { quoteGo } from '../../core/go-json-quote.js';
import { longName } from '../command/command-line.js';
import type { LoadedCommands } from '../command/declaration.js';
import type { Flags } from '../command/flags.js';
import { registryFlags } from '../command/global-flags.js';
import { flagsWithoutEffect, mirrorFlags } from './flags.js';

/** Global flags that a pod needs no file for. */
const passed: readonly string[] = ['useHttp', 'skipTls', 'skipTlsVerify'];

/** Returns the global flags of a schedule that its runs get too. */
export function getPassedFlags({
  useHttp,
  skipTls,
  skipTlsVerify,
}: {
  useHttp?: boolean | undefined;
  skipTls?: boolean | undefined;
  skipTlsVerify?: boolean | undefined;
}): string[] {
  return [
    ...(useHttp === true || skipTls === true ? ['--use-http'] : []),
    ...(skipTlsVerify === true ? ['--skip-tls-verify'] : []),
  ];
}

/** Throws UsageError for a flag of `opmate mirror` or for registries that the runs would not get; `own` are of the schedule. */
export function refuseDropped(options: object, own: readonly string[]): void {
  const kept = new Set([...own, ...passed, ...flagsWithoutEffect, 'v2']);
  const values = new Map<string, unknown>(Object.entries(options));
  const flags: Flags = { ...registryFlags, ...mirrorFlags };
  for (const [key, flag] of Object.entries(flags)) {
    const value = values.get(key);
    if (kept.has(key) || value === undefined || value === (flag.default ?? false)) continue;
    const name = longName(key);
    throw new UsageError(`${name}: not a flag of the schedule`, { hint: hintFor(key, name, flag.value) });
  }
}

function hintFor(key: string, name: string, value: string | undefined): string {
  if (['authfile', 'registryConfig'].includes(key))
    return 'create a Secret of it, and name that with --secret';
  const isFile = value !== undefined && /^<(?:file|directory|archive)>$/.test(value);
  return isFile
    ? `mount it in the pods, and use --run-flag=${name}=PATH`
    : `use --run-flag=${name}${value === undefined ? '' : '=VALUE'}`;
}

/** Throws UsageError for arguments of a run that `opmate mirror` refuses, or that need a terminal. */
export async function checkRun(words: readonly string[], commands: LoadedCommands): Promise<void> {
  try {
    const { args, options } = await commands.check(words);
    const [, extra] = args[0] as readonly string[];
    if (extra !== undefined) {
      throw new UsageError(`${quoteGo(extra)} is not a flag`, { hint: 'use --run-flag=--NAME=VALUE' });
    }
    if (options['prune'] !== undefined && options['yes'] !== true) {
      const hint = 'add --run-flag=--yes';
      throw new UsageError('--prune needs --yes: a pod has no terminal to confirm', { hint });
    }
  } catch (error) {
    if (!(error instanceof UsageError)) throw error;
    throw addContext(error, { subject: '--run-flag' });
  }
}
