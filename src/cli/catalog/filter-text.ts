import type { CatalogSelection } from '../../catalog/selection/selection.js';
import type { CatalogFacts } from '../../model/facts.js';
import { count, printable } from '../printable.js';

/** What `catalog filter` keeps, and why. */
export interface FilterReport {
  catalog: string;
  /** Packages that there were. */
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
      /** In the order of the channel; `reason` is there for those that were not asked for. */
      entries: { name: string; reason?: string }[];
    }[];
  }[];
  changes: string[];
  warnings: string[];
}

/** Puts together what is kept of `facts`. */
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
  const channels = new Map(filtered.facts.channels.map((one) => [`${one.package}\0${one.name}`, one]));
  return {
    catalog,
    packagesBefore: new Set(facts.packages.map(({ name }) => name)).size,
    packages: filtered.packages.map((one) => ({
      name: one.name,
      defaultChannel: one.defaultChannel,
      bundles: one.bundles,
      bundlesBefore: before.get(one.name) ?? 0,
      channels: one.channels.map(({ name, head }) => ({
        name,
        head,
        entriesBefore: before.get(`${one.name}\0${name}`) ?? 0,
        entries: (channels.get(`${one.name}\0${name}`)?.entries ?? []).map((entry) => {
          const reason = reasons.get([one.name, name, entry.name].join('\0'));
          return reason === undefined ? { name: entry.name } : { name: entry.name, reason };
        }),
      })),
    })),
    changes: filtered.changes,
    warnings: filtered.warnings,
  };
}

/** The report for people. */
export function filterText(report: FilterReport): string {
  const lines: string[] = [`${report.packages.length} of ${count(report.packagesBefore, 'package')}`];
  for (const one of report.packages) {
    const bundles = `${one.bundles} of ${count(one.bundlesBefore, 'bundle')}`;
    lines.push('', `${one.name}: ${bundles}, default channel ${one.defaultChannel}`);
    for (const channel of one.channels) {
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
