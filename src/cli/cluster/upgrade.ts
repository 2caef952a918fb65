import path from 'node:path';
import { type ClusterUpgradePlan, planClusterUpgrade } from '../../api/cluster/plan-cluster-upgrade.js';
import { createUpgradeImageSets } from '../../api/cluster/upgrade-image-sets.js';
import type { Diagnostic } from '../../core/diagnostic.js';
import { encodeFinding, formatFindingText } from '../reports/option-words.js';
import { replaceFiles } from '../../files/replace-file.js';
import type { ChannelPosition, HopStep, OperatorHop, UpgradeHop } from '../../solve/upgrade/upgrade-types.js';
import { defineCommand } from '../command/declaration.js';
import { grouped, required, text } from '../command/flags.js';
import { reportOutput } from '../command/shared-flags.js';
import { exitCodes } from '../exit-codes.js';
import { printable } from '../printable.js';
import { encodeData } from '../reports/encode-data.js';
import { type FindingsReport, writeReport } from '../reports/report.js';
import { formatTable } from '../table.js';
import {
  parseVersionedCatalogs,
  readSnapshotPlaces,
  snapshotArgument,
  upgradeFlags,
} from './snapshot-input.js';

/** `opmate cluster upgrade`; exit code 3 if an update is blocked. */
export const command = defineCommand({
  summary: 'plan updates of an OpenShift cluster and of its operators',
  description:
    'Plans one minor version after the other: operators that block, channel and version of each before and after.',
  arguments: [snapshotArgument],
  flags: {
    to: required(text('version', 'version of OpenShift to plan for, e.g. 4.20')),
    ...grouped('Input', {
      from: text('release', 'release of the cluster', { defaultText: 'that of its ClusterVersion' }),
      ...upgradeFlags,
      updateChannel: text('name', 'update channel without its version, e.g. eus', {
        needs: 'graph',
        defaultText: 'that of its ClusterVersion, else stable',
      }),
      architecture: text('name', 'architecture of the releases', {
        needs: 'graph',
        defaultText: 'that of its ClusterVersion, else amd64',
      }),
    }),
    imageSet: text('file', 'write an image set per update; the version precedes the extension', {
      group: 'Output',
    }),
    output: reportOutput,
  },
  commonFlags: ['to', 'catalog', 'graph', 'imageSet', 'output'],
  examples: {
    'Plan the way to another version': 'opmate cluster upgrade must-gather --to 4.19 --catalog v4.19=./newer',
    'Include the releases on the way':
      'opmate cluster upgrade objects.yaml --to 4.19 --catalog v4.19=./newer --graph ./graphs',
    'Write the image sets that the updates need':
      'opmate cluster upgrade objects.yaml --to 4.19 --catalog v4.19=registry.example.com/demo/catalog:v1 --image-set upgrade.yaml',
  },
  async runInSession({ context, args: [places], options, session }) {
    const { output: format = 'text', from, to, graph, updateChannel, architecture, imageSet } = options;
    const plan = await planClusterUpgrade(
      {
        snapshot: await readSnapshotPlaces(places, context),
        to,
        ...(from !== undefined && { from }),
        catalogs: parseVersionedCatalogs(options.catalog),
        updateGraph: graph === undefined ? undefined : { graph, channel: updateChannel, architecture },
        today: new Date().toISOString().slice(0, 10),
      },
      session,
    );
    if (imageSet !== undefined) {
      const files = createUpgradeImageSets(plan).map(({ version, configuration }) => ({
        name: insertVersion(imageSet, version),
        text: configuration,
      }));
      const toTarget = (name: string): string => path.resolve(context.workingDirectory, name);
      await replaceFiles(files.map(({ name, text: content }) => ({ target: toTarget(name), text: content })));
      for (const { name } of files) session.logger.log('info', `wrote ${name}`);
    }
    session.logger.close();
    const diagnostics = listDiagnostics(plan);
    const report: FindingsReport = {
      command: 'opmate cluster upgrade',
      diagnostics,
      text: () => describePlan(plan),
      value: () =>
        JSON.parse(encodeData({ ...plan, findings: plan.findings.map(encodeFinding) }, 'json')) as never,
    };
    await writeReport(context, report, format);
    const isBlocked = plan.hops.some((hop) => hop.isBlocked);
    return isBlocked || diagnostics.some(({ severity }) => severity === 'error')
      ? exitCodes.findings
      : exitCodes.done;
  },
});

function insertVersion(file: string, version: string): string {
  const { dir, name, ext } = path.parse(file);
  return path.join(dir, `${name}-${version}${ext}`);
}

function listDiagnostics({ findings, hops }: ClusterUpgradePlan): Diagnostic[] {
  return [...findings, ...hops.flatMap(listHopDiagnostics)];
}

function listHopDiagnostics({ from, to, notes, operators }: UpgradeHop): Diagnostic[] {
  const update = `update ${from} to ${to}`;
  return [
    ...notes.map(({ severity, code, text: problem }) => ({ severity, code, subject: update, problem })),
    ...operators.flatMap(({ namespace, package: name, installed, notes: own }) =>
      own.map(({ severity, code, text: problem }) => ({
        severity,
        code,
        subject: `${update}: ${namespace}/${name || installed?.bundle}`,
        problem,
      })),
    ),
  ];
}

function describePlan(plan: ClusterUpgradePlan): string {
  const { release, to, condition, hops, findings } = plan;
  const lines = [`OpenShift ${printable(release)} to ${to}`];
  if (condition.status === 'False')
    lines.push(`Upgradeable=False now: ${printable(condition.message).replaceAll('\n', '\n  ')}`);
  lines.push(...findings.map((finding) => `${finding.severity}: ${printable(formatFindingText(finding))}`));
  return [...lines, ...hops.map(describeHop)].join('\n') + '\n';
}

function describeHop(hop: UpgradeHop): string {
  const { from, to, isBlocked, operators, notes, releases, order } = hop;
  const lines = ['', `update ${from} to ${to}: ${isBlocked ? 'blocked' : 'possible'}`];
  for (const { version, image } of releases)
    lines.push(`  release ${printable(version)}: ${printable(image)}`);
  for (const { severity, text: problem } of notes) lines.push(`  ${severity}: ${printable(problem)}`);
  const header = ['NAMESPACE', 'PACKAGE', 'STATUS', 'INSTALLED', 'BEFORE', 'AFTER', 'APPROVAL', 'REASON'];
  const rows = operators.map((operator) => [
    operator.namespace,
    operator.package || (operator.installed?.bundle ?? ''),
    operator.status,
    describePosition(operator.installed),
    isSame(operator.installed, operator.before) ? '-' : describePosition(operator.before),
    describeAfter(operator),
    operator.needsApproval ? 'Manual' : '-',
    operator.reason,
  ]);
  const table = rows.length === 0 ? ['no operators'] : formatTable(header, rows).trimEnd().split('\n');
  lines.push(...table.map((line) => `  ${line}`));
  const reasons = new Set(operators.map(({ reason }) => reason));
  for (const { severity, subject, problem } of listHopDiagnostics({ ...hop, notes: [] })) {
    if (reasons.has(problem)) continue;
    const shown = subject?.slice(`update ${from} to ${to}: `.length) ?? '';
    lines.push(`  ${severity}: ${printable(`${shown}: ${problem}`)}`);
  }
  if (!isBlocked) lines.push('  steps:', ...order.map(describeStep));
  return lines.join('\n');
}

function describeStep({ namespace, text: action, reason }: HopStep, index: number): string {
  const place = namespace === '' ? '' : `${namespace}: `;
  return `    ${index + 1}. ${printable(`${place}${action} (${reason})`)}`;
}

function describePosition(position: ChannelPosition | undefined): string {
  if (position === undefined) return '-';
  const { channel, version, bundle } = position;
  return `${version || bundle}${channel === '' ? '' : ` (${channel})`}`;
}

function isSame(a: ChannelPosition | undefined, b: ChannelPosition | undefined): boolean {
  return a?.bundle === b?.bundle && a?.channel === b?.channel;
}

function describeAfter({ before, after }: OperatorHop): string {
  if (after === undefined) return 'not in the catalogs';
  return isSame(before, after) ? '-' : describePosition(after);
}
