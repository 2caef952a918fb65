import { compareVersions } from '../../core/semver.js';
import type { AppliedConstraint } from './choose.js';
import type { ResolverCatalog, ResolverEntry } from './resolver-types.js';
import { existingCatalog } from './resolver-types.js';
import { hasPackage } from './predicates.js';

/** One line of a conflict. */
export interface ConflictLine {
  /** Message of OLM. */
  text: string;
  /** What catalogs have instead, for a requirement that nothing meets. */
  detail: string | undefined;
  /** What makes this line go away. */
  remedy: string | undefined;
}

/** Explains the constraints of a conflict: what there is instead, and what would release it. */
export function explainConflict(
  conflict: readonly AppliedConstraint[],
  catalogs: readonly ResolverCatalog[],
): ConflictLine[] {
  return conflict.map((item) => ({
    text: item.constraint.text,
    detail: describeDetail(item, catalogs),
    remedy: describeRemedy(item),
  }));
}

function describeRemedy({ variable, constraint }: AppliedConstraint): string | undefined {
  const { entry, subscription } = variable;
  switch (constraint.kind) {
    case 'mandatory':
      if (subscription !== undefined) return `delete Subscription ${subscription.name}`;
      return entry === undefined
        ? undefined
        : `subscribe to ${entry.package || 'its package'}, or delete ClusterServiceVersion ${entry.name}`;
    case 'prohibited':
      return subscription === undefined
        ? 'use a bundle that is not deprecated'
        : `change catalog, package, channel or startingCSV of Subscription ${subscription.name}`;
    case 'dependency':
      if (subscription !== undefined) return `select another channel in Subscription ${subscription.name}`;
      return constraint.candidates.length === 0 ? 'add a catalog with a bundle that meets it' : undefined;
    case 'conflict':
      return undefined;
    case 'at-most-one':
      return 'install one of them in another namespace';
  }
}

function describeDetail(
  { variable, constraint }: AppliedConstraint,
  catalogs: readonly ResolverCatalog[],
): string | undefined {
  if (constraint.kind !== 'dependency' || constraint.candidates.length > 0 || variable.entry === undefined)
    return undefined;
  const [, name] = /with package: (\S+) and with version in range:/.exec(constraint.text) ?? [];
  const [, group, version, kind] =
    /providing an API with group: (.*), version: (.*), kind: (.*)$/.exec(constraint.text) ?? [];
  if (name !== undefined) {
    const found = catalogs.flatMap(({ entries }) => entries.filter((entry) => hasPackage(entry, name)));
    return found.length === 0 ? `no visible catalog has package ${name}` : describeVersions(name, found);
  }
  if (kind === undefined) return undefined;
  const found = catalogs.flatMap(({ entries }) =>
    entries.filter(({ apis }) => apis.some((api) => api.group === group && api.kind === kind)),
  );
  if (found.length === 0) return `no visible catalog provides ${kind} of ${group}`;
  const versions = new Set(
    found.flatMap(({ apis }) =>
      apis.filter((api) => api.group === group && api.kind === kind).map((api) => api.version),
    ),
  );
  return versions.has(version as string)
    ? `bundles that provide it are not on the upgrade line of their channels`
    : `catalogs provide ${kind} of ${group} in ${[...versions].sort().join(', ')} only`;
}

function describeVersions(name: string, found: readonly ResolverEntry[]): string {
  const byCatalog = new Map<string, ResolverEntry[]>();
  for (const entry of found) {
    const key =
      entry.catalog.name === existingCatalog
        ? `namespace ${entry.catalog.namespace}`
        : `catalog ${entry.catalog.namespace}/${entry.catalog.name}`;
    byCatalog.set(key, [...(byCatalog.get(key) ?? []), entry]);
  }
  const lists = [...byCatalog].map(([catalog, entries]) => {
    const sorted = entries
      .filter(({ version }) => version !== undefined)
      .sort((a, b) => compareVersions(a.version as never, b.version as never));
    const [first, last] = [sorted[0], sorted.at(-1)];
    const range =
      first?.versionText === last?.versionText
        ? `${first?.versionText ?? 'no version'}`
        : `${first?.versionText} to ${last?.versionText}`;
    return `${catalog} has ${name} ${range}`;
  });
  return lists.join('; ');
}
