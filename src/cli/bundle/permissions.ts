import { argument, defineCommand } from '../command/declaration.js';
import { grouped, list, required, text } from '../command/flags.js';
import { outputFormat } from '../command/shared-flags.js';
import { contentFlags, scopeFlags, sourceForms } from './content-flags.js';
import type { MissingRule } from '../../bundle/plain/rights/can-install.js';
import type { CloudPermission } from '../../bundle/plain/rights/cloud-permissions.js';
import type { PlainObject } from '../../kube/object.js';
import type { Right } from '../../bundle/plain/rights/rights.js';
import { writeObjects } from '../../bundle/plain/write.js';
import { createFault } from '../../core/diagnostic.js';
import { type JsonObject, type JsonValue, asJson } from '../../document/json.js';
import type { CommandContext } from '../context.js';
import { exitCodes } from '../exit-codes.js';
import { readNamedInput } from '../input.js';
import { encodeData } from '../reports/encode-data.js';
import { writeAll } from '../output.js';
import { printable } from '../printable.js';
import { describeSubject, rightCells, rightHeader } from './rights-table.js';
import { formatTable } from '../table.js';
import { printFindings } from './findings.js';
import {
  type BundlePermissions,
  type ComparedPermissions,
  canInstall,
  createInstaller,
  permissionRisks,
  readBundlePermissions,
} from '../../api/bundle/bundle-permissions.js';
import { inSource, pinValues } from '../../api/bundle/bundle-sources.js';

const outputs = ['table', 'json', 'yaml', 'rbac', 'installer'] as const;

const knownRisks = Object.keys(permissionRisks);

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
    const roles = options.canI === undefined ? undefined : await readNamedInput(options.canI, context);
    const read = { ...options, installNamespace, watchNamespaces, older: diff, roles };
    const current = await readBundlePermissions(reference, session, read);
    const { older, missing } = current;
    session.logger.close();
    const isInstallable = await printFaults(context, reference, current);
    if (older !== undefined && !(await printFaults(context, diff as string, older)))
      return exitCodes.findings;
    if (!isInstallable) return exitCodes.findings;
    if (missing !== undefined) return printMissing(context, missing, output);
    await writeAll(context.stdout, formatText(current, output, options.installer), session.signal);
    const risks = risksIn(current, new Set(options.failOn));
    await printFindings(
      context,
      risks.map((risk) => createFault('risk', risk)),
    );
    return risks.length > 0 ? exitCodes.findings : exitCodes.done;
  },
});

/** Returns the wanted risks of what was added, one line each. */
function risksIn({ added, cloudWildcards }: ComparedPermissions, wanted: ReadonlySet<string>): string[] {
  const rights = added.rights.flatMap((right) => {
    const risks = right.risks.filter((risk) => wanted.has(risk));
    if (risks.length === 0) return [];
    return [`${describeSubject(right)}: ${risks.join(', ')}: ${describe(right)}`];
  });
  const others = added.impacts
    .filter(({ kind }) => wanted.has(kind))
    .map(({ kind, object, detail }) => `${object}: ${kind}: ${detail}`);
  const clouds = (wanted.has('wildcard') ? cloudWildcards : []).map(
    (permission) => `CredentialsRequest/${permission.request}: wildcard: ${describeCloud(permission)}`,
  );
  return [...rights, ...others, ...clouds];
}

/** Prints the permissions that an installer lacks. Returns the exit code. */
async function printMissing(
  context: CommandContext,
  missing: readonly MissingRule[],
  output: (typeof outputs)[number],
): Promise<number> {
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
  permissions: BundlePermissions,
): Promise<boolean> {
  if (canInstall(permissions)) return true;
  const { findings, isInPlace } = permissions;
  await printFindings(context, findings.map(inSource(reference, isInPlace)));
  return false;
}

/** Returns the webhooks of a bundle, with what they intercept. */
function getWebhooks({ objects }: BundlePermissions): JsonObject[] {
  return objects.filter(({ kind }) => kind.endsWith('WebhookConfiguration')).flatMap(toWebhooks);
}

function toWebhooks(object: PlainObject): JsonObject[] {
  const { webhooks } = object.load();
  return (webhooks as JsonObject[]).map((webhook) => ({
    kind: object.kind,
    name: object.name,
    failurePolicy: (webhook['failurePolicy'] ?? 'Fail') as string,
    rules: (webhook['rules'] ?? []) as JsonValue,
  }));
}

function formatText(
  permissions: ComparedPermissions,
  output: (typeof outputs)[number],
  installer: string | undefined,
): string | AsyncIterable<string> {
  if (output === 'table') return formatReport(permissions);
  const { objects, added, removed, clouds, pins } = permissions;
  if (output === 'installer') return writeObjects(createInstaller(permissions, installer), 'yaml');
  if (output === 'rbac') {
    const isAccess = ({ kind }: PlainObject): boolean =>
      /^(?:ServiceAccount|(?:Cluster)?Role(?:Binding)?)$/.test(kind);
    return writeObjects(objects.filter(isAccess), 'yaml');
  }
  const value = asJson({
    permissions: added.rights,
    ...(removed !== undefined && { removed: removed.rights }),
    webhooks: getWebhooks(permissions),
    impact: added.impacts,
    ...(removed !== undefined && { removedImpact: removed.impacts }),
    cloudCredentials: clouds,
    cloudPermissions: added.cloud,
    ...(removed !== undefined && { removedCloudPermissions: removed.cloud }),
    sources: pinValues(pins),
  });
  return encodeData(value, output);
}

function formatReport(permissions: ComparedPermissions): string {
  const { added, removed, clouds } = permissions;
  const marked = (mark: string, rights: readonly Right[]): string[][] =>
    rights.map((right) => [...(removed === undefined ? [] : [mark]), ...rightCells(right)]);
  const header = removed === undefined ? rightHeader : ['', ...rightHeader];
  let text = formatTable(header, [...marked('+', added.rights), ...marked('-', removed?.rights ?? [])]);
  const webhooks = getWebhooks(permissions);
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
  const lines = [added, ...(removed === undefined ? [] : [removed])].flatMap(({ impacts, cloud }, index) => [
    ...impacts.map(({ kind, object, detail }) => `${marks[index]}${kind}: ${object}: ${detail}`),
    ...cloud.map(
      (permission) =>
        `${marks[index]}cloud: CredentialsRequest/${permission.request}: ${describeCloud(permission)}`,
    ),
  ]);
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
