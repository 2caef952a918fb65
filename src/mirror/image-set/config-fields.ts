import type { VersionBounds } from '../../catalog/selection/version-bounds.js';
import type { TextPosition } from '../../core/diagnostic.js';
import { OpmateError } from '../../core/errors.js';
import { getOrAdd } from '../../core/groups.js';
import {
  compareVersions,
  formatVersion,
  parseTolerantVersion,
  tryParse,
  versionHint,
} from '../../core/semver.js';
import type { Field } from '../../document/field.js';
import { quoteGo } from '../../document/go-json.js';

/** Reads a version range; versions may be partial (`v1.2`). Reports invalid ones to the document's diagnostics. */
export function readBounds(fields: { minVersion: Field; maxVersion: Field }): VersionBounds {
  const read = (field: Field) =>
    field.optionalParsed((text) => {
      const version = tryParse(parseTolerantVersion, text);
      if (version !== undefined) return { text, version };
      throw new OpmateError('INVALID', `invalid version ${quoteGo(text)}`, { hint: versionHint });
    });
  const [min, max] = [read(fields.minVersion), read(fields.maxVersion)];
  if (min !== undefined && max !== undefined && compareVersions(min.version, max.version) > 0) {
    fields.minVersion.fail(`${min.text} is greater than maxVersion ${max.text}`);
  }
  return {
    minVersion: min && formatVersion(min.version),
    maxVersion: max && formatVersion(max.version),
  };
}

/** Opens an item of a list; reports the field `required` as missing in an empty item. */
export function openItem<K extends string>(
  item: Field,
  keys: readonly K[],
  required: NoInfer<K>,
  hints?: Readonly<Record<string, string>>,
): Readonly<Record<K, Field>> | undefined {
  return item.isPresent ? item.object(keys, { hints: hints ?? {} }) : item.field(required).missing();
}

/** Reports whether an object has no other fields than `keys`. */
export function hasOnlyKeys(field: Field, keys: readonly string[]): boolean {
  return Object.keys(field.jsonObject() ?? {}).every((key) => keys.includes(key));
}

/** A platform of images, as configured. */
export interface PlatformConfig {
  os: string;
  architecture: string;
}

/** Reads the items of a list, without invalid ones. */
export function readItems<T extends object>(
  items: readonly Field[],
  read: (item: Field) => T | undefined,
): T[] {
  return items.map(read).filter((value) => value !== undefined);
}

/** Reads as `readItems`, and reports duplicate names. */
export function readNamed<T extends { name: string; place: TextPosition }>(
  items: readonly Field[],
  noun: string,
  read: (item: Field) => T | undefined,
): T[] {
  const seen = new Map<string, T>();
  return readItems(items, (item) => {
    const value = read(item);
    if (value === undefined) return undefined;
    const first = getOrAdd(seen, value.name, () => value);
    if (first !== value) {
      const problem = `duplicate ${noun} ${quoteGo(value.name)}, first defined on line ${first.place.line}`;
      item.fail(problem, { code: 'duplicate', hint: 'merge both into one item' });
    }
    return value;
  });
}

/** Reads a list of platforms; reports errors to the document's diagnostics. */
export function readPlatforms(list: Field): PlatformConfig[] {
  return readItems(list.optionalList(), (item) => {
    const fields = openItem(item, ['os', 'architecture'], 'os');
    const [os, architecture] = [fields?.os.text(), fields?.architecture.text()];
    return os === undefined || architecture === undefined ? undefined : { os, architecture };
  });
}
