import { type OpenShiftVersion, formatOpenShift } from '../../core/openshift-version.js';
import { pushTo } from '../../core/groups.js';
import { followNamespace } from './follow-namespace.js';
import { listInstalledOperators } from './operator-namespaces.js';
import { note } from './operator-notes.js';
import { continuesIn, orderChannels } from './package-ways.js';
import { type NamespacePhase, getOperatorKey, listUnknown } from './prepare-namespace.js';
import type {
  ChannelSwitch,
  InstalledOperator,
  OperatorNamespace,
  UpgradeCatalog,
  UpgradeNote,
} from './upgrade-types.js';

/** Follows a namespace with the catalogs of the next version, in other channels where those lead on. */
export function continueNamespace(
  start: OperatorNamespace,
  there: UpgradeCatalog,
  to: OpenShiftVersion,
): NamespacePhase {
  const notes = new Map<string, UpgradeNote[]>();
  const channels = new Map<string, ChannelSwitch>();
  for (const operator of listInstalledOperators(start)) {
    if (operator.subscription === '') continue;
    const found = findChannel(operator, there, to);
    if (found.note !== undefined) pushTo(notes, getOperatorKey(operator), found.note);
    if (found.change !== undefined) channels.set(operator.subscription, found.change);
  }
  const course = followNamespace(start, there, {
    phase: 'after',
    channels,
    setAside: listUnknown(start, there, channels),
    suffices: () => false,
  });
  return { ...course, channels, notes };
}

/** Finds the channel that an operator needs in the next catalogs; undefined if it can keep its own, or none leads on. */
function findChannel(
  operator: InstalledOperator,
  { packages }: UpgradeCatalog,
  to: OpenShiftVersion,
): { change?: ChannelSwitch; note?: UpgradeNote } {
  const version = formatOpenShift(to);
  const later = packages.get(operator.package);
  const stuck = `OLM then resolves nothing in namespace ${operator.namespace}`;
  if (later === undefined) {
    const problem = `no catalog of ${version} has package ${operator.package}: ${stuck}`;
    return { note: note('warning', 'no-package', problem) };
  }
  const { channel } = operator;
  const own = channel === '' ? [...later.channels.values()].flat() : later.channels.get(channel);
  if (own !== undefined && continuesIn(own, operator)) return {};
  const other = orderChannels(later, channel).find((name) =>
    continuesIn(later.channels.get(name) ?? [], operator),
  );
  const problem =
    own === undefined
      ? `no channel ${channel} in the catalogs of ${version}`
      : `channel ${channel} of ${version} does not lead on from ${operator.csv}`;
  if (other === undefined)
    return { note: note('warning', 'no-channel', own === undefined ? `${problem}: ${stuck}` : problem) };
  return {
    change: { phase: 'after', channel: other, reason: problem },
    note: note('warning', 'change-channel', `${problem}: change it to ${other} after the update`),
  };
}
