import { type Diagnostic, createWarning } from '../core/diagnostic.js';
import type { CancelOptions } from '../core/concurrency.js';
import { quoteGo } from '../core/go-json-quote.js';
import { compareBytes } from '../core/order.js';
import type { JsonObject } from '../document/json.js';
import { getText } from '../document/json-fields.js';
import { splitApiVersion } from '../kube/object.js';
import { isCopiedCsv } from '../solve/v0/namespace-state.js';
import {
  type ClusterFile,
  type ClusterText,
  readClusterFiles,
  readClusterManifests,
} from './snapshot-files.js';

/** Objects of a cluster that decide about its operators. */
export interface ClusterSnapshot {
  /** Sorted by kind, namespace and name; without copies of ClusterServiceVersions. */
  objects: readonly JsonObject[];
  /** Faults of files and objects; everything else was read. */
  findings: readonly Diagnostic[];
}

/** Versions by group and kind. */
const kinds: Readonly<Record<string, readonly string[]>> = {
  'operators.coreos.com/Subscription': ['v1alpha1'],
  'operators.coreos.com/ClusterServiceVersion': ['v1alpha1'],
  'operators.coreos.com/InstallPlan': ['v1alpha1'],
  'operators.coreos.com/CatalogSource': ['v1alpha1'],
  'operators.coreos.com/OperatorGroup': ['v1', 'v1alpha2'],
  'operators.coreos.com/OperatorCondition': ['v2', 'v1'],
  'config.openshift.io/ClusterVersion': ['v1'],
  'config.openshift.io/ClusterOperator': ['v1'],
  'config.openshift.io/ImageDigestMirrorSet': ['v1'],
  'config.openshift.io/ImageTagMirrorSet': ['v1'],
  'operator.openshift.io/ImageContentSourcePolicy': ['v1alpha1'],
  'olm.operatorframework.io/ClusterExtension': ['v1'],
  'olm.operatorframework.io/ClusterCatalog': ['v1'],
};
const kindNames = [...new Set(Object.keys(kinds).map((key) => key.slice(key.indexOf('/') + 1)))];

/**
 * Reads a snapshot: a `List` or single objects as `kubectl get -o yaml` and `oc adm inspect` write them, in texts, files
 * and directories. Other kinds are ignored. Throws OpmateError for an unreadable file, and LIMIT.
 */
export async function readSnapshot(
  places: readonly (string | ClusterText)[],
  options: CancelOptions & { workingDirectory: string },
): Promise<ClusterSnapshot> {
  const collection = new SnapshotCollection();
  await readClusterFiles(places, kindNames, options, (file) => {
    collection.addFile(file);
  });
  return collection.finish();
}

/** Returns a snapshot of objects. */
export function toSnapshot(objects: readonly JsonObject[]): ClusterSnapshot {
  const collection = new SnapshotCollection();
  for (const object of objects) collection.addObject(object, undefined);
  return collection.finish();
}

class SnapshotCollection {
  readonly #objects = new Map<string, { object: JsonObject; file: string | undefined }>();
  readonly #findings: Diagnostic[] = [];

  addFile(file: ClusterFile): void {
    const { manifests, findings } = readClusterManifests(file);
    this.#findings.push(...findings);
    for (const manifest of manifests) this.addObject(manifest.load(), manifest.file);
  }

  addObject(object: JsonObject, file: string | undefined): void {
    const kind = getText(object, 'kind');
    const { group, version } = splitApiVersion(getText(object, 'apiVersion'));
    const known = kinds[`${group}/${kind}`];
    if (known === undefined) return;
    if (kind === 'ClusterServiceVersion' && isCopiedCsv(object)) return;
    const namespace = getText(object, 'metadata', 'namespace');
    const name = getText(object, 'metadata', 'name');
    const subject = `${kind} ${namespace === '' ? '' : `${namespace}/`}${name}`;
    const warn = (code: string, problem: string): void => {
      this.#findings.push(createWarning(code, problem, { subject, file }));
    };
    if (name === '') {
      warn('no-name', 'metadata.name: missing');
      return;
    }
    if (!known.includes(version))
      warn('unknown-version', `unsupported version ${quoteGo(version)}, read as ${known[0]}`);
    const other = this.#objects.get(subject);
    if (other !== undefined && !isSameState(other.object, object)) {
      const place = other.file === undefined ? '' : `, the other in ${other.file}`;
      warn('contradiction', `found in two states, used the newer${place}`);
    }
    if (other === undefined || isNewer(object, other.object)) this.#objects.set(subject, { object, file });
  }

  finish(): ClusterSnapshot {
    const sorted = [...this.#objects].sort(([a], [b]) => compareBytes(a, b));
    return { objects: sorted.map(([, { object }]) => object), findings: this.#findings };
  }
}

function isSameState(a: JsonObject, b: JsonObject): boolean {
  const write = (object: JsonObject): string =>
    JSON.stringify([object['spec'] ?? null, object['status'] ?? null], (_key, value: unknown) =>
      typeof value === 'bigint' ? String(value) : value,
    );
  return write(a) === write(b);
}

/** Compares resource versions, which are numbers on all known API servers. */
function isNewer(object: JsonObject, other: JsonObject): boolean {
  const read = (value: JsonObject): number => Number(getText(value, 'metadata', 'resourceVersion')) || 0;
  return read(object) >= read(other);
}
