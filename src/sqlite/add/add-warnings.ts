import { OpmateError, getMessage } from '../../core/errors.js';
import { parseGoJson, quoteGo } from '../../document/go-json.js';
import { getText } from '../../document/json-fields.js';
import { parseRange } from '../../core/semver.js';
import { propertyTypes } from '../../model/declarative-config.js';
import { labelFaults } from '../../graph/validate.js';
import type { BundleRecord, TypedValue } from '../schema/bundle-record.js';
import { convertBundle } from '../read/convert-package.js';
import { type ColumnValue, type Database, text } from '../schema/database.js';
import type { StagedBundle } from './stage.js';

/**
 * What is wrong with bundles that were added: an index takes them, as `opm` does, and then cannot be rendered or
 * listed, or no catalog that is made of it is valid. A line each, which says what to do.
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
    ].map((warning) => `${reference}: bundle ${shown(record.name)} was added, but ${warning}`);
  });
}

/** The `olm.package` properties that the index has of bundles, which are not those of their images alone. */
function packageProperties(database: Database, bundles: readonly StagedBundle[]): Map<string, TypedValue[]> {
  const byType = new Map<string, TypedValue[]>();
  const rows = database.all<{ name: string; value: ColumnValue }>(
    `SELECT operatorbundle_name AS name, value FROM properties
     WHERE type = ? AND operatorbundle_name IN (SELECT value FROM json_each(?))`,
    propertyTypes.package,
    JSON.stringify(bundles.map(({ record }) => record.name)),
  );
  for (const { name, value } of rows) {
    const property = { type: propertyTypes.package, value: text(value) };
    byType.set(name, [...(byType.get(name) ?? []), property]);
  }
  return byType;
}

function packageNameWarnings({ packageName }: BundleRecord): string[] {
  const faults = labelFaults(packageName);
  if (faults.length === 0) return [];
  return [
    `opmate validate refuses a catalog with this package: invalid package name ${quoteGo(packageName)}: ` +
      `${faults.join(', ')}; rename the package in metadata/annotations.yaml`,
  ];
}

/** What rendering would say of the bundle. */
function unreadableWarnings(record: BundleRecord, packages: readonly TypedValue[]): string[] {
  const stored = {
    ...record,
    id: 0,
    // Without an image it is read from its manifests, which are not looked at here.
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

/** Versions of the packages that it depends on, which are not looked at when an index is rendered. */
function rangeWarnings({ dependencies }: BundleRecord): string[] {
  return dependencies.flatMap(({ type, value }) => {
    if (type !== propertyTypes.package) return [];
    const range = dependencyRange(value);
    try {
      parseRange(range);
      return [];
    } catch (error) {
      return [
        `opmate validate refuses a catalog with it: dependency of type ${type}: invalid version range ` +
          `${quoteGo(range)}: ${getMessage(error)}; correct it in metadata/dependencies.yaml`,
      ];
    }
  });
}

function dependencyRange(value: string): string {
  return getText(parseGoJson(value), 'version');
}

/** Quoted where it would make lines of its own. */
function shown(name: string): string {
  return /[\r\n]/.test(name) ? quoteGo(name) : name;
}
