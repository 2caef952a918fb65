import { type Diagnostic, createFault, createWarning } from '../../core/diagnostic.js';
import { compareVersions, formatVersion } from '../../core/semver.js';
import type { NamespaceState, SubscriptionState } from './namespace-state.js';
import type { NamespacePrediction, PredictedRound } from './predict.js';
import type { ResolverCatalog, ResolverEntry } from './resolver-types.js';
import { listPackageEntries } from './sources.js';
import type { ChosenEntry } from './resolve.js';

/** Returns what a prediction does against expectation. */
export function findSurprises(
  prediction: NamespacePrediction,
  catalogs: readonly ResolverCatalog[],
): Diagnostic[] {
  const [first] = prediction.rounds;
  if (first === undefined) return [];
  const { before } = first;
  return [
    ...findOperatorGroupFaults(before),
    ...findBrokenCatalogs(before, catalogs),
    ...before.subscriptions.flatMap((subscription) =>
      findSubscriptionSurprises(subscription, first, catalogs),
    ),
    ...findApproval(first),
    ...findWaiting(before),
    ...prediction.rounds.flatMap((round) => findPlanSurprises(round)),
    ...findCycle(prediction),
  ];
}

function subject({ namespace, name }: SubscriptionState): string {
  return `Subscription ${namespace}/${name}`;
}

function findOperatorGroupFaults({ namespace, operatorGroups }: NamespaceState): Diagnostic[] {
  if (operatorGroups.length === 1) return [];
  return [
    createFault('operator-group', `expected 1 OperatorGroup, found ${operatorGroups.length}`, {
      subject: `namespace ${namespace}`,
      hint:
        operatorGroups.length === 0
          ? 'create an OperatorGroup: OLM installs nothing without one, and reports no condition'
          : 'delete all but one OperatorGroup: OLM installs nothing, and reports no condition',
    }),
  ];
}

function findBrokenCatalogs(
  { namespace, subscriptions, operatorGroups }: NamespaceState,
  catalogs: readonly ResolverCatalog[],
): Diagnostic[] {
  const isVisible = ({ key }: ResolverCatalog): boolean =>
    key.namespace === namespace || operatorGroups[0]?.excludesGlobal !== true;
  return catalogs
    .filter((catalog) => catalog.error !== undefined && isVisible(catalog))
    .map(({ key }) => {
      const isUsed = subscriptions.some(
        ({ source, sourceNamespace }) => source === key.name && sourceNamespace === key.namespace,
      );
      const problem = isUsed
        ? 'no content: OLM resolves nothing in this namespace'
        : 'no content: OLM resolves nothing in this namespace, although no Subscription uses it';
      return createFault('unreachable-catalog', problem, {
        subject: `CatalogSource ${key.namespace}/${key.name}`,
        hint: 'specify its content, or delete the CatalogSource',
      });
    });
}

function findSubscriptionSurprises(
  subscription: SubscriptionState,
  { before, plan }: PredictedRound,
  catalogs: readonly ResolverCatalog[],
): Diagnostic[] {
  const findings: Diagnostic[] = [];
  const entries = listSubscribed(subscription, catalogs);
  const channels = new Set(entries.map(({ channel }) => channel));
  if (subscription.channel === '' && channels.size > 1)
    findings.push(
      createWarning('any-channel', `no channel: takes bundles of all ${channels.size} channels`, {
        subject: subject(subscription),
        hint: 'set spec.channel',
      }),
    );
  const installed = before.csvs.find(({ name }) => name === subscription.installedCsv);
  if (
    installed !== undefined &&
    subscription.startingCsv !== '' &&
    subscription.startingCsv !== installed.name
  )
    findings.push(
      createWarning(
        'ignored-starting-csv',
        `startingCSV ${subscription.startingCsv} is ignored: ${installed.name} is installed`,
        {
          subject: subject(subscription),
        },
      ),
    );
  const isUpdated = plan?.updatedSubscriptions.some(({ name }) => name === subscription.name) === true;
  if (installed === undefined || plan === undefined || isUpdated || entries.length === 0) return findings;
  const heads = findHeads(entries);
  if (!heads.some(({ name }) => name === installed.name))
    findings.push(
      createWarning('dead-end', describeDeadEnd(installed.name, subscription, entries), {
        subject: subject(subscription),
        hint: `select a channel with an edge from ${installed.name}`,
      }),
    );
  return findings;
}

function listSubscribed(
  { source, sourceNamespace, package: packageName, channel }: SubscriptionState,
  catalogs: readonly ResolverCatalog[],
): ResolverEntry[] {
  return catalogs
    .filter(({ key }) => key.name === source && key.namespace === sourceNamespace)
    .flatMap((catalog) => listPackageEntries(catalog, packageName))
    .filter((entry) => entry.package === packageName && (channel === '' || entry.channel === channel));
}

function findHeads(entries: readonly ResolverEntry[]): ResolverEntry[] {
  const replaced = new Set(entries.flatMap(({ replaces, skips }) => [replaces, ...skips]));
  return entries.filter(({ name }) => !replaced.has(name));
}

function describeDeadEnd(
  installed: string,
  { channel }: SubscriptionState,
  entries: readonly ResolverEntry[],
): string {
  const leads = entries.some(({ replaces, skips }) => replaces === installed || skips.includes(installed));
  const place = channel === '' ? 'the package' : `channel ${channel}`;
  return leads
    ? `${installed} stays: nothing that replaces it in ${place} can be installed`
    : `${installed} stays for ever: no bundle of ${place} leads on from it`;
}

function findApproval({ before, plan }: PredictedRound): Diagnostic[] {
  if (plan?.approval !== 'Manual' || before.subscriptions.length < 2) return [];
  const manual = before.subscriptions.filter(({ isManual }) => isManual);
  const automatic = plan.updatedSubscriptions.filter(
    ({ name }) => !manual.some((subscription) => subscription.name === name),
  );
  if (automatic.length === 0) return [];
  const names = automatic.map(({ name }) => name).join(', ');
  return [
    createWarning('manual-approval', `Manual approval of ${manual[0]?.name} also holds back ${names}`, {
      subject: `namespace ${before.namespace}`,
      hint: 'approve the install plan, which installs all of it, or use one namespace per approval',
    }),
  ];
}

function findWaiting({ namespace, subscriptions }: NamespaceState): Diagnostic[] {
  const isWaiting = ({ state, hasInstallPlan }: SubscriptionState): boolean =>
    state === 'UpgradePending' && hasInstallPlan;
  if (subscriptions.length === 0 || !subscriptions.every(isWaiting)) return [];
  return [
    createWarning(
      'pending-plan',
      'all Subscriptions wait for their install plan: OLM resolves nothing until then',
      {
        subject: `namespace ${namespace}`,
        hint: 'approve the install plan or wait for it',
      },
    ),
  ];
}

function findPlanSurprises({ before, plan }: PredictedRound): Diagnostic[] {
  if (plan === undefined) return [];
  const findings: Diagnostic[] = [];
  if (plan.approval === 'none')
    for (const { entry } of plan.installs)
      findings.push(
        createWarning(
          'unplanned-dependency',
          `${entry.name} is resolved but not installed: no Subscription of the namespace changes`,
          {
            subject: `namespace ${before.namespace}`,
            hint: `create a Subscription to package ${entry.package}`,
          },
        ),
      );
  for (const item of plan.installs)
    findings.push(...findDowngrade(before, item), ...findModeFault(before, item));
  return findings;
}

function findDowngrade(before: NamespaceState, { entry, replaces }: ChosenEntry): Diagnostic[] {
  const replaced = before.csvs.find(({ name }) => name === replaces);
  if (replaced === undefined || entry.version === undefined) return [];
  if (compareVersions(entry.version, replaced.version) >= 0) return [];
  const by = entry.skipRange?.contains(replaced.version) === true ? 'skipRange' : 'replaces';
  const problem = `${by} leads down from ${formatVersion(replaced.version)} to ${entry.versionText}`;
  return [createWarning('downgrade', problem, { subject: `bundle ${entry.name}` })];
}

/** Finds an OperatorGroup that a bundle does not support, which only the installed version reports. */
function findModeFault(before: NamespaceState, { entry }: ChosenEntry): Diagnostic[] {
  const targets = before.operatorGroups[0]?.targets;
  if (targets === undefined || entry.installModes === undefined) return [];
  const modes = entry.installModes;
  const missing = listModes(before.namespace, targets).find((mode) => !modes.includes(mode));
  if (missing === undefined) return [];
  const problem = `${missing} InstallModeType not supported: installed, then phase Failed with UnsupportedOperatorGroup`;
  return [
    createFault('install-mode', problem, {
      subject: `bundle ${entry.name} in namespace ${before.namespace}`,
      hint: modes.length === 0 ? undefined : `use an OperatorGroup for ${modes.join(' or ')}`,
    }),
  ];
}

function listModes(own: string, targets: readonly string[]): string[] {
  if (targets.length === 0) return ['AllNamespaces'];
  if (targets.length > 1)
    return targets.includes(own) ? ['MultiNamespace', 'OwnNamespace'] : ['MultiNamespace'];
  return targets[0] === own ? ['OwnNamespace'] : ['SingleNamespace'];
}

function findCycle({ namespace, end, rounds }: NamespacePrediction): Diagnostic[] {
  if (end !== 'cycle' && end !== 'limit') return [];
  const names = rounds.flatMap(({ plan }) => plan?.installs.map(({ entry }) => entry.name) ?? []);
  const problem =
    end === 'cycle'
      ? `upgrades go round in circles: ${[...new Set(names)].join(', ')}`
      : `still upgrading after ${rounds.length} rounds`;
  return [createWarning('upgrade-cycle', problem, { subject: `namespace ${namespace}` })];
}
