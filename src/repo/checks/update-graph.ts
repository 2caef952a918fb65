import { OpmateError } from '../../core/errors.js';
import { quoteGo } from '../../core/go-json-quote.js';
import { getOrAdd } from '../../core/groups.js';
import { sortedByBytes } from '../../core/order.js';
import { parseConstraint } from '../../core/semver-range.js';
import { parseVersion, tryParse } from '../../core/semver.js';
import { getText, getTexts, getValue } from '../../document/json-fields.js';
import { type CheckedBundle, getChannels, getCsvAnnotations, sortBundles } from './bundle-model.js';
import type { CheckedOperator } from './check.js';

/** Upgrade edges of a channel: from each bundle to those that replace it. */
export interface ChannelUpdates {
  channel: string;
  /** Lowest version first. */
  bundles: CheckedBundle[];
  edges: Map<CheckedBundle, CheckedBundle[]>;
}

/** Values of `updateGraph` in `ci.yaml`. */
export const updateGraphModes = ['replaces-mode', 'semver-mode'] as const;

/** Returns the channels of the bundles of an operator, sorted. */
export function listOperatorChannels({ bundles }: CheckedOperator): string[] {
  return sortedByBytes(new Set(bundles.flatMap(getChannels)));
}

/**
 * Returns the upgrade edges among the bundles of a channel. Bundles are named by version; edges from bundles that the
 * channel lacks are omitted. Throws OpmateError for an unknown mode and an invalid `replaces`. (Source: update_graph of
 * operator_repo.)
 */
export function buildUpdateGraph(operator: CheckedOperator, channel: string): ChannelUpdates {
  const mode = getMode(operator);
  const bundles = sortBundles(operator.bundles.filter((bundle) => getChannels(bundle).includes(channel)));
  const edges = new Map<CheckedBundle, CheckedBundle[]>();
  const add = (from: CheckedBundle, to: CheckedBundle): void => {
    const targets = getOrAdd(edges, from, () => []);
    if (!targets.includes(to)) targets.push(to);
  };
  if (mode === 'semver-mode') {
    for (const [index, bundle] of bundles.entries()) {
      const next = bundles[index + 1];
      if (next !== undefined) add(bundle, next);
    }
    return { channel, bundles, edges };
  }
  for (const bundle of bundles) {
    for (const from of findReplaced(bundle, bundles)) add(from, bundle);
  }
  return { channel, bundles, edges };
}

function getMode({ config }: CheckedOperator): string {
  const mode = getText(config.value, 'updateGraph') || 'replaces-mode';
  if ((updateGraphModes as readonly string[]).includes(mode)) return mode;
  throw new OpmateError('INVALID', `unsupported updateGraph ${quoteGo(mode)}`, {
    file: config.file,
    line: config.findPlace(['updateGraph']).line,
    hint: `use ${updateGraphModes.join(' or ')}`,
  });
}

/** Returns the bundles that a bundle replaces, skips, or includes in its skip range. */
function findReplaced(bundle: CheckedBundle, bundles: readonly CheckedBundle[]): CheckedBundle[] {
  const csv = bundle.getCsv();
  const names = [...getTexts(csv.value, 'spec', 'skips')];
  const replaces = getValue(csv.value, 'spec', 'replaces');
  if (typeof replaces === 'string' && replaces !== '') names.push(replaces);
  const versions = new Set(names.map((name) => getReplacedVersion(bundle, name)));
  const range = getSkipRange(bundle);
  return bundles.filter((other) => {
    const { version } = other.getCsvName();
    if (versions.has(version)) return true;
    if (range === undefined || other === bundle) return false;
    const parsed = tryParse(parseVersion, version);
    return parsed !== undefined && range(parsed);
  });
}

/** Returns the version in the name of a replaced bundle. Throws OpmateError for a name without a dot. */
export function getReplacedVersion(bundle: CheckedBundle, name: string): string {
  const dot = name.indexOf('.');
  if (dot >= 0) return name.slice(dot + 1).replace(/^v+/, '');
  const csv = bundle.getCsv();
  throw new OpmateError('INVALID', `invalid bundle name ${quoteGo(name)} in spec.replaces or spec.skips`, {
    file: csv.file,
    line: csv.findPlace(['spec', 'replaces']).line,
    hint: 'use the name of a bundle: NAME.vVERSION',
  });
}

function getSkipRange(bundle: CheckedBundle): ReturnType<typeof parseConstraint>['contains'] | undefined {
  const text = getText(getCsvAnnotations(bundle), 'olm.skipRange');
  const range = text === '' ? undefined : tryParse(parseConstraint, text);
  return range === undefined ? undefined : (version) => range.contains(version);
}
