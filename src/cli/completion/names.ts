import { findNames } from '../../api/selection/find-names.js';
import type { CancelOptions } from '../../core/concurrency.js';
import { sortedByBytes } from '../../core/order.js';
import type { CommandContext } from '../context.js';
import { recalledNames } from './cache.js';
import type { WantedName } from './words.js';

/** Matches printable names that need no quotes in a shell. */
const plainName = /^[A-Za-z0-9][A-Za-z0-9._-]{0,252}$/;

/**
 * Returns completions of a name, sorted, from directories, databases, served catalogs and cached names of images. Skips
 * unreadable catalogs and those not read before `signal` fires. Never throws.
 */
export async function namesFor(
  wanted: WantedName,
  context: CommandContext,
  { signal }: CancelOptions,
): Promise<string[]> {
  const names = new Set<string>();
  const add = (name: string): void => {
    if (plainName.test(name) && name.startsWith(wanted.typed)) names.add(name);
  };
  for (const reference of wanted.catalogs) {
    try {
      await addNames(reference, wanted, add, context, signal);
    } catch {
      // Errors are reported when the command runs.
    }
  }
  return sortedByBytes(names);
}

async function addNames(
  reference: string,
  { kind, packages }: WantedName,
  onName: (name: string) => void,
  context: CommandContext,
  signal: AbortSignal | undefined,
): Promise<void> {
  // Some options take NAME=REFERENCE, or settings after a comma.
  const plain = reference.replace(/^[A-Za-z0-9._-]+=/, '').replace(/,.*$/s, '');
  for (const name of new Set([reference, plain])) {
    if (await findNames(name, { kind, packages, onName, signal }, context)) return;
    const recalled = await recalledNames(context, name);
    for (const [packageName, channels] of recalled ?? []) {
      if (kind === 'package') onName(packageName);
      else if (packages.length === 0 || packages.includes(packageName)) channels.forEach(onName);
    }
  }
}
