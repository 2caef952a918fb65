import { UsageError } from '../core/errors.js';
import { quoteGo } from '../core/go-json-quote.js';
import { type OpenShiftVersion, formatOpenShift, readOpenShiftVersion } from '../core/openshift-version.js';

/** Last minor version of OpenShift 4 that 5.0 follows. */
const lastMinorOf4 = 22;

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
  const versions: string[] = [];
  let version: OpenShiftVersion = first;
  while (version.major < last.major || (version.major === last.major && version.minor <= last.minor)) {
    versions.push(formatOpenShift(version));
    version = getNext(version, last);
    if (versions.length > maxVersions) throw invalidRange(text);
  }
  if (versions.length === 0 || others.length > 0) throw invalidRange(text);
  return versions;
}

function getNext({ major, minor }: OpenShiftVersion, last: OpenShiftVersion): OpenShiftVersion {
  const isLast = major === 4 && minor >= lastMinorOf4 && last.major > 4;
  return isLast ? { major: 5, minor: 0 } : { major, minor: minor + 1 };
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
