import {
  type ClusterPrediction,
  type PlannedRound,
  type PredictedNamespace,
  predictCluster,
} from '../../api/cluster/predict-cluster.js';
import type { Diagnostic } from '../../core/diagnostic.js';
import { encodeFinding, formatFindingText } from '../reports/option-words.js';
import { defineCommand } from '../command/declaration.js';
import { reportOutput } from '../command/shared-flags.js';
import { exitCodes } from '../exit-codes.js';
import { count, printable } from '../printable.js';
import { encodeData } from '../reports/encode-data.js';
import { type FindingsReport, writeReport } from '../reports/report.js';
import { formatTable } from '../table.js';
import { readResolverOptions, snapshotArgument, snapshotFlags } from './snapshot-input.js';

/** `opmate cluster predict`; exit code 3 if a namespace cannot be resolved, and for findings that are errors. */
export const command = defineCommand({
  summary: 'show what OLM v0 will install and upgrade, without a cluster',
  description:
    'Resolves the Subscriptions of each namespace as OLM v0 does, step by step until nothing changes.',
  arguments: [snapshotArgument],
  flags: { ...snapshotFlags, output: reportOutput },
  commonFlags: ['catalog', 'filename', 'namespace', 'output'],
  examples: {
    'Show what OLM will do on a cluster': 'opmate cluster predict must-gather --catalog demo=./catalog',
    'Show what a new Subscription leads to':
      'opmate cluster predict objects.yaml --catalog demo=./catalog -f subscription.yaml',
  },
  async runInSession({ context, args: [places], options, session }) {
    const { output: format = 'text' } = options;
    const prediction = await predictCluster(await readResolverOptions(places, options, context), session);
    session.logger.close();
    const diagnostics = listDiagnostics(prediction);
    const report: FindingsReport = {
      command: 'opmate cluster predict',
      diagnostics,
      text: () => describePrediction(prediction),
      value: () => JSON.parse(encodeData(toData(prediction), 'json')) as never,
    };
    await writeReport(context, report, format);
    return diagnostics.some(({ severity }) => severity === 'error') ? exitCodes.findings : exitCodes.done;
  },
});

function listDiagnostics({ findings, namespaces }: ClusterPrediction): Diagnostic[] {
  return [...findings, ...namespaces.flatMap((namespace) => namespace.findings)];
}

/** Returns data as in the documentation: findings in the form of all commands. */
function toData({ namespaces, findings }: ClusterPrediction): object {
  return {
    namespaces: namespaces.map((namespace) => ({
      ...namespace,
      findings: namespace.findings.map(encodeFinding),
    })),
    findings: findings.map(encodeFinding),
  };
}

function describePrediction({ namespaces, findings }: ClusterPrediction): string {
  const lines = findings.map(describeFinding);
  return [...lines, ...namespaces.map(describeNamespace)].join('\n') + '\n';
}

function describeFinding(finding: Diagnostic): string {
  return `${finding.severity}: ${printable(formatFindingText(finding))}`;
}

const ends: Readonly<Record<PredictedNamespace['end'], string>> = {
  stable: 'up to date',
  cycle: 'upgrades go round in circles',
  unsatisfiable: 'constraints not satisfiable',
  error: 'cannot be resolved',
  limit: 'not resolved within the limits',
};

function describeNamespace(prediction: PredictedNamespace): string {
  const { namespace, rounds, end, message, conflict, alternatives, findings } = prediction;
  const plans = rounds.filter(({ installs }) => installs.length > 0);
  const after = plans.length === 0 ? '' : ` after ${count(plans.length, 'plan')}`;
  const lines = [`namespace ${printable(namespace)}: ${ends[end]}${after}`];
  for (const [index, round] of plans.entries()) lines.push(...describePlan(round, index + 1));
  if (conflict.length > 0) {
    lines.push('  conflict:');
    for (const { text, detail, remedy } of conflict) {
      lines.push(`    ${printable(text)}`);
      if (detail !== undefined) lines.push(`      ${printable(detail)}`);
      if (remedy !== undefined) lines.push(`      remedy: ${printable(remedy)}`);
    }
  } else if (message !== undefined) lines.push(`  ${printable(message)}`);
  if (alternatives.length > 0) {
    lines.push('  uncertain, as OLM orders at random; also possible:');
    for (const names of alternatives)
      lines.push(`    ${names.length === 0 ? 'nothing' : printable(names.join(', '))}`);
  }
  const others = findings.filter(({ code }) => code !== 'unsatisfiable' && code !== 'unresolved');
  lines.push(...others.map((finding) => `  ${describeFinding(finding)}`));
  return lines.join('\n');
}

function describePlan({ installs, newSubscriptions, installPlan }: PlannedRound, number: number): string[] {
  const approval =
    installPlan === 'none' ? 'no install plan: no Subscription changes' : `approval ${installPlan ?? ''}`;
  const rows = installs.map(({ name, replaces, catalog, reason }) => [
    name,
    replaces || '-',
    catalog,
    reason,
  ]);
  const table = formatTable(['BUNDLE', 'REPLACES', 'CATALOG', 'REASON'], rows);
  const lines = [
    `  plan ${number}, ${approval}`,
    ...table
      .trimEnd()
      .split('\n')
      .map((line) => `    ${line}`),
  ];
  for (const { name } of newSubscriptions) lines.push(`    new Subscription ${printable(name)}`);
  return lines;
}
