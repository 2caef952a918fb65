import { formatMessage, formatPath } from '../../core/diagnostic.js';
import { groupBy } from '../../core/groups.js';
import { quoteGo } from '../../core/go-json-quote.js';
import { joinNames } from '../../core/suggest.js';
import type { JsonObject } from '../../document/json.js';
import { getObjects, getText, getTexts } from '../../document/json-fields.js';
import { describeUnread, findMeantCatalog } from '../ci-config.js';
import type { CheckedBundle, CheckedFile } from './bundle-model.js';
import { type Check, type CheckedOperator, type ReportFinding, placeIn } from './check.js';
import { type Shape, ciShape, findViolations, releaseShape } from './schema.js';

/** Channels that semver templates may name in a release. */
const semverChannels = ['Fast', 'Candidate', 'Stable'];

function getMappings({ config }: CheckedOperator): JsonObject[] {
  return getObjects(config.value, 'fbc', 'catalog_mapping');
}

function reportViolations(file: CheckedFile, shape: Shape, report: ReportFinding): void {
  for (const { line, column, hint, ...fault } of file.faults ?? []) {
    report('error', formatMessage(fault), { file: file.file, line, column, hint });
  }
  for (const { path, problem, hint } of findViolations(file.value, shape)) {
    const subject = formatPath(path);
    report('error', subject === '' ? problem : `${subject}: ${problem}`, placeIn(file, path, hint));
  }
}

function checkCatalogUsage(operator: CheckedOperator, report: ReportFinding): void {
  const uses = getMappings(operator).flatMap((mapping, index) =>
    [...new Set(getTexts(mapping, 'catalog_names'))].map((catalog) => ({
      catalog,
      index,
      template: getText(mapping, 'template_name'),
    })),
  );
  for (const [catalog, list] of groupBy(uses, (use) => use.catalog)) {
    const last = list.at(-1);
    if (last === undefined) continue;
    const place = placeIn(operator.config, ['fbc', 'catalog_mapping', last.index, 'catalog_names']);
    const meant = findMeantCatalog(catalog);
    if (meant !== undefined) report('warning', describeUnread(catalog), { ...place, hint: `use ${meant}` });
    if (list.length < 2) continue;
    const templates = joinNames(list.map(({ template }) => template));
    const problem = `catalog ${quoteGo(catalog)} is mapped by several templates: ${templates}`;
    report('error', problem, { ...place, hint: 'keep each catalog in one mapping' });
  }
}

/** Reports whether a bundle may be released as its `release-config.yaml` says. */
function checkReleaseConfig(bundle: CheckedBundle, operator: CheckedOperator, report: ReportFinding): void {
  const { releaseConfig } = bundle;
  if (releaseConfig === undefined) return;
  if (!operator.isFbc) {
    const hint = 'set fbc.enabled in ci.yaml, or remove release-config.yaml';
    report('error', 'the operator has no file-based catalogs', { file: releaseConfig.file, hint });
    return;
  }
  const mappings = new Map(getMappings(operator).map((item) => [getText(item, 'template_name'), item]));
  for (const [index, item] of getObjects(releaseConfig.value, 'catalog_templates').entries()) {
    const template = getText(item, 'template_name');
    const mapping = mappings.get(template);
    const path = ['catalog_templates', index];
    if (mapping === undefined) {
      const problem = `template ${quoteGo(template)} is not mapped to a catalog in ci.yaml`;
      const hint = 'add it to fbc.catalog_mapping';
      report('error', problem, placeIn(releaseConfig, [...path, 'template_name'], hint));
      continue;
    }
    const wrong = getTexts(item, 'channels').filter((channel) => !semverChannels.includes(channel));
    if (getText(mapping, 'type') !== 'olm.semver' || wrong.length === 0) continue;
    const problem = `semver template ${quoteGo(template)} has no channel ${joinNames(wrong)}`;
    const hint = `use ${semverChannels.join(', ')}`;
    report('error', problem, placeIn(releaseConfig, [...path, 'channels'], hint));
  }
}

export const configChecks: readonly Check[] = [
  {
    name: 'check_schema_operator_ci_config',
    suite: 'common',
    summary: 'ci.yaml complies with its schema',
    of: 'operator',
    run({ config }, report) {
      if (config.value !== null) reportViolations(config, ciShape, report);
    },
  },
  {
    name: 'check_catalog_usage_ci_config',
    suite: 'common',
    summary: 'each catalog is mapped by one template',
    of: 'operator',
    run: checkCatalogUsage,
  },
  {
    name: 'check_bundle_release_config',
    suite: 'common',
    summary: 'release-config.yaml names mapped templates and their channels',
    of: 'bundle',
    run: checkReleaseConfig,
  },
  {
    name: 'check_validate_schema_bundle_release_config',
    suite: 'common',
    summary: 'release-config.yaml complies with its schema',
    of: 'bundle',
    run({ releaseConfig }, _operator, report) {
      if (releaseConfig !== undefined) reportViolations(releaseConfig, releaseShape, report);
    },
  },
];
