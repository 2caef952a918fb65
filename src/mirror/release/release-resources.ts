import { findBase64Error } from '../../core/text/base64.js';
import { OpmateError } from '../../core/errors.js';
import { pushTo } from '../../core/groups.js';
import { sortedByBytes } from '../../core/order.js';
import { type JsonValue, isJsonObject } from '../../document/json.js';
import { parseYamlFile } from '../../document/document.js';
import { encodeYaml } from '../../document/yaml.js';
import { type MirrorTarget, pathBelow } from '../naming/mirror-target.js';
import type { MirroredContent } from '../plan/mirror-plan.js';
import { releaseRepositories } from '../plan/planned-image.js';

/** Signatures of release images by digest. */
export type ReleaseSignatures = ReadonlyMap<string, readonly Buffer[]>;

interface ReleaseResourceOptions {
  target: MirrorTarget;
  /** Signatures of earlier runs. */
  signatures?: ReleaseSignatures | undefined;
}

const annotations = { createdBy: 'opmate' };

/** File of the ConfigMap with signatures; a copy in JSON is written too. */
export const signatureFile = 'signature-configmap.yaml';

/**
 * Returns the manifests of mirrored releases, by file name: an UpdateService if the graph image is mirrored, and the
 * signatures of this run and of earlier ones. (Source: oc-mirror v2.)
 */
export function releaseResources(
  set: Pick<MirroredContent, 'images' | 'releases'>,
  options: ReleaseResourceOptions,
): Map<string, string> {
  const files = new Map<string, string>();
  const graph = set.images.find(({ kind }) => kind === 'graph');
  if (graph !== undefined) {
    const { registry } = options.target;
    const repository = pathBelow(options.target, releaseRepositories.release);
    files.set(
      'updateService.yaml',
      encodeYaml({
        apiVersion: 'updateservice.operator.openshift.io/v1',
        kind: 'UpdateService',
        metadata: { annotations, name: 'update-service-oc-mirror', namespace: 'openshift-update-service' },
        spec: {
          graphDataImage: `${registry}/${graph.target.repository}:latest`,
          releases: `${registry}/${repository}`,
          replicas: 2,
        },
      }),
    );
  }
  const mirrored = new Set(
    set.images.filter(({ kind }) => kind === 'release').map(({ reference }) => reference.digest),
  );
  const signatures = new Map<string, readonly Buffer[]>();
  for (const { image, signature } of set.releases ?? [])
    if (signature !== undefined && mirrored.has(image.digest)) signatures.set(image.digest, [signature]);
  for (const [digest, known] of options.signatures ?? []) {
    const first = signatures.get(digest) ?? [];
    const others = known.filter((item) => !first.some((other) => item.equals(other)));
    signatures.set(digest, [...first, ...others]);
  }
  if (signatures.size === 0) return files;
  const map = encodeSignatures(signatures);
  files.set(signatureFile, encodeYaml(map));
  files.set('signature-configmap.json', `${JSON.stringify(map)}\n`);
  return files;
}

function encodeSignatures(signatures: ReleaseSignatures): { [key: string]: JsonValue } {
  const binaryData: Record<string, string> = {};
  for (const digest of sortedByBytes(signatures.keys())) {
    for (const [i, bytes] of (signatures.get(digest) as Buffer[]).entries())
      binaryData[`${digest.replace(':', '-')}-${i + 1}`] = bytes.toString('base64');
  }
  return {
    kind: 'ConfigMap',
    apiVersion: 'v1',
    metadata: {
      name: 'mirrored-release-signatures',
      namespace: 'openshift-config-managed',
      labels: { 'release.openshift.io/verification-signatures': '' },
      annotations,
    },
    binaryData,
  };
}

/** Parses the signatures of an earlier run; `file` names them in messages. Throws OpmateError. */
export function parseSignatures(text: string, file: string): ReleaseSignatures {
  const value = parseYamlFile(text, file, moveHint);
  const data = isJsonObject(value) ? (value['binaryData'] ?? {}) : undefined;
  if (!isJsonObject(data))
    throw new OpmateError('INVALID', 'not a ConfigMap', { about: file, hint: moveHint });
  const signatures = new Map<string, Buffer[]>();
  for (const [key, content] of Object.entries(data)) {
    const [, hex] = /^sha256-([0-9a-f]{64})-\d+$/.exec(key) ?? [];
    if (hex === undefined || typeof content !== 'string' || findBase64Error(content) !== undefined) {
      const problem = `binaryData.${key.slice(0, 100)}: not a release signature`;
      throw new OpmateError('INVALID', problem, { about: file, hint: moveHint });
    }
    pushTo(signatures, `sha256:${hex}`, Buffer.from(content, 'base64'));
  }
  return signatures;
}

const moveHint = 'remove the file if its signatures are no longer needed';
