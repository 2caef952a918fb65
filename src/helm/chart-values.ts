import { OpmateError } from '../core/errors.js';
import { parseConstraint } from '../core/semver-range.js';
import { tryParse } from '../core/semver.js';
import type { JsonObject, JsonValue } from '../document/json.js';
import type { Chart, ChartDependency } from './chart.js';
import { type GoMap, deepCopy, fromJsonValue, getKey, isGoMap, setKey } from './template/go-values.js';
import { parseLooseVersion } from './template/functions/versions.js';

/** A chart to render, under its alias, with its enabled sub-charts. */
export interface EnabledChart {
  chart: Chart;
  /** Alias, or name without one. */
  name: string;
  /** Default values, including imported ones. */
  values: JsonObject;
  charts: EnabledChart[];
}

export interface PreparedChart {
  root: EnabledChart;
  values: GoMap;
  /** Dependencies in Chart.yaml that are missing in `charts/`, with their chart. */
  absent: { chart: string; name: string }[];
}

/**
 * Applies aliases, conditions, tags and imports of dependencies, and merges default values downwards. (Source: Helm
 * 3, chartutil.ProcessDependencies and CoalesceValues.)
 */
export function prepareChart(chart: Chart): PreparedChart {
  const absent: PreparedChart['absent'] = [];
  const root = enable(chart, chart.name, {}, absent);
  importValues(root);
  const values: GoMap = {};
  coalesce(root, values);
  return { root, values, absent };
}

/** Returns all sub-charts by alias, including unlisted ones, without disabled ones, from the top down. */
function enable(chart: Chart, name: string, values: GoMap, absent: PreparedChart['absent']): EnabledChart {
  const made: EnabledChart = { chart, name, values: fromJsonValue(chart.values) as JsonObject, charts: [] };
  const named = new Set(chart.dependencies.map((dependency) => dependency.name));
  const candidates: { chart: Chart; name: string; dependency: ChartDependency | undefined }[] = chart.charts
    .filter((item) => !named.has(item.name))
    .map((item) => ({ chart: item, name: item.name, dependency: undefined }));
  for (const dependency of chart.dependencies) {
    const subchart = chart.charts.find(
      (item) => item.name === dependency.name && fits(item.version, dependency.version),
    );
    if (subchart === undefined) absent.push({ chart: chart.name, name: dependency.name });
    else candidates.push({ chart: subchart, name: dependency.alias ?? dependency.name, dependency });
  }
  // Conditions see the values from above over those of this chart and all charts below.
  const merged = deepCopy(values) as GoMap;
  coalesce({ ...made, charts: candidates.map((item) => everything(item.chart, item.name)) }, merged);
  for (const { chart: inner, name: alias, dependency } of candidates) {
    if (dependency !== undefined && !isEnabled(dependency, merged)) continue;
    const own = getKey(merged, alias);
    made.charts.push(enable(inner, alias, isGoMap(own) ? own : {}, absent));
  }
  return made;
}

function everything(chart: Chart, name: string): EnabledChart {
  const charts = chart.charts.map((item) => everything(item, item.name));
  return { chart, name, values: chart.values, charts };
}

function fits(version: string, constraint: string): boolean {
  if (constraint === '' || version === constraint) return true;
  const range = tryParse(parseConstraint, constraint);
  const parsed = tryParse(parseLooseVersion, version);
  return range !== undefined && parsed !== undefined && range.contains(parsed);
}

/** Reports whether a dependency is enabled; a set condition takes precedence over tags. */
function isEnabled({ conditions, tags }: ChartDependency, values: GoMap): boolean {
  for (const path of conditions) {
    const switched = valueAt(values, path);
    if (typeof switched === 'boolean') return switched;
  }
  const table = getKey(values, 'tags');
  if (!isGoMap(table)) return true;
  const set = tags.map((tag) => getKey(table, tag)).filter((value) => typeof value === 'boolean');
  return set.length === 0 || set.includes(true);
}

function valueAt(values: GoMap, path: string): unknown {
  return path
    .split('.')
    .reduce<unknown>(
      (value, key) => (isGoMap(value as JsonValue) ? getKey(value as GoMap, key) : undefined),
      values,
    );
}

/** Copies values of sub-charts into those of their parents, from the bottom up. */
function importValues(chart: EnabledChart): void {
  for (const inner of chart.charts) importValues(inner);
  for (const dependency of chart.chart.dependencies) {
    const inner = chart.charts.find(
      (enabledChart) => enabledChart.name === (dependency.alias ?? dependency.name),
    );
    if (inner === undefined) continue;
    for (const rule of dependency.importValues) {
      const [from, to] =
        typeof rule === 'string'
          ? [`exports.${rule}`, '.']
          : isGoMap(rule)
            ? [rule['child'], rule['parent']]
            : [];
      const value = typeof from === 'string' ? valueAt(inner.values, from) : undefined;
      if (typeof to !== 'string' || !isGoMap(value as JsonValue)) continue;
      const table = to === '.' ? chart.values : tableAt(chart.values, to);
      fill(table, deepCopy(value as GoMap) as GoMap);
    }
  }
}

function tableAt(values: GoMap, path: string): GoMap {
  let table = values;
  for (const key of path.split('.')) {
    const next = getKey(table, key);
    const made: GoMap = isGoMap(next) ? next : {};
    setKey(table, key, made);
    table = made;
  }
  return table;
}

/** Fills `values` with the defaults of a chart and, below their names, of its sub-charts. */
function coalesce(chart: EnabledChart, values: GoMap, depth = 0): void {
  if (depth > 50) throw new OpmateError('LIMIT', `chart ${chart.name}: values nested too deeply`);
  for (const [key, value] of Object.entries(chart.values)) {
    const own = getKey(values, key);
    if (!Object.hasOwn(values, key)) setKey(values, key, deepCopy(value));
    // A null takes a default away.
    else if (own === null) delete values[key];
    else if (isGoMap(own) && isGoMap(value)) fill(own, deepCopy(value) as GoMap);
  }
  for (const inner of chart.charts) {
    const own = getKey(values, inner.name);
    if (own !== undefined && own !== null && !isGoMap(own))
      throw new OpmateError('INVALID', `chart ${chart.name}: values of ${inner.name}: expected an object`);
    const table: GoMap = isGoMap(own) ? own : {};
    setKey(values, inner.name, table);
    shareGlobals(values, table);
    coalesce(inner, table, depth + 1);
  }
}

/** Copies globals of a parent, which take precedence. */
function shareGlobals(from: GoMap, to: GoMap): void {
  const [parent, own] = [getKey(from, 'global'), getKey(to, 'global')];
  const made = isGoMap(parent) ? (deepCopy(parent) as GoMap) : {};
  if (isGoMap(own)) fill(made, own);
  setKey(to, 'global', made);
}

function fill(target: GoMap, source: GoMap): void {
  for (const [key, value] of Object.entries(source)) {
    const own = getKey(target, key);
    if (own === undefined) setKey(target, key, value);
    else if (own === null) delete target[key];
    else if (isGoMap(own) && isGoMap(value)) fill(own, value);
  }
}
