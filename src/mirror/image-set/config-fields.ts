import type { VersionBounds } from '../../catalog/selection/version-bounds.js';
import type { Place } from '../../core/diagnostic.js';
import { OpmateError } from '../../core/errors.js';
import { compareVersions, formatVersion, parseTolerantVersion } from '../../core/semver.js';
import type { Field } from '../../document/field.js';
import { quoteGo } from '../../document/go-json.js';

const hintForVersion = 'write it as 1.2.3 or 1.2.3-rc.1';

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

/** Reports items of one name. */
export function checkUnique(
  items: readonly Field[],
  named: readonly ({ name: string; place: Place } | undefined)[],
  noun: string,
): void {
  const seen = new Map<string, Place>();
  for (const [index, item] of named.entries()) {
    if (item === undefined) continue;
    const first = seen.get(item.name);
    if (first === undefined) seen.set(item.name, item.place);
    else {
      const problem = `duplicate ${noun} ${quoteGo(item.name)}, first defined on line ${first.line}`;
      items[index]?.fail(problem, { code: 'duplicate', hint: 'merge both into one item' });
    }
  }
}
