import { sortedByBytes } from '../../core/order.js';
import type { Lifecycle, LifecycleVersion } from '../../model/lifecycle.js';

/** A difference of the lifecycles of a package. */
export interface LifecycleChange {
  package: string;
  /** Minor version of the operator; undefined for the package. */
  version?: string | undefined;
  /** Phase, or platform, of the version. */
  phase?: string | undefined;
  platform?: string | undefined;
  /** Older value; undefined if added. A period is `2026-01-01..2026-06-30`, versions are separated by commas. */
  from?: string | undefined;
  /** Newer value; undefined if removed. */
  to?: string | undefined;
}

/** Returns the differences between the lifecycles of packages, by package, version, phase and platform. */
export function diffLifecycles(
  before: ReadonlyMap<string, Lifecycle>,
  after: ReadonlyMap<string, Lifecycle>,
): LifecycleChange[] {
  const packages = sortedByBytes(new Set([...before.keys(), ...after.keys()]));
  return packages.flatMap((name) => {
    const [old, current] = [before.get(name), after.get(name)];
    if (old !== undefined && current !== undefined) return diffPackage(old, current);
    return [{ package: name, from: old && listVersions(old), to: current && listVersions(current) }];
  });
}

const listVersions = ({ versions }: Lifecycle): string => versions.map(({ name }) => name).join(', ');

function diffPackage(before: Lifecycle, after: Lifecycle): LifecycleChange[] {
  const [old, current] = [before, after].map(
    ({ versions }) => new Map(versions.map((version) => [version.name, version])),
  ) as [Map<string, LifecycleVersion>, Map<string, LifecycleVersion>];
  const names = [...new Set([...old.keys(), ...current.keys()])];
  return names.flatMap((version) => {
    const subject = { package: after.package, version };
    const [from, to] = [old.get(version), current.get(version)];
    if (from === undefined || to === undefined) {
      return [{ ...subject, from: from && formatPhases(from), to: to && formatPhases(to) }];
    }
    return [
      ...diffValues(getPeriods(from), getPeriods(to), (phase) => ({ ...subject, phase })),
      ...diffValues(getPlatforms(from), getPlatforms(to), (platform) => ({ ...subject, platform })),
    ];
  });
}

const formatPhases = (version: LifecycleVersion): string =>
  [...getPeriods(version)].map(([name, period]) => `${name} ${period}`).join(', ');

const getPeriods = ({ phases }: LifecycleVersion): Map<string, string> =>
  new Map(phases.map(({ name, startDate = '', endDate = '' }) => [name, `${startDate}..${endDate}`]));

const getPlatforms = ({ platforms }: LifecycleVersion): Map<string, string> =>
  new Map(platforms.map(({ name, versions }) => [name, versions.join(', ')]));

function diffValues(
  before: ReadonlyMap<string, string>,
  after: ReadonlyMap<string, string>,
  toSubject: (name: string) => LifecycleChange,
): LifecycleChange[] {
  return [...new Set([...before.keys(), ...after.keys()])].flatMap((name) => {
    const [from, to] = [before.get(name), after.get(name)];
    return from === to ? [] : [{ ...toSubject(name), from, to }];
  });
}
