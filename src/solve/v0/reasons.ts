import type { NamespaceState, SubscriptionState } from './namespace-state.js';
import type { ChosenEntry } from './resolve.js';
import { isSameCatalogKey } from './sources.js';
import { type Variable, bundleId } from './variables.js';

/** Returns for chosen bundles, by identifier, which bundles require them, each with what it requires. */
export function findRequirers(chosen: readonly Variable[]): Map<string, { name: string; text: string }[]> {
  const ids = new Set(chosen.map(({ id }) => id));
  const requirers = new Map<string, { name: string; text: string }[]>();
  for (const { entry, constraints } of chosen) {
    if (entry === undefined) continue;
    for (const constraint of constraints) {
      if (constraint.kind !== 'dependency') continue;
      const id = constraint.candidates.find((candidate) => ids.has(candidate));
      if (id === undefined || id === bundleId(entry)) continue;
      const list = requirers.get(id) ?? [];
      const text = constraint.text.slice(`bundle ${entry.name} requires an operator `.length);
      if (!list.some(({ name, text: known }) => name === entry.name && known === text))
        list.push({ name: entry.name, text });
      requirers.set(id, list);
    }
  }
  return requirers;
}

/** Returns why a bundle is installed, in the words of the graph. */
export function describeInstall(
  state: NamespaceState,
  { entry, replaces }: ChosenEntry,
  requirers: readonly { name: string; text: string }[],
): string {
  const subscription = state.subscriptions.find((candidate) => isFor(candidate, entry));
  if (subscription === undefined) {
    const [first] = requirers;
    return first === undefined ? 'required' : `${first.name} requires an operator ${first.text}`;
  }
  const place = `Subscription ${subscription.name}, channel ${entry.channel}`;
  const current = state.csvs.find(({ name }) => name === subscription.installedCsv);
  if (current === undefined)
    return entry.name === subscription.startingCsv
      ? `${place}: startingCSV`
      : `${place}: head of the channel`;
  if (replaces !== current.name) return place;
  const edge =
    entry.replaces === current.name
      ? 'replaces'
      : entry.skips.includes(current.name)
        ? 'skips'
        : 'skipRange contains';
  return `${place}: ${edge} ${current.name}`;
}

function isFor(subscription: SubscriptionState, entry: ChosenEntry['entry']): boolean {
  const { channel, source, sourceNamespace } = subscription;
  if (subscription.package !== entry.package || (channel !== '' && channel !== entry.channel)) return false;
  if (source === '' && sourceNamespace === '') return true;
  return isSameCatalogKey({ name: source, namespace: sourceNamespace }, entry.catalog);
}
