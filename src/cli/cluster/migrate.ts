import path from 'node:path';
import { type ClusterMigration, migrateCluster } from '../../api/cluster/migrate-cluster.js';
import { encodeDocuments } from '../../document/yaml/present.js';
import { writeDeploymentFiles } from '../../api/deployment/create-deployment.js';
import type { Diagnostic } from '../../core/diagnostic.js';
import { encodeFinding, formatFindingText } from '../reports/option-words.js';
import type { OperatorPlan } from '../../solve/migration/operator-plans.js';
import { defineCommand } from '../command/declaration.js';
import { text } from '../command/flags.js';
import { outputFormat } from '../command/shared-flags.js';
import { exitCodes } from '../exit-codes.js';
import { writeAll } from '../output.js';
import { printable } from '../printable.js';
import { encodeData } from '../reports/encode-data.js';
import {
  parseSnapshotCatalogs,
  readSnapshotPlaces,
  snapshotArgument,
  snapshotFlags,
} from './snapshot-input.js';

/** `opmate cluster migrate`; exit code 3 if an operator is blocked. */
export const command = defineCommand({
  summary: 'plan the migration of operators from OLM v0 to OLM v1',
  description:
    'Checks every Subscription by the rules of the migration library of OLM, and writes the documents that replace it.',
  arguments: [snapshotArgument],
  flags: {
    catalog: snapshotFlags.catalog,
    to: text('directory', 'write the documents and steps to this directory', { group: 'Output' }),
    output: outputFormat(['text', 'json', 'yaml'], { default: 'text' }),
  },
  examples: {
    'Show which operators can move to OLM v1':
      'opmate cluster migrate must-gather --catalog redhat-operators=./catalog',
    'Write the documents for review':
      'opmate cluster migrate objects.yaml --catalog demo=./catalog --to migration',
  },
  async runInSession({ context, args: [places], options, session }) {
    const { output, to } = options;
    const migration = await migrateCluster(
      {
        snapshot: await readSnapshotPlaces(places, context),
        catalogs: parseSnapshotCatalogs(options.catalog),
      },
      session,
    );
    session.logger.close();
    for (const finding of migration.findings) session.logger.report(finding);
    if (to !== undefined) {
      await writeDeploymentFiles(createFiles(migration), path.resolve(context.workingDirectory, to));
    }
    const shown = output === 'text' ? describe(migration) : encodeData(toData(migration), output);
    await writeAll(context.stdout, shown, session.signal);
    const isBlocked = migration.operators.some(({ state }) => state === 'blocked' || state === 'conflict');
    return isBlocked ? exitCodes.findings : exitCodes.done;
  },
});

function toData({ operators, findings, ...catalogs }: ClusterMigration): object {
  return {
    operators: operators.map((operator) => ({
      ...operator,
      warnings: operator.warnings.map(encodeFinding),
    })),
    ...catalogs,
    findings: findings.map(encodeFinding),
  };
}

function describe({ operators, catalogSources }: ClusterMigration): string {
  const catalogs = catalogSources.flatMap(({ namespace, catalogSource, status, reason, notes }) => [
    `CatalogSource ${namespace}/${catalogSource}: ${status}: ${reason}`,
    ...notes.map((note) => `  ${note}`),
  ]);
  return [...catalogs, ...operators.flatMap(describeOperator)].map((line) => `${printable(line)}\n`).join('');
}

function describeOperator(plan: OperatorPlan): string[] {
  const { operator, version, state, reason, blockers, acknowledge, warnings, steps, rollback } = plan;
  return [
    `${operator}: ${plan.package} ${version}: ${state}`,
    ...(blockers.length === 0 && state !== 'ready' ? [`  ${reason}`] : []),
    ...blockers.flatMap(({ rule, name, message, remedy }) => [
      `  ${rule === '' ? '' : `${rule} `}${name}: ${message}`,
      `    remedy: ${remedy}`,
    ]),
    ...(acknowledge.length === 0 ? [] : [`  acknowledge: ${acknowledge.join(', ')}`]),
    ...warnings.map((warning: Diagnostic) => `  ${warning.severity}: ${formatFindingText(warning)}`),
    ...steps.map((step, index) => `  ${index + 1}. ${step}`),
    ...rollback.steps.map((step) => `  rollback: ${step}`),
  ];
}

/** Returns the files of a migration: catalogs first, then one per operator, and what restores it. */
function createFiles({ operators, clusterCatalogs }: ClusterMigration): Map<string, string> {
  const files = new Map<string, string>();
  if (clusterCatalogs.length > 0) {
    files.set('00-catalogs.yaml', encodeDocuments(clusterCatalogs, ['wait until they are Serving']));
  }
  for (const plan of operators) {
    if (plan.documents.length === 0) continue;
    const name = plan.operator.replaceAll(/[^a-z0-9.-]/g, '_');
    const comments = plan.steps.map((step, index) => `${index + 1}. ${step}`);
    files.set(`${name}.yaml`, encodeDocuments(plan.documents, comments));
    files.set(`rollback/${name}.yaml`, encodeDocuments(plan.rollback.documents, plan.rollback.steps));
  }
  return files;
}
