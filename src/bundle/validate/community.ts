import { formatOpenShift, maxOpenShiftProperty, openShiftMilestones } from '../../core/openshift-version.js';
import { propertiesAnnotation } from '../../model/bundle-keys.js';
import { GoJsonError, parseGoJson } from '../../document/go-json.js';
import { type JsonValue, isJsonObject } from '../../document/json.js';
import { SemverError, compareVersions, formatVersion, parseTolerantVersion } from '../../core/semver.js';
import type { BundleContent } from './content.js';
import { removedIn122 } from './removed-apis.js';
import { type Reporter, warning } from './report.js';

const guide = 'https://kubernetes.io/docs/reference/using-api/deprecation-guide/#v1-22';
const key = maxOpenShiftProperty;
const firstRemoved = formatOpenShift(openShiftMilestones.removedApis);
const path = ['metadata', 'annotations', propertiesAnnotation];

/**
 * Checks that a bundle with APIs removed in an OpenShift version declares its maximum version. (Source: validator `community`
 * of operator-framework/api, without labels of index images.)
 */
export function checkCommunity(content: BundleContent, reportAny: Reporter): void {
  const { csv, name } = content;
  const removed = removedIn122(content);
  if (csv === undefined || removed === undefined) return;
  const properties = csv.metadata.annotations?.[propertiesAnnotation] ?? '';
  const report = (problem: string, details = {}): void => reportAny(path, `(${name}) ${problem}`, details);
  if (properties === '') {
    return report(
      `csv.Annotations not specified ${key} for an OCP version < ${firstRemoved}. This annotation is required to prevent the ` +
        'user from upgrading their OCP cluster before they have installed a version of their operator which is ' +
        `compatible with ${firstRemoved}. This bundle is using APIs which were deprecated and removed in v1.22. More info: ` +
        `${guide} which are no longer supported on ${firstRemoved}. Migrate the API(s) for ${removed} or use the annotation`,
    );
  }
  const list = parseProperties(properties);
  if (list === undefined) {
    return report(
      `csv.Annotations has an invalid value specified for olm.properties. Please, check the value  (${properties}) ` +
        'and ensure that it is an array such as: "olm.properties": \'[{"type": "key name", "value": "key value"}]\'',
    );
  }
  const value = list.find(({ type }) => type === key)?.value;
  if (value === undefined) {
    return report(
      `csv.Annotations.olm.properties with the key \`${key}\` and a value with an OCP version which is < ${firstRemoved} is ` +
        'required for any operator bundle that is using APIs which were deprecated and removed in v1.22. More ' +
        `info: ${guide}. Migrate the API(s) for ${removed} or use the annotation`,
    );
  }
  try {
    const version = parseTolerantVersion(value);
    const minor = parseTolerantVersion(`${version.major}.${version.minor}`);
    if (compareVersions(version, minor) !== 0) {
      const problem =
        `csv.Annotations.olm.properties has an invalid value. ${key} must specify only major.minor versions, ` +
        `${formatVersion(version)} will be truncated to ${formatVersion(minor)}`;
      return report(problem, warning);
    }
    if (compareVersions(version, parseTolerantVersion(firstRemoved)) < 0) return;
  } catch (error) {
    if (!(error instanceof SemverError)) throw error;
    return report(
      `csv.Annotations.olm.properties has an invalid value. Unable to parse (${value}) using semver : ${error.message}`,
    );
  }
  return report(
    `csv.Annotations.olm.properties with the key and value for ${key} has the OCP version value ${value} which is ` +
      `>= of ${firstRemoved}. This bundle is using APIs which were deprecated and removed in v1.22. More info: ${guide}. ` +
      `Migrate the API(s) for ${removed} or inform in this property an OCP version which is < ${firstRemoved}`,
  );
}

/** Returns undefined unless the text is a list of properties with string values. */
function parseProperties(text: string): { type: string; value: string }[] | undefined {
  let list: JsonValue;
  try {
    list = parseGoJson(text);
  } catch (error) {
    if (error instanceof GoJsonError) return undefined;
    throw error;
  }
  if (!Array.isArray(list)) return list === null ? [] : undefined;
  const properties: { type: string; value: string }[] = [];
  for (const item of list) {
    if (item !== null && !isJsonObject(item)) return undefined;
    const type = item?.['type'] ?? '';
    const value = item?.['value'] ?? '';
    if (typeof type !== 'string' || typeof value !== 'string') return undefined;
    properties.push({ type, value });
  }
  return properties;
}
