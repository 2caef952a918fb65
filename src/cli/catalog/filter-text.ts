import type { CatalogSelection } from '../../catalog/selection/selection.js';
import type { CatalogFacts } from '../../model/facts.js';
import { count, printable } from '../printable.js';

/** Content that `catalog filter` keeps, with reasons. */
export interface FilterReport {
  catalog: string;
  /** Number of packages before the filter. */
  packagesBefore: number;
  packages: {
    name: string;
    defaultChannel: string;
    bundles: number;
    bundlesBefore: number;
    channels: {
      name: string;
      head: string;
      entriesBefore: number;
      /** In the order of the channel; `reason` is set for those beyond the criteria. */
      entries: { name: string; reason?: string }[];
    }[];
  }[];
  changes: string[];
  warnings: string[];
}

/** Returns the report of a selection from `facts`. */
export function filterReport(catalog: string, facts: CatalogFacts, filtered: CatalogSelection): FilterReport {
  const before = new Map<string, number>();
  const countOne = (...parts: string[]): void => {
    const key = parts.join('\0');
    before.set(key, (before.get(key) ?? 0) + 1);
  };
  for (const { package: of } of facts.bundles) countOne(of);
  for (const { package: of, name, entries } of facts.channels) before.set(`${of}\0${name}`, entries.length);
  const reasons = new Map(
    filtered.kept.map(({ package: of, channel, bundle, reason }) => [
      [of, channel, bundle].join('\0'),
      reason,
    ]),
  );
  const channels = new Map(
    filtered.facts.channels.map((channel) => [`${channel.package}\0${channel.name}`, channel]),
  );
  return {
    catalog,
    packagesBefore: new Set(facts.packages.map(({ name }) => name)).size,
    packages: filtered.packages.map((selectedPackage) => ({
      name: selectedPackage.name,
      defaultChannel: selectedPackage.defaultChannel,
      bundles: selectedPackage.bundles,
      bundlesBefore: before.get(selectedPackage.name) ?? 0,
      channels: selectedPackage.channels.map(({ name, head }) => ({
        name,
        head,
        entriesBefore: before.get(`${selectedPackage.name}\0${name}`) ?? 0,
        entries: (channels.get(`${selectedPackage.name}\0${name}`)?.entries ?? []).map((entry) => {
          const reason = reasons.get([selectedPackage.name, name, entry.name].join('\0'));
          return reason === undefined ? { name: entry.name } : { name: entry.name, reason };
        }),
      })),
    })),
    changes: filtered.changes,
    warnings: filtered.warnings,
  };
}

/** Returns the report as text. */
export function filterText(report: FilterReport): string {
  const lines: string[] = [`${report.packages.length} of ${count(report.packagesBefore, 'package')}`];
  for (const item of report.packages) {
    const bundles = `${item.bundles} of ${count(item.bundlesBefore, 'bundle')}`;
    lines.push('', `${item.name}: ${bundles}, default channel ${item.defaultChannel}`);
    for (const channel of item.channels) {
      const entries = `${channel.entries.length} of ${channel.entriesBefore}`;
      lines.push(`  ${channel.name}: ${entries}, head ${channel.head}`);
      for (const { name, reason } of channel.entries) {
        lines.push(`    ${name}${reason === undefined ? '' : `  ${reason}`}`);
      }
    }
  }
  if (report.changes.length > 0) lines.push('', 'changes:', ...report.changes.map((change) => `  ${change}`));
  return `${printable(lines.join('\n'))}\n`;
}
