import { groupBy } from '../../core/groups.js';
import type { HopInstall, HopStep, OperatorHop, UpgradeHop } from './upgrade-types.js';

/** Returns what an update of the cluster takes, in order: channels and install plans, releases, catalogs, and these again. */
export function orderSteps({ to, releases, operators }: UpgradeHop): HopStep[] {
  const update: HopStep[] =
    releases.length === 0
      ? [step('update-cluster', `update the cluster to ${to}`, 'update graph not specified')]
      : releases.map(({ version, channel, from, risks }) =>
          step(
            'update-cluster',
            `update the cluster to ${version} in channel ${channel}`,
            risks.length === 0 ? `recommended update from ${from}` : `conditional update from ${from}`,
          ),
        );
  return [
    ...listPhase('before', operators),
    ...update,
    step('use-catalogs', `use the catalogs of ${to}`, 'operators follow the catalogs of the version'),
    ...listPhase('after', operators),
  ];
}

function step(kind: HopStep['kind'], text: string, reason: string, namespace = ''): HopStep {
  return { kind, namespace, text, reason };
}

function listPhase(phase: HopInstall['phase'], operators: readonly OperatorHop[]): HopStep[] {
  return [...groupBy(operators, ({ namespace }) => namespace)].flatMap(([namespace, own]) => {
    const changes = own.flatMap((operator) => listChannelChange(phase, operator));
    const bundles = own.flatMap(({ installs }) => installs.filter((item) => item.phase === phase));
    if (bundles.length === 0) return changes;
    const names = bundles.map(({ bundle }) => bundle).join(', ');
    const isManual = own.some(({ needsApproval }) => needsApproval);
    const kind = isManual ? 'approve' : 'wait';
    const text = isManual ? `approve the install plans for ${names}` : `wait for ${names}`;
    const reason = isManual ? 'a Subscription of the namespace is Manual' : 'OLM installs them automatically';
    return [...changes, step(kind, text, reason, namespace)];
  });
}

function listChannelChange(phase: HopInstall['phase'], operator: OperatorHop): HopStep[] {
  const { namespace, subscription, channels } = operator;
  return channels
    .filter((change) => change.phase === phase)
    .map(({ channel, reason }) =>
      step(
        'change-channel',
        `set the channel of Subscription ${subscription} to ${channel}`,
        reason,
        namespace,
      ),
    );
}
