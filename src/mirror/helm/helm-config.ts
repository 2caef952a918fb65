import { OpmateError } from '../../core/errors.js';
import { quoteGo } from '../../core/go-json-quote.js';
import { getOrAdd } from '../../core/groups.js';
import type { Field } from '../../document/field.js';
import { isRepositoryName } from '../../oci/registry/registry-names.js';
import { parseJsonPath } from '../../helm/json-path.js';
import { openItem, readItems, readPlatforms } from '../image-set/config-fields.js';

/** The charts of an image set: `mirror.helm`. */
export type HelmConfig = ReturnType<typeof readHelmConfig>;
/** A chart repository. */
export type HelmRepositoryConfig = NonNullable<ReturnType<typeof readRepository>>;
/** Options of a chart. */
export type ChartConfig = ReturnType<typeof readChart>;
/** A chart in a directory or archive. */
export type LocalChartConfig = NonNullable<ReturnType<typeof readLocal>>;

/** Reads the section; reports errors to the document's diagnostics. */
export function readHelmConfig(section: Field) {
  const fields = section.isPresent ? section.object(['repositories', 'local']) : undefined;
  const byName = new Map<string, HelmRepositoryConfig>();
  const repositories = readItems(fields?.repositories.optionalList() ?? [], (item) => {
    const repository = readRepository(item);
    const first = repository && getOrAdd(byName, repository.name, () => repository);
    if (first !== undefined && first.url !== repository?.url) {
      const problem = `duplicate repository ${quoteGo(first.name)}, first defined on line ${first.place.line}`;
      item.fail(problem, { code: 'duplicate', hint: 'rename one of them' });
    }
    return repository;
  });
  return { repositories, local: readItems(fields?.local.optionalList() ?? [], readLocal) };
}

const chartKeys = ['name', 'version', 'path', 'imagePaths', 'platforms', 'values'] as const;

function readRepository(item: Field) {
  const fields = openItem(item, ['name', 'url', 'charts'], 'name');
  if (fields === undefined) return undefined;
  const isListed = fields.charts.isPresent;
  const [name, url] = [fields.name.text(), fields.url.parsed((text) => parseUrl(text, isListed))];
  const charts = readItems(fields.charts.optionalList(), (entry) => {
    const chart = openItem(entry, chartKeys, 'name');
    const chartName = chart?.name.text();
    if (chart === undefined || chartName === undefined) return undefined;
    chart.path.optionalText();
    // Without a version: the newest stable one.
    return { name: chartName, version: chart.version.optionalText(), ...readChart(chart, entry) };
  });
  if (name === undefined || url === undefined) return undefined;
  // Undefined for all versions of all charts except libraries.
  return { name, url, place: item.place, charts: isListed ? charts : undefined };
}

function readLocal(item: Field) {
  const fields = openItem(item, chartKeys, 'path');
  if (fields === undefined) return undefined;
  const path = fields.path.text();
  const name = fields.name.optionalText();
  // No effect, as with oc-mirror: a file has one version.
  fields.version.optionalText();
  const chart = readChart(fields, item);
  return path === undefined ? undefined : { path, name: name ?? path, ...chart };
}

function readChart(fields: Readonly<Record<'imagePaths' | 'platforms' | 'values', Field>>, item: Field) {
  const imagePaths = fields.imagePaths.optionalList().map((field) => field.parsed(parseJsonPath));
  return {
    /** Paths of further images in manifests. */
    imagePaths: imagePaths.filter((path) => path !== undefined),
    platforms: readPlatforms(fields.platforms),
    /** Values that take precedence over the defaults of the chart. */
    values: fields.values.isSet ? fields.values.jsonObject() : undefined,
    place: item.place,
  };
}

function parseUrl(text: string, hasCharts: boolean): string {
  if (text.startsWith('oci://')) {
    if (hasCharts) {
      parseChartRegistry(text);
      return text;
    }
    throw new OpmateError('UNSUPPORTED', `${quoteGo(text)}: charts in registries have no index`, {
      hint: 'pull the chart with helm pull and list its file below helm.local',
    });
  }
  if (URL.canParse(text) && /^https?:$/.test(new URL(text).protocol)) return text;
  throw new OpmateError('INVALID', `${quoteGo(text)}: not an http or https URL`);
}

/** Parses `oci://REGISTRY/PATH`, below which charts are repositories. Throws OpmateError. */
export function parseChartRegistry(url: string): { registry: string; path: string } {
  const [registry = '', ...parts] = url.slice('oci://'.length).replace(/\/+$/, '').split('/');
  const path = parts.join('/');
  const isRegistry =
    /^[A-Za-z0-9.-]+(?::\d{1,5})?$/.test(registry) || /^\[[0-9a-f:]+\](?::\d{1,5})?$/.test(registry);
  if (isRegistry && (path === '' || isRepositoryName(path))) return { registry, path };
  throw new OpmateError('INVALID', `${quoteGo(url)} is not oci://REGISTRY/PATH`);
}
