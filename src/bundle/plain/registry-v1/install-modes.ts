import { sortedByBytes } from '../../../core/order.js';
import type { ClusterServiceVersion } from '../../../kube/csv-types.js';

/** Returns the supported install modes, sorted. */
export function supportedModes(csv: ClusterServiceVersion): string[] {
  const modes = csv.spec.installModes ?? [];
  return sortedByBytes(new Set(modes.filter(({ supported }) => supported).map(({ type }) => type)));
}

/** Returns the default namespaces to watch: all if supported, otherwise none. */
export function defaultTargets(modes: readonly string[]): string[] {
  return modes.includes('AllNamespaces') ? [''] : [];
}

/**
 * Returns the reason why an operator cannot watch these namespaces, in the words of operator-controller. One empty name
 * stands for all namespaces.
 */
export function targetsFault(
  modes: readonly string[],
  installNamespace: string,
  targets: readonly string[],
): string | undefined {
  const set = new Set(targets);
  const refuse = (reason: string): string =>
    `invalid option(s): invalid target namespaces [${targets.join(' ')}]: ${reason}`;
  const supported = `supported install modes [${modes.join(' ')}] do not support`;
  const [first] = targets;
  if (first === undefined) {
    const amount = modes.includes('MultiNamespace') ? 'at least' : 'exactly';
    return refuse(`${amount} one target namespace must be specified`);
  }
  if (set.size === 1 && first === '') {
    return modes.includes('AllNamespaces') ? undefined : refuse(`${supported} targeting all namespaces`);
  }
  if (set.size === 1 && first === installNamespace) {
    return modes.includes('OwnNamespace') ? undefined : refuse(`${supported} targeting own namespace`);
  }
  const needed =
    set.size === 1
      ? ['SingleNamespace']
      : ['MultiNamespace', ...(set.has(installNamespace) ? ['OwnNamespace'] : [])];
  if (needed.every((mode) => modes.includes(mode)) && !set.has('')) return undefined;
  return refuse(`${supported} target namespaces [${sortedByBytes(set).join(' ')}]`);
}
