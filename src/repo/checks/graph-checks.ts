import { quoteGo } from '../../core/go-json-quote.js';
import { joinNames } from '../../core/suggest.js';
import { findNearest } from '../../document/field.js';
import { getObject, getText, getValue } from '../../document/json-fields.js';
import type { CheckedBundle } from './bundle-model.js';
import { type Check, type CheckedOperator, type ReportFinding, placeIn } from './check.js';
import {
  type ChannelUpdates,
  buildUpdateGraph,
  listOperatorChannels,
  updateGraphModes,
} from './update-graph.js';

const formatBundle = ({ operator, version }: CheckedBundle): string => `${operator}/${version}`;

function checkDangling(operator: CheckedOperator, report: ReportFinding): void {
  for (const channel of listOperatorChannels(operator)) {
    const { bundles, edges } = buildUpdateGraph(operator, channel);
    const dangling = bundles.slice(0, -1).filter((bundle) => (edges.get(bundle) ?? []).length === 0);
    const [first] = dangling;
    if (first === undefined) continue;
    const names = joinNames(dangling.map(formatBundle));
    const problem = `channel ${quoteGo(channel)}: no bundle replaces ${names}`;
    const hint = 'add spec.replaces, spec.skips or olm.skipRange to a newer bundle';
    report('error', problem, placeIn(first.getCsv(), ['metadata', 'name'], hint));
  }
}

function checkLoop(operator: CheckedOperator, report: ReportFinding): void {
  for (const channel of listOperatorChannels(operator)) {
    const edge = findBackEdge(buildUpdateGraph(operator, channel));
    if (edge === undefined) continue;
    const [from, to] = edge;
    const problem = `channel ${quoteGo(channel)}: upgrade cycle: ${formatBundle(from)} to ${formatBundle(to)}`;
    const hint = 'replace older bundles only';
    report('error', problem, placeIn(to.getCsv(), ['spec', 'replaces'], hint));
  }
}

/** Returns an edge that closes a cycle. Linear time, without recursion. */
function findBackEdge({ bundles, edges }: ChannelUpdates): [CheckedBundle, CheckedBundle] | undefined {
  const state = new Map<CheckedBundle, 'open' | 'done'>();
  for (const root of bundles) {
    const path: { bundle: CheckedBundle; next: number }[] = [{ bundle: root, next: 0 }];
    if (state.has(root)) continue;
    state.set(root, 'open');
    for (let top = path.at(-1); top !== undefined; top = path.at(-1)) {
      const target = edges.get(top.bundle)?.[top.next++];
      if (target === undefined) {
        state.set(top.bundle, 'done');
        path.pop();
        continue;
      }
      if (state.get(target) === 'open') return [top.bundle, target];
      if (state.has(target)) continue;
      state.set(target, 'open');
      path.push({ bundle: target, next: 0 });
    }
  }
  return undefined;
}

function checkUpgradeGraph({ config, directory }: CheckedOperator, report: ReportFinding): void {
  const mode = getValue(config.value, 'updateGraph');
  const file = config.value === null ? directory : config.file;
  if (mode === undefined || mode === null || mode === '') {
    const near = findNearest('updateGraph', Object.keys(getObject(config.value)));
    const isRenamed = near !== undefined && near !== 'updateGraph';
    const hint = isRenamed
      ? `rename ${quoteGo(near)}`
      : `set updateGraph to ${updateGraphModes.join(' or ')}`;
    const place = isRenamed ? config.findPlace([near]) : {};
    report('warning', 'updateGraph is missing, replaces-mode is used', { file, ...place, hint });
  } else if (!(updateGraphModes as readonly unknown[]).includes(mode)) {
    const hint = `use ${updateGraphModes.join(' or ')}`;
    report(
      'error',
      `unsupported updateGraph ${JSON.stringify(mode)}`,
      placeIn(config, ['updateGraph'], hint),
    );
  }
}

function checkUsingFbc(bundle: CheckedBundle, operator: CheckedOperator, report: ReportFinding): void {
  const isFirst = operator.bundles.length <= 1;
  const hint = isFirst
    ? 'start with file-based catalogs: set fbc.enabled in ci.yaml'
    : 'convert the operator to file-based catalogs with api.onboardOperator';
  report('warning', 'the operator does not use file-based catalogs', { file: bundle.directory, hint });
}

/** Reports bundles with a skip range and without `replaces`, unless each is alone in its channels. */
function checkPrunedGraph(bundle: CheckedBundle, operator: CheckedOperator, report: ReportFinding): void {
  const csv = bundle.getCsv();
  const range = getText(csv.value, 'metadata', 'annotations', 'olm.skipRange');
  if (range === '' || getText(csv.value, 'spec', 'replaces') !== '') return;
  const graphs = listOperatorChannels(operator).map((channel) => buildUpdateGraph(operator, channel));
  const isAlone = graphs.every(({ bundles }) => !bundles.includes(bundle) || bundles.length === 1);
  if (isAlone) return;
  const path = ['metadata', 'annotations', 'olm.skipRange'];
  const hint = 'add spec.replaces, so that older bundles stay in the channel';
  report(
    'warning',
    'olm.skipRange without spec.replaces may prune the upgrade graph',
    placeIn(csv, path, hint),
  );
}

const common = { suite: 'community', skipsFbc: true } as const;

export const graphChecks: readonly Check[] = [
  {
    ...common,
    name: 'check_dangling_bundles',
    summary: 'each bundle but the head of a channel has an upgrade',
    of: 'bundle',
    run: (_bundle, operator, report) => checkDangling(operator, report),
  },
  {
    ...common,
    name: 'check_upgrade_graph_loop',
    summary: 'channels have no upgrade cycle',
    of: 'operator',
    run: checkLoop,
  },
  {
    ...common,
    name: 'check_ci_upgrade_graph',
    summary: 'ci.yaml sets updateGraph',
    of: 'operator',
    run: checkUpgradeGraph,
  },
  {
    ...common,
    name: 'check_using_fbc',
    summary: 'the operator uses file-based catalogs',
    of: 'bundle',
    run: checkUsingFbc,
  },
  {
    name: 'check_pruned_graph',
    suite: 'isv',
    skipsFbc: true,
    summary: 'bundles with olm.skipRange have spec.replaces',
    of: 'bundle',
    run: checkPrunedGraph,
  },
];
