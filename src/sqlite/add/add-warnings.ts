import { OpmateError, getMessage } from '../../core/errors.js';
import { quoteIfNeeded } from '../../core/go-json-quote.js';
import { pushTo } from '../../core/groups.js';
import { parseGoJson, quoteGo } from '../../document/go-json.js';
import { getText } from '../../document/json-fields.js';
import { parseRange } from '../../core/semver.js';
import { propertyTypes } from '../../model/declarative-config.js';
import { dns1123LabelFaults } from '../../kube/names.js';
import type { BundleRecord, TypedValue } from '../schema/bundle-record.js';
import { convertBundle } from '../read/convert-package.js';
import type { Database } from '../schema/database.js';
import type { StagedBundle } from './stage.js';

/**
 * Returns warnings about added bundles: an index accepts them, as in `opm`, but can then not be rendered or listed,
 * or yields an invalid catalog. One line each, with a remedy.
 */
export function findAddWarnings(database: Database, bundles: readonly StagedBundle[]): string[] {
  const packages = packageProperties(database, bundles);
  const named = new Set<string>();
  return bundles.flatMap(({ record, reference }) => {
    const isFirst = !named.has(record.packageName);
    named.add(record.packageName);
    return [
      ...(isFirst ? packageNameWarnings(record) : []),
      ...unreadableWarnings(record, packages.get(record.name) ?? []),
      ...rangeWarnings(record),
    ].map((warning) => `${reference}: bundle ${quoteIfNeeded(record.name)} was added, but ${warning}`);
  });
}

/** Returns the `olm.package` properties of bundles in the index, which are not only those of their images. */
function packageProperties(database: Database, bundles: readonly StagedBundle[]): Map<string, TypedValue[]> {
  const rows = database.textRows<'name' | 'value'>(
    `SELECT operatorbundle_name AS name, value FROM properties
     WHERE type = ? AND operatorbundle_name IN (SELECT value FROM json_each(?))`,
    propertyTypes.package,
    JSON.stringify(bundles.map(({ record }) => record.name)),
  );
  const byName = new Map<string, TypedValue[]>();
  for (const { name, value } of rows) pushTo(byName, name, { type: propertyTypes.package, value });
  return byName;
}

function packageNameWarnings({ packageName }: BundleRecord): string[] {
  const faults = dns1123LabelFaults(packageName);
  if (faults.length === 0) return [];
  return [
    `api.validate refuses a catalog with this package: invalid package name ${quoteGo(packageName)}: ` +
      `${faults.join(', ')}; rename the package in metadata/annotations.yaml`,
  ];
}

/** Returns the problems that rendering the bundle would report. */
function unreadableWarnings(record: BundleRecord, packages: readonly TypedValue[]): string[] {
  const stored = {
    ...record,
    id: 0,
    // A bundle without an image is read from its manifests, which are not checked here.
    image: record.image || 'none',
    images: [],
    properties: [...record.properties.filter(({ type }) => type !== propertyTypes.package), ...packages],
  };
  const faults: string[] = [];
  if (record.channels.includes('')) {
    faults.push(
      'channel name must not be empty; leave out the empty one of its channels in metadata/annotations.yaml',
    );
  }
  try {
    const problems = convertBundle(stored, record.packageName).faults;
    faults.push(...problems.map((fault) => `${fault}; correct the bundle, and add it anew`));
  } catch (error) {
    if (!(error instanceof OpmateError)) throw error;
    faults.push(`${error.message}; ${error.hint ?? 'correct the bundle, and add it anew'}`);
  }
  return faults.map((fault) => `opmate cannot render the index with it: ${fault}`);
}

/** Returns the problems of version ranges of required packages, which rendering an index does not check. */
function rangeWarnings({ dependencies }: BundleRecord): string[] {
  return dependencies.flatMap(({ type, value }) => {
    if (type !== propertyTypes.package) return [];
    const range = getText(parseGoJson(value), 'version');
    try {
      parseRange(range);
      return [];
    } catch (error) {
      return [
        `api.validate refuses a catalog with it: dependency of type ${type}: invalid version range ` +
          `${quoteGo(range)}: ${getMessage(error)}; correct it in metadata/dependencies.yaml`,
      ];
    }
  });
}
