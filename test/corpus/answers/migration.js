// Answers what the migration library of OLM says about a cluster, and the documents that it writes.
import { listOfferedPackages, planMigration, readClusterTexts } from '../../../dist/api/cluster/migration.js';

const acknowledgments = [
  'watch-scope-change',
  'operator-condition',
  'olmv0-api-access',
  'scoped-serviceaccount',
  'not-steady-state',
];

export async function answer({ id, snapshot, catalogContent = {}, options, actions }) {
  const { objects } = readClusterTexts([{ name: 'snapshot.yaml', content: Buffer.from(snapshot) }]);
  const catalogs = new Map(
    Object.entries(catalogContent).map(([name, text]) => [name, listOfferedPackages(readLines(text))]),
  );
  const planner = planMigration({ objects, catalogs });
  const acknowledged = new Set(acknowledgments.filter((flag) => options[`acknowledge-${flag}`] === true));
  const answers = {
    check: () => planner.check(acknowledged).map(withoutEmpty),
    convert: () => convert(planner, options, acknowledged),
    catalogs: () => convertCatalogs(planner, options, false),
    'catalogs-dry-run': () => convertCatalogs(planner, options, true),
    rollback: () => rollBack(planner, options),
  };
  return { id, ...Object.fromEntries(actions.map((action) => [action, answers[action]()])) };
}

function* readLines(text) {
  for (const line of text.split('\n')) {
    try {
      yield JSON.parse(line);
    } catch {
      // The library skips lines that it cannot read.
    }
  }
}

function withoutEmpty(result) {
  const entries = Object.entries(result).filter(([, value]) => value !== '' && value.length !== 0);
  return Object.fromEntries(entries);
}

function convert(planner, options, acknowledged) {
  const { subscription, namespace, clusterExtensionName: extension } = options;
  const deletesOperatorGroup = options['delete-operatorgroup'] === true;
  const converted = planner.convert({
    subscription,
    namespace,
    extension,
    acknowledged,
    deletesOperatorGroup,
  });
  if ('error' in converted) return converted;
  const { notes, ...documents } = converted;
  const progress = notes.map(({ severity, message }) => [severity, message]);
  return { ...documents, ...(progress.length > 0 && { progress }) };
}

function convertCatalogs(planner, options, dryRun) {
  const { results, clusterCatalogs } = planner.convertCatalogs({
    dryRun,
    deletesSources: options['delete-catalogsource'] === true,
    capsPriority: options['acknowledge-priority-overflow'] === true,
  });
  return { results: results.length === 0 ? null : results.map(withoutEmpty), clusterCatalogs };
}

function rollBack(planner, options) {
  const { clusterExtensionName, 'acknowledge-installed': isAcknowledged = false } = options;
  const result = planner.rollBack(clusterExtensionName, isAcknowledged);
  if ('error' in result) return result;
  return { subscription: result.subscription, remainingClusterObjectSets: result.remainingSets };
}
