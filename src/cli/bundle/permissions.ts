import { argument, defineCommand } from '../command/declaration.js';
import { grouped, list, required, text } from '../command/flags.js';
import { outputFormat } from '../command/shared-flags.js';
import { contentFlags, scopeFlags, sourceForms } from './content-flags.js';
import {
  type MissingRule,
  checkRoles,
  heldRules,
  missingRules,
} from '../../bundle/plain/rights/can-install.js';
import { type CloudPermission, isCloudWildcard } from '../../bundle/plain/rights/cloud-permissions.js';
import { DiagnosticsError } from '../../core/diagnostics-error.js';
import { impactSummaries } from '../../bundle/plain/rights/impact.js';
import { installerObjects, neededRules } from '../../bundle/plain/rights/installer.js';
import { readManifests } from '../../kube/manifests.js';
import type { PlainObject } from '../../kube/object.js';
import { type Right, rightsBeyond } from '../../bundle/plain/rights/rights.js';
import { describeSubject } from '../../bundle/plain/rights/subjects.js';
import { riskNames } from '../../bundle/plain/rights/risks.js';
import { writeObjects } from '../../bundle/plain/write.js';
import { createFault } from '../../core/diagnostic.js';
import { OpmateError } from '../../core/errors.js';
import { type JsonObject, type JsonValue, asJson } from '../../document/json.js';
import type { Pin } from '../../source/content/content-types.js';
import type { CommandContext } from '../context.js';
import { exitCodes } from '../exit-codes.js';
import { readNamedInput } from '../input.js';
import { encodeData } from '../reports/encode-data.js';
import { writeAll } from '../output.js';
import { printable } from '../printable.js';
import { rightCells, rightHeader } from './rights-table.js';
import { formatTable } from '../table.js';
import { printFindings } from './findings.js';
import { type BundlePermissions, readBundlePermissions } from '../../api/bundle/bundle-permissions.js';
import { inSource, pinValues } from '../../api/bundle/bundle-sources.js';

const outputs = ['table', 'json', 'yaml', 'rbac', 'installer'] as const;

const knownRisks: readonly string[] = [...riskNames, ...Object.keys(impactSummaries)];

const permissionFlags = {
  ...contentFlags,
  ...scopeFlags,
  installNamespace: required(scopeFlags.installNamespace),
  ...grouped('Input', {
    diff: text('source', 'show the difference from this older bundle', {
      excludes: ['output=rbac', 'output=installer'],
    }),
    canI: text('file', 'show permissions that the roles in this file lack; - for stdin', {
      excludes: ['diff', 'failOn', 'output=rbac', 'output=installer'],
    }),
  }),
  failOn: list('risk', 'exit with 3 on these risks, e.g. wildcard,secrets', {
    offered: knownRisks,
    group: 'Behavior',
  }),
  installer: text('name', 'service account for -o installer (default: PACKAGE-installer)', {
    needs: 'output=installer',
    group: 'Output',
  }),
  output: outputFormat(outputs, { default: 'table' }),
};

/**
 * `opmate bundle permissions`; with `--diff`, only permissions beyond an older bundle. Exit code 3 for a risk of
 * `--fail-on` and for a bundle that cannot be installed.
 */
export const command = defineCommand({
  summary: 'show the permissions that a bundle requires',
  description: `Risks: ${knownRisks.join(', ')}.`,
  arguments: [argument('<source>', sourceForms)],
  flags: permissionFlags,
  commonFlags: ['diff', 'canI', 'installer', 'output', 'failOn', 'installNamespace', 'watchNamespace'],
  examples: {
    'Show the permissions that a bundle requires':
      'opmate bundle permissions ./bundle --install-namespace demo',
    'Fail on risks that an older bundle does not have':
      'opmate bundle permissions ./bundle --install-namespace demo --diff registry.example.com/demo/bundle:v1.0.0 --fail-on cluster-admin,wildcard',
  },
  async runInSession({ context, args: [reference], options, session }) {
    const { output, installNamespace } = options;
    const { watchNamespace: watchNamespaces, diff } = options;
    const read = { ...options, installNamespace, watchNamespaces, older: diff };
    const current = await readBundlePermissions(reference, session, read);
    const { older, pins } = current;
    session.logger.close();
    const isInstallable = await printFaults(context, reference, current);
    if (older !== undefined && !(await printFaults(context, diff as string, older)))
      return exitCodes.findings;
    if (!isInstallable) return exitCodes.findings;
    if (options.canI !== undefined) {
      return printMissing(context, current, await readHeld(context, options.canI), output);
    }
    const report = getReport(current, older);
    await writeAll(
      context.stdout,
      formatText(report, current, pins, output, options.installer),
      session.signal,
    );
    const risks = risksIn(report, new Set(options.failOn));
    await printFindings(
      context,
      risks.map((risk) => createFault('risk', risk)),
    );
    return risks.length > 0 ? exitCodes.findings : exitCodes.done;
  },
});

/** Returns the risks of a report, one line each. */
function risksIn({ added, impacts, cloud }: Report, wanted: ReadonlySet<string>): string[] {
  const rights = added.flatMap((right) => {
    const risks = right.risks.filter((risk) => wanted.has(risk));
    if (risks.length === 0) return [];
    return [`${describeSubject(right)}: ${risks.join(', ')}: ${describe(right)}`];
  });
  const others = impacts
    .filter(({ kind }) => wanted.has(kind))
    .map(({ kind, object, detail }) => `${object}: ${kind}: ${detail}`);
  const clouds = cloud
    .filter((permission) => wanted.has('wildcard') && isCloudWildcard(permission))
    .map((permission) => `CredentialsRequest/${permission.request}: wildcard: ${describeCloud(permission)}`);
  return [...rights, ...others, ...clouds];
}

/** Reads the rules in a file of roles. Throws OpmateError for invalid roles, and a file without any. */
async function readHeld(context: CommandContext, file: string): Promise<ReturnType<typeof heldRules>> {
  const input = await readNamedInput(file, context);
  const { manifests, findings } = readManifests([input], { prefix: '', isWritten: true });
  const errors = [...findings, ...checkRoles(manifests)];
  if (errors.length > 0) throw new DiagnosticsError(errors, { code: 'INVALID' });
  const held = heldRules(manifests);
  if (held.length > 0) return held;
  throw new OpmateError('INVALID', 'holds no Role or ClusterRole', {
    subject: input.name,
    hint: 'export the roles of the installer, e.g. with kubectl get clusterrole NAME -o yaml',
  });
}

/** Prints the permissions that an installer with these rules lacks. Returns the exit code. */
async function printMissing(
  context: CommandContext,
  { name, objects, installNamespace }: BundlePermissions,
  held: ReturnType<typeof heldRules>,
  output: (typeof outputs)[number],
): Promise<number> {
  const missing = missingRules(neededRules(objects, name, installNamespace), held);
  const cells = ({ namespace, group, resource, names, verbs }: MissingRule): string[] => [
    namespace === '' ? '(all)' : namespace,
    group === '' ? '(core)' : group,
    resource + (names.length > 0 ? ` [${names.join(' ')}]` : ''),
    verbs.join(','),
  ];
  const text =
    output === 'table'
      ? formatTable(['NAMESPACE', 'GROUP', 'RESOURCE', 'MISSING VERBS'], missing.map(cells))
      : encodeData({ missing }, output === 'json' ? 'json' : 'yaml');
  await writeAll(context.stdout, text, context.signal);
  return missing.length > 0 ? exitCodes.findings : exitCodes.done;
}

/** Prints the findings of a bundle; returns whether it can be installed. */
async function printFaults(
  context: CommandContext,
  reference: string,
  { name, findings, isInPlace }: BundlePermissions,
): Promise<boolean> {
  if (findings.length === 0 && name !== '') return true;
  await printFindings(context, findings.map(inSource(reference, isInPlace)));
  return false;
}

type Report = ReturnType<typeof getReport>;

/** Returns what a bundle may do; with an older one, what it may beyond that, and the reverse as `removed…`. */
function getReport(current: BundlePermissions, older: BundlePermissions | undefined) {
  const { rights, impacts, cloud, clouds, objects } = current;
  return {
    added: older === undefined ? rights : rightsBeyond(rights, older.rights),
    removed: older && rightsBeyond(older.rights, rights),
    webhooks: objects.filter(({ kind }) => kind.endsWith('WebhookConfiguration')).flatMap(getWebhooks),
    impacts: beyond(impacts, older?.impacts ?? []),
    removedImpacts: beyond(older?.impacts ?? [], impacts),
    clouds,
    cloud: beyond(cloud, older?.cloud ?? []),
    removedCloud: beyond(older?.cloud ?? [], cloud),
  };
}

/** Returns the items that another list lacks. */
function beyond<T>(list: readonly T[], others: readonly T[]): T[] {
  const known = new Set(others.map((other) => JSON.stringify(other)));
  return list.filter((item) => !known.has(JSON.stringify(item)));
}

function getWebhooks(object: PlainObject): JsonObject[] {
  const { webhooks } = object.load();
  return (webhooks as JsonObject[]).map((webhook) => ({
    kind: object.kind,
    name: object.name,
    failurePolicy: (webhook['failurePolicy'] ?? 'Fail') as string,
    rules: (webhook['rules'] ?? []) as JsonValue,
  }));
}

function formatText(
  report: Report,
  { name, objects, installNamespace }: BundlePermissions,
  pins: readonly Pin[],
  output: (typeof outputs)[number],
  installer = `${name}-installer`,
): string | AsyncIterable<string> {
  if (output === 'table') return formatReport(report);
  if (output === 'rbac' || output === 'installer') {
    const isAccess = ({ kind }: PlainObject): boolean =>
      /^(?:ServiceAccount|(?:Cluster)?Role(?:Binding)?)$/.test(kind);
    const needed = (): PlainObject[] =>
      installerObjects(installer, installNamespace, neededRules(objects, name, installNamespace));
    return writeObjects(output === 'rbac' ? objects.filter(isAccess) : needed(), 'yaml');
  }
  const { removed } = report;
  const value = asJson({
    permissions: report.added,
    ...(removed !== undefined && { removed }),
    webhooks: report.webhooks,
    impact: report.impacts,
    ...(removed !== undefined && { removedImpact: report.removedImpacts }),
    cloudCredentials: report.clouds,
    cloudPermissions: report.cloud,
    ...(removed !== undefined && { removedCloudPermissions: report.removedCloud }),
    sources: pinValues(pins),
  });
  return encodeData(value, output);
}

function formatReport(report: Report): string {
  const { added, removed, webhooks, clouds } = report;
  const marked = (mark: string, rights: readonly Right[]): string[][] =>
    rights.map((right) => [...(removed === undefined ? [] : [mark]), ...rightCells(right)]);
  const header = removed === undefined ? rightHeader : ['', ...rightHeader];
  let text = formatTable(header, [...marked('+', added), ...marked('-', removed ?? [])]);
  for (const { kind, name, failurePolicy, rules } of webhooks) {
    const what = (rules as JsonObject[]).map(({ apiGroups, resources }) =>
      [apiGroups, resources]
        .map((list) => (Array.isArray(list) ? list.map((item) => item || 'core').join(',') : ''))
        .join('/'),
    );
    text += `\n${printable(`${String(kind)} ${String(name)} (${String(failurePolicy)}): ${what.join(' ')}`)}`;
  }
  if (webhooks.length > 0) text += '\n';
  const marks = removed === undefined ? ['', ''] : ['+ ', '- '];
  const lines = [report, { impacts: report.removedImpacts, cloud: report.removedCloud }].flatMap(
    ({ impacts, cloud }, index) => [
      ...impacts.map(({ kind, object, detail }) => `${marks[index]}${kind}: ${object}: ${detail}`),
      ...cloud.map(
        (permission) =>
          `${marks[index]}cloud: CredentialsRequest/${permission.request}: ${describeCloud(permission)}`,
      ),
    ],
  );
  for (const [index, line] of lines.entries()) text += `${index === 0 ? '\n' : ''}${printable(line)}\n`;
  if (clouds.length > 0) text += `\nrequests cloud credentials: ${clouds.join(', ')}\n`;
  return text.replace(/ +$/gm, '');
}

function describe({ namespace, group, resource, verbs }: Right): string {
  const where = namespace === '' ? 'in the whole cluster' : `in namespace ${namespace}`;
  const what = group === '' ? resource : `${resource}.${group}`;
  return `${verbs.length === 0 ? 'whatever' : verbs.join(',')} ${what} ${where}`;
}

function describeCloud({ provider, effect, actions, resources, roles }: CloudPermission): string {
  const parts = [
    ...(actions.length > 0 ? [actions.join(', ')] : []),
    ...(roles.length > 0 ? [`roles ${roles.join(', ')}`] : []),
    ...(resources.length > 0 ? [`on ${resources.join(', ')}`] : []),
  ];
  return `${provider}: ${effect} ${parts.length === 0 ? 'permissions not listed here' : parts.join(' ')}`;
}
