import type { VersionBounds } from '../../catalog/selection/version-bounds.js';
import type { Place } from '../../core/diagnostic.js';
import { OpmateError } from '../../core/errors.js';
import { compareVersions, formatVersion, parseTolerantVersion } from '../../core/semver.js';
import type { Field } from '../../document/field.js';
import { quoteGo } from '../../document/go-json.js';

const hintForVersion = 'use a version such as 1.2.3 or 1.2.3-rc.1';

/** Reads both bounds of a version, in the loose form too (`v1.2`); what is wrong with them goes to the document's diagnostics. */
export function readBounds(fields: { minVersion: Field; maxVersion: Field }): VersionBounds {
  const read = (field: Field) =>
    field.optionalParsed((text) => {
      try {
        const version = parseTolerantVersion(text);
        return { text, version, written: formatVersion(version) };
      } catch {
        throw new OpmateError('INVALID', `invalid version ${quoteGo(text)}`, { hint: hintForVersion });
      }
    });
  const [min, max] = [read(fields.minVersion), read(fields.maxVersion)];
  if (min !== undefined && max !== undefined && compareVersions(min.version, max.version) > 0) {
    fields.minVersion.fail(`${min.text} is greater than maxVersion ${max.text}`);
  }
  return { minVersion: min?.written, maxVersion: max?.written };
}

/** Opens an item of a list; one that is empty lacks the field `required`. */
export function openItem<K extends string>(
  item: Field,
  keys: readonly K[],
  required: NoInfer<K>,
  hints?: Readonly<Record<string, string>>,
): Readonly<Record<K, Field>> | undefined {
  return item.isPresent ? item.object(keys, { hints: hints ?? {} }) : item.field(required).missing();
}

/** Reads items, and leaves out those that are at fault. */
export function readItems<T extends object>(
  items: readonly Field[],
  read: (item: Field) => T | undefined,
): T[] {
  return items.map(read).filter((value) => value !== undefined);
}

/** Does what `readItems` does, and reports items of one name. */
export function readNamed<T extends { name: string; place: Place }>(
  items: readonly Field[],
  noun: string,
  read: (item: Field) => T | undefined,
): T[] {
  const seen = new Map<string, Place>();
  return readItems(items, (item) => {
    const value = read(item);
    const first = value && seen.get(value.name);
    if (value !== undefined && first === undefined) seen.set(value.name, value.place);
    if (value !== undefined && first !== undefined) {
      const problem = `duplicate ${noun} ${quoteGo(value.name)}, first defined on line ${first.line}`;
      item.fail(problem, { code: 'duplicate', hint: 'merge both into one item' });
    }
    return value;
  });
}
