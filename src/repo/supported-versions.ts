import { UsageError } from '../core/errors.js';
import { quoteGo } from '../core/go-json-quote.js';
import {
  type OpenShiftVersion,
  compareOpenShiftNames,
  formatOpenShift,
  readOpenShiftVersion,
  stepOpenShift,
} from '../core/openshift-version.js';

/** OpenShift versions that indexes are published for, unless the user names others. */
export const defaultSupported = '4.12..5.0';

/** Maximum number of versions in a range. */
const maxVersions = 200;

/**
 * Returns the OpenShift versions of a range such as `4.12..5.0`, or of a list such as `4.18,5.0`, oldest first; 5.0
 * follows 4.22. Throws UsageError.
 */
export function parseSupportedVersions(text: string): string[] {
  const [from, to, ...others] = text.split('..');
  if (to === undefined) return text.split(',').map((item) => formatOpenShift(requireVersion(item, text)));
  const first = requireVersion(from ?? '', text);
  const last = requireVersion(to, text);
  if (others.length > 0 || compareOpenShiftNames(first, last) > 0) throw invalidRange(text);
  const versions = [formatOpenShift(first)];
  let version = first;
  while (compareOpenShiftNames(version, last) < 0) {
    const next = stepOpenShift(version, last);
    if (next === undefined || versions.length === maxVersions) throw invalidRange(text);
    versions.push(formatOpenShift(next));
    version = next;
  }
  return versions;
}

function requireVersion(item: string, text: string): OpenShiftVersion {
  const version = readOpenShiftVersion(item);
  if (version === undefined) throw invalidRange(text);
  return version;
}

function invalidRange(text: string): UsageError {
  return new UsageError(`invalid OpenShift versions ${quoteGo(text)}`, {
    hint: 'use a range such as 4.12..5.0 or a list such as 4.18,5.0',
  });
}
