import { OpmateError } from '../../../core/errors.js';
import { quoteGo } from '../../../core/go-json-quote.js';
import { parseConstraint } from '../../../core/semver-range.js';
import {
  SemverError,
  type Version,
  compareVersions,
  formatVersion,
  parseVersion,
} from '../../../core/semver.js';
import { evaluationFault } from '../fault.js';
import { GoStruct, toText } from '../go-values.js';
import { type FunctionTable, define } from './define.js';

/**
 * Parses a version with an optional leading `v`, and optional minor and patch. Throws SemverError. (Source:
 * Masterminds/semver v3, NewVersion.)
 */
export function parseLooseVersion(text: string): Version {
  const match = /^v?(\d+)(?:\.(\d+))?(?:\.(\d+))?((?:-[0-9A-Za-z.-]+)?(?:\+[0-9A-Za-z.-]+)?)$/.exec(text);
  const [, major, minor = '0', patch = '0', rest] = match ?? [];
  if (match === null) throw new SemverError(`invalid semantic version ${quoteGo(text)}`);
  const number = (digits: string | undefined): string => String(BigInt(digits ?? '0'));
  return parseVersion(`${number(major)}.${number(minor)}.${number(patch)}${rest}`);
}

function checked<T>(work: () => T): T {
  try {
    return work();
  } catch (error) {
    if (error instanceof OpmateError) throw evaluationFault(error.message);
    throw error;
  }
}

function versionStruct(text: string): GoStruct {
  const version = checked(() => parseLooseVersion(text));
  return new GoStruct('*semver.Version', {
    Major: () => BigInt(version.major),
    Minor: () => BigInt(version.minor),
    Patch: () => BigInt(version.patch),
    Prerelease: () => version.pre.join('.'),
    Metadata: () => version.build.join('.'),
    Original: () => text,
    String: () => formatVersion(version),
    Compare: ([other]) => {
      const original = other instanceof GoStruct ? other.members.get('Original') : undefined;
      const second = typeof original === 'function' ? toText(original([])) : toText(other ?? null);
      return BigInt(
        Math.sign(
          compareVersions(
            version,
            checked(() => parseLooseVersion(second)),
          ),
        ),
      );
    },
  });
}

export const versionFunctions: FunctionTable = {
  semver: define('s', ([text]) => versionStruct(text)),
  semverCompare: define('ss', ([constraint, text]) =>
    checked(() => parseConstraint(constraint).contains(parseLooseVersion(text))),
  ),
};
