import { OpmateError } from '../core/errors.js';
import {
  type OpenShiftVersion,
  blocksNextOpenShift,
  formatOpenShift,
  maxOpenShiftProperty,
  parseMaxOpenShift,
} from '../core/openshift-version.js';
import { SemverError, parseTolerantVersion } from '../core/semver.js';
import type { JsonObject } from '../document/json.js';
import { getObject, getText } from '../document/json-fields.js';
import { readRawProperties } from './v0/bundle-properties.js';
import { isCopiedCsv, bundlePropertiesAnnotation } from './v0/namespace-state.js';

/** An installed version that blocks updates of the cluster to the next minor version. */
interface BlockingOperator {
  namespace: string;
  name: string;
  /** Maximum version of OpenShift; undefined if `problem` is set. */
  maximum?: string;
  /** Why its maximum version cannot be read. */
  problem?: string;
}

/** Condition `Upgradeable` of ClusterOperator `operator-lifecycle-manager`. */
export interface UpgradeableCondition {
  status: 'True' | 'False';
  /** Empty if upgradeable. */
  reason: string;
  /** Text of the condition; empty if upgradeable. */
  message: string;
  /** In the order of the objects. */
  blocking: BlockingOperator[];
}

/**
 * Returns the condition by which OLM stops minor and major updates of an OpenShift cluster of a release, as its
 * `RELEASE_VERSION` is. (Source: OLM, openshift/helpers.go and clusteroperator_controller.go.)
 */
export function checkUpgradeable(
  objects: readonly JsonObject[],
  release: string | undefined,
): UpgradeableCondition {
  const current = readRelease(release);
  if (typeof current === 'string') {
    const message = `Encountered errors while checking compatibility with the next minor version of OpenShift: ${current}`;
    return { status: 'False', reason: 'ErrorCheckingOperatorCompatibility', message, blocking: [] };
  }
  const blocking = objects.flatMap((object) => findBlocking(object, current) ?? []);
  if (blocking.length === 0) return { status: 'True', reason: '', message: '', blocking };
  const describe = ({ namespace, name, maximum, problem }: BlockingOperator): string =>
    problem === undefined
      ? `- maximum supported OCP version for ${namespace}/${name} is ${maximum}`
      : `- ${namespace}/${name} has invalid ${maxOpenShiftProperty} properties: ${problem}`;
  const lines = [
    'ClusterServiceVersions blocking minor version upgrades to 4.23 or major version upgrades to 5.0:',
    ...blocking.filter(({ problem }) => problem !== undefined).map(describe),
    ...blocking
      .filter(({ problem }) => problem === undefined)
      .map(describe)
      .reverse(),
  ];
  return { status: 'False', reason: 'IncompatibleOperatorsInstalled', message: lines.join('\n'), blocking };
}

/** Returns the release, or why it cannot be read. */
function readRelease(release: string | undefined): OpenShiftVersion | string {
  if (release === undefined || release === '')
    return 'desired release version missing from RELEASE_VERSION env variable';
  try {
    const { major, minor } = parseTolerantVersion(release);
    return { major: Number(major), minor: Number(minor) };
  } catch (error) {
    if (!(error instanceof SemverError)) throw error;
    return `cluster version has invalid desired release version: ${error.message}`;
  }
}

/** Returns an installed version as a blocking one; undefined for others and other objects. */
function findBlocking(object: JsonObject, current: OpenShiftVersion): BlockingOperator | undefined {
  if (object['kind'] !== 'ClusterServiceVersion' || isCopiedCsv(object)) return undefined;
  const annotations = getObject(object, 'metadata', 'annotations');
  if (!Object.hasOwn(annotations, bundlePropertiesAnnotation)) return undefined;
  const names = {
    namespace: getText(object, 'metadata', 'namespace'),
    name: getText(object, 'metadata', 'name'),
  };
  try {
    const maximum = parseMaxOpenShift(
      readRawProperties(getText(annotations, bundlePropertiesAnnotation))
        .filter(({ type }) => type === maxOpenShiftProperty)
        .map(({ text }) => text),
    );
    if (maximum === undefined || !blocksNextOpenShift(maximum, current)) return undefined;
    return { ...names, maximum: formatOpenShift(maximum) };
  } catch (error) {
    if (!(error instanceof OpmateError)) throw error;
    return { ...names, problem: error.message };
  }
}
