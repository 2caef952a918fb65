import type { Version } from '../../core/semver.js';

/** A channel name that ends with a version, such as `stable-4.18`, `v1` or `release-2.x`. */
export interface VersionedName {
  /** What stands before the version. */
  prefix: string;
  major: number;
  minor: number | undefined;
  patch: number | undefined;
}

/** Reads the version at the end of a channel's name; undefined where it has none. */
export function readVersionedName(name: string): VersionedName | undefined {
  const [, prefix = '', major, minor, patch] =
    /^(.*?[-_.])??v?(\d{1,6})(?:\.(\d{1,6}|x))?(?:\.(\d{1,6}|x))?$/.exec(name) ?? [];
  if (major === undefined) return undefined;
  return { prefix, major: Number(major), minor: parseNumber(minor), patch: parseNumber(patch) };
}

function parseNumber(text: string | undefined): number | undefined {
  return text === undefined || text === 'x' ? undefined : Number(text);
}

/** Whether a version is of those that the name stands for. */
export function isOfName({ major, minor, patch }: VersionedName, version: Version): boolean {
  return (
    Number(version.major) === major &&
    (minor === undefined || Number(version.minor) === minor) &&
    (patch === undefined || Number(version.patch) === patch)
  );
}

/** Whether a channel is, by its name, for those who want what is not released yet. */
export function isEarlyName(name: string): boolean {
  return /(^|[^a-z])(alpha|beta|candidate|canary|dev|develop|development|early|edge|ea|experimental|fast|latest|main|master|next|nightly|pre|prerelease|preview|rc|staging|tech-preview|test|testing|unstable)([^a-z]|$)/i.test(
    name,
  );
}
