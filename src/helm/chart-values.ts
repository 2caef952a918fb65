import { OpmateError } from '../core/errors.js';
import { parseConstraint } from '../core/semver-range.js';
import { tryParse } from '../core/semver.js';
import { type JsonObject, isJsonObject } from '../document/json.js';
import type { Chart, ChartDependency } from './chart.js';
import {
  type GoMap,
  type GoValue,
  deepCopy,
  fromJsonValue,
  getMapValue,
  isGoMap,
  isTrue,
  setKey,
  toText,
} from './template/go-values.js';
import { parseLooseVersion } from './template/functions/versions.js';

/** A chart to render, under its alias, with its enabled sub-charts. */
export interface EnabledChart {
  chart: Chart;
  /** Alias, or name without one. */
  name: string;
  /** Default values, including imported ones. */
  values: GoMap;
  charts: EnabledChart[];
  /** Enabled dependencies of Chart.yaml, named by their aliases; all of them as they are if conditions are not checked. */
  dependencies: ChartDependency[];
}

export interface PreparedChart {
  root: EnabledChart;
  values: GoMap;
  /** Dependencies in Chart.yaml that are missing in `charts/`, with their chart. */
  absent: { chart: string; name: string }[];
}

/**
 * Applies aliases, conditions, tags and imports of dependencies, and merges default values downwards; `values` take
 * precedence over them, as those of `helm -f`. Throws OpmateError for values of a sub-chart that are no object, and for
 * exceeded limits. (Source: Helm 3, chartutil.ProcessDependenciesWithMerge and CoalesceValues.)
 */
export function prepareChart(chart: Chart, values: JsonObject = {}): PreparedChart {
  const absent: PreparedChart['absent'] = [];
  const root = everything(chart, chart.name);
  const own = fromJsonValue(values) as GoMap;
  enable(root, own, '', absent);
  importValues(root);
  return { root, values: coalesce(root, own), absent };
}

function everything(chart: Chart, name: string): EnabledChart {
  const charts = chart.charts.map((item) => everything(item, item.name));
  return {
    chart,
    name,
    values: fromJsonValue(chart.values) as GoMap,
    charts,
    dependencies: chart.dependencies,
  };
}

const getAlias = ({ alias, name }: ChartDependency): string => alias ?? name;

/**
 * Keeps the enabled sub-charts, from the top down; unlisted ones come first. `values` are those of the parent, in which
 * conditions start at `path`.
 */
function enable(made: EnabledChart, values: GoMap, path: string, absent: PreparedChart['absent']): void {
  const { chart, dependencies } = made;
  if (dependencies.length === 0) return;
  const listed: EnabledChart[] = [];
  for (const dependency of dependencies) {
    const inner = chart.charts.find((item) => isMatch(item, dependency));
    if (inner === undefined) absent.push({ chart: chart.name, name: dependency.name });
    else listed.push(everything(inner, getAlias(dependency)));
  }
  const unlisted = made.charts.filter((item) => !dependencies.some((entry) => isMatch(item.chart, entry)));
  made.charts = [...unlisted, ...listed];
  const merged = coalesce(made, values);
  const disabled = new Set(dependencies.filter((entry) => !isEnabled(entry, merged, path)).map(getAlias));
  made.dependencies = dependencies
    .map((entry) => ({ ...entry, name: getAlias(entry) }))
    .filter(({ name }) => !disabled.has(name));
  made.charts = made.charts.filter(({ name }) => !disabled.has(name));
  for (const inner of made.charts) enable(inner, merged, `${path}${inner.name}.`, absent);
}

function isMatch({ name, version }: Chart, dependency: ChartDependency): boolean {
  if (name !== dependency.name) return false;
  const range = tryParse(parseConstraint, dependency.version);
  const parsed = tryParse(parseLooseVersion, version);
  return range !== undefined && parsed !== undefined && range.contains(parsed);
}

/** Reports whether a dependency is enabled; a set condition takes precedence over tags. */
function isEnabled({ conditions, tags }: ChartDependency, values: GoMap, path: string): boolean {
  for (const condition of conditions) {
    const value = valueAt(values, path + condition);
    if (typeof value === 'boolean') return value;
  }
  const table = getMapValue(values, 'tags');
  if (!isGoMap(table)) return true;
  const set = tags.map((tag) => getMapValue(table, tag)).filter((value) => typeof value === 'boolean');
  return set.length === 0 || set.includes(true);
}

function valueAt(values: GoMap, path: string): GoValue | undefined {
  return path
    .split('.')
    .reduce<GoValue | undefined>(
      (value, key) => (isGoMap(value) ? getMapValue(value, key) : undefined),
      values,
    );
}

/** Copies values of sub-charts into those of their parents, from the bottom up. */
function importValues(made: EnabledChart): void {
  for (const inner of made.charts) importValues(inner);
  if (made.dependencies.length === 0) return;
  const values = merge(made, {});
  const imported: GoMap = {};
  for (const dependency of made.dependencies) {
    for (const rule of dependency.importValues) {
      if (typeof rule !== 'string' && !isJsonObject(rule)) continue;
      const [from, to] =
        typeof rule === 'string'
          ? [`exports.${rule}`, '.']
          : [toText(rule['child'] ?? null), toText(rule['parent'] ?? null)];
      const found = valueAt(values, `${dependency.name}.${from}`);
      if (!isGoMap(found)) continue;
      // Later imports to the same place change the values of the sub-chart, unless these are empty.
      const table = isTrue(found) ? found : {};
      fillTable(imported, to === '.' ? table : tableAt(to, table), true);
    }
  }
  made.values = fillTable(deepCopy(values) as GoMap, imported, true);
}

/** Returns a map in maps of the keys of a path. */
function tableAt(path: string, table: GoMap): GoMap {
  return path.split('.').reduceRight<GoMap>((inner, key) => toMap(key, inner), table);
}

function toMap(key: string, value: GoValue): GoMap {
  const made: GoMap = {};
  setKey(made, key, value);
  return made;
}

/** Returns values with the defaults of a chart and, below their names, of its sub-charts; a null takes a default away. */
function coalesce(chart: EnabledChart, values: GoMap): GoMap {
  return fillChart(chart, deepCopy(values) as GoMap, false);
}

/** Returns values as `coalesce` does, but with all nulls. */
function merge(chart: EnabledChart, values: GoMap): GoMap {
  return fillChart(chart, deepCopy(values) as GoMap, true);
}

function fillChart(chart: EnabledChart, values: GoMap, keepsNull: boolean, depth = 0): GoMap {
  if (depth > 50) throw new OpmateError('LIMIT', `chart ${chart.name}: values nested too deeply`);
  const isSubchart = (key: string): boolean => chart.charts.some(({ name }) => name === key);
  for (const [key, value] of Object.entries(deepCopy(chart.values) as GoMap)) {
    const own = getMapValue(values, key);
    if (own === undefined) setKey(values, key, value);
    else if (own === null && !keepsNull) delete values[key];
    else if (isGoMap(own) && isGoMap(value)) fillTable(own, value, keepsNull || isSubchart(key));
  }
  for (const inner of chart.charts) {
    const own = Object.hasOwn(values, inner.name) ? (values[inner.name] as GoValue) : {};
    if (!isGoMap(own))
      throw new OpmateError('INVALID', `chart ${chart.name}: values of ${inner.name}: expected an object`);
    setKey(values, inner.name, own);
    shareGlobals(values, own);
    fillChart(inner, own, keepsNull, depth + 1);
  }
  return values;
}

/** Copies globals of a parent, which take precedence; both must be objects where they exist. */
function shareGlobals(from: GoMap, to: GoMap): void {
  const [parent, own] = [getMapValue(from, 'global'), getMapValue(to, 'global')].map((value) =>
    value === undefined ? {} : value,
  );
  if (!isGoMap(parent) || !isGoMap(own)) return;
  for (const [key, value] of Object.entries(parent)) {
    const known = getMapValue(own, key);
    if (!isGoMap(value)) {
      if (!isGoMap(known)) setKey(own, key, value);
    } else if (known === undefined || isGoMap(known)) {
      setKey(own, key, fillTable({ ...value }, known ?? {}, true));
    }
  }
  setKey(to, 'global', own);
}

/**
 * Fills a map with the keys of another that it lacks, and maps in it likewise; returns it. Without `keepsNull`, a null
 * in it takes away a key that is not null in the other. May change both.
 */
function fillTable(target: GoMap, source: GoMap, keepsNull: boolean): GoMap {
  for (const [key, value] of Object.entries(source)) {
    const own = getMapValue(target, key);
    if (own === undefined) setKey(target, key, value);
    else if (own === null && value !== null && !keepsNull) delete target[key];
    else if (isGoMap(own) && isGoMap(value)) fillTable(own, value, keepsNull);
  }
  return target;
}
