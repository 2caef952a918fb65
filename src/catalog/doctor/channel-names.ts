import type { Version } from '../../core/semver.js';

/** A channel name that ends with a version: `stable-4.18`, `v1` or `release-2.x`. */
export interface VersionedName {
  /** Text before the version. */
  prefix: string;
  major: number;
  minor: number | undefined;
  patch: number | undefined;
}

/** Parses the version at the end of a channel name; undefined if it has none. */
export function readVersionedName(name: string): VersionedName | undefined {
  const [, prefix = '', major, minor, patch] =
    /^(.*?[-_.])??v?(\d{1,6})(?:\.(\d{1,6}|x))?(?:\.(\d{1,6}|x))?$/.exec(name) ?? [];
  if (major === undefined) return undefined;
  return { prefix, major: Number(major), minor: parseNumber(minor), patch: parseNumber(patch) };
}

function parseNumber(text: string | undefined): number | undefined {
  return text === undefined || text === 'x' ? undefined : Number(text);
}

/** Reports whether a version belongs to the version of a name. */
export function isOfName({ major, minor, patch }: VersionedName, version: Version): boolean {
  return (
    Number(version.major) === major &&
    (minor === undefined || Number(version.minor) === minor) &&
    (patch === undefined || Number(version.patch) === patch)
  );
}

/** Reports whether a channel name suggests prereleases. */
export function isEarlyName(name: string): boolean {
  return /(^|[^a-z])(alpha|beta|candidate|canary|dev|develop|development|early|edge|ea|experimental|fast|latest|main|master|next|nightly|pre|prerelease|preview|rc|staging|tech-preview|test|testing|unstable)([^a-z]|$)/i.test(
    name,
  );
}
