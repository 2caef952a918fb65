import { LimitError } from '../../core/errors.js';
import type { NamespaceState, SubscriptionState } from '../v0/namespace-state.js';
import { predictNamespace, predictionLimits } from '../v0/predict.js';
import { describeInstall, findRequirers } from '../v0/reasons.js';
import { bundleId } from '../v0/variables.js';
import type { ChannelSwitch, HopInstall, OperatorNamespace, UpgradeCatalog } from './upgrade-types.js';

/** Maximum rounds of a namespace: a channel without skips is walked bundle by bundle. */
const maxRounds = 200;

/** Course of a namespace: its end, and the bundles that OLM installs on the way. */
export interface Course {
  end: OperatorNamespace;
  installs: HopInstall[];
  /** Reason why OLM installs nothing more. */
  failure: string | undefined;
}

/** Changes before a namespace is followed, and its end. */
interface CourseRequest {
  phase: HopInstall['phase'];
  /** Channels to set, by Subscription. */
  channels: ReadonlyMap<string, ChannelSwitch>;
  /** Subscriptions whose package or channel the catalogs lack; they stay as they are. */
  setAside: ReadonlySet<string>;
  /** Reports whether a state suffices; the first one that does is the end. */
  suffices: (namespace: OperatorNamespace) => boolean;
}

/**
 * Follows what OLM does with all Subscriptions of a namespace together, until a state suffices or nothing changes, as if each
 * plan is approved and succeeds.
 */
export function followNamespace(
  start: OperatorNamespace,
  catalog: UpgradeCatalog,
  { phase, channels, setAside, suffices }: CourseRequest,
): Course {
  const installs: HopInstall[] = [];
  const maxOpenShift = new Map(start.maxOpenShift);
  const kept = start.state.subscriptions.filter(({ name }) => setAside.has(name));
  const toNamespace = (state: NamespaceState): OperatorNamespace => ({
    ...start,
    state: { ...state, subscriptions: restore([...state.subscriptions, ...kept], start.state) },
    maxOpenShift,
  });
  const asked: NamespaceState = {
    ...start.state,
    subscriptions: start.state.subscriptions
      .filter(({ name }) => !setAside.has(name))
      .map((subscription) => toServed(subscription, channels, catalog)),
  };
  let end = toNamespace(asked);
  if (asked.subscriptions.length === 0) return { end, installs, failure: undefined };
  try {
    const { rounds } = predictNamespace(asked, catalog.catalogs, {
      limits: predictionLimits,
      maxRounds,
      findsAlternatives: false,
    });
    for (const { before, resolution, plan } of rounds) {
      end = toNamespace(before);
      if (suffices(end)) return { end, installs, failure: undefined };
      if (resolution.outcome !== 'resolved') return { end, installs, failure: resolution.message };
      if (plan === undefined || plan.updatedSubscriptions.length === 0) break;
      const requirers = findRequirers(resolution.variables);
      for (const item of plan.installs) {
        const { entry, replaces } = item;
        maxOpenShift.set(entry.name, entry.maxOpenShift);
        installs.push({
          phase,
          catalog: catalog.packages.get(entry.package)?.catalog ?? '',
          channel: entry.channel,
          bundle: entry.name,
          version: entry.versionText,
          replaces,
          reason: describeInstall(before, item, requirers.get(bundleId(entry)) ?? []),
        });
      }
    }
    return { end, installs, failure: undefined };
  } catch (error) {
    if (!(error instanceof LimitError)) throw error;
    return { end, installs, failure: `not resolved: ${error.problem}` };
  }
}

/** Returns a Subscription to the CatalogSource that serves its package in these catalogs. */
function toServed(
  subscription: SubscriptionState,
  channels: ReadonlyMap<string, ChannelSwitch>,
  { packages }: UpgradeCatalog,
): SubscriptionState {
  const served = packages.get(subscription.package)?.source;
  return {
    ...subscription,
    channel: channels.get(subscription.name)?.channel ?? subscription.channel,
    ...(served !== undefined && { source: served.name, sourceNamespace: served.namespace }),
  };
}

/** Returns Subscriptions with the CatalogSources that they have on the cluster. */
function restore(
  subscriptions: readonly SubscriptionState[],
  { subscriptions: own }: NamespaceState,
): SubscriptionState[] {
  const known = new Map(own.map((subscription) => [subscription.name, subscription]));
  return subscriptions.map((subscription) => {
    const { source, sourceNamespace } = known.get(subscription.name) ?? subscription;
    return { ...subscription, source, sourceNamespace };
  });
}
