import { createHash } from 'node:crypto';
import { gzipSync } from 'node:zlib';
import { OpmateError } from '../../core/errors.js';
import { compareBytes } from '../../core/order.js';
import { encodeGoJson, sortKeysDeep } from '../../document/go-json.js';
import type { JsonObject } from '../../document/json.js';
import { type ObjectSet, objectDataType, revisionKeys, type SetObject } from './object-set.js';

/** Maximum size of the data of a Secret, and of an object that is stored uncompressed, in bytes. */
const maxDataSize = 900 * 1024;

/** A ClusterObjectSet that refers to its objects in Secrets. */
interface PackedObjectSet {
  set: JsonObject;
  /** Immutable Secrets, to be created before the set. */
  secrets: JsonObject[];
}

interface Reference {
  name: string;
  namespace: string;
  key: string;
}

/**
 * Packs the objects of a set into immutable Secrets as operator-controller does: by content, in the order of phases,
 * compressed above 900 KiB, a Secret closed before it exceeds 900 KiB. Compressed objects have other bytes than
 * upstream, so names of their Secrets differ. Throws OpmateError for an object that exceeds the limit compressed.
 */
export function packObjectSet(set: ObjectSet, systemNamespace: string): PackedObjectSet {
  const references = set.phases.map(({ objects }) => objects.map((): Reference | undefined => undefined));
  const secrets: JsonObject[] = [];
  let data = new Map<string, Buffer>();
  let size = 0;
  let pending: { phase: number; object: number; key: string }[] = [];
  const close = (): void => {
    if (data.size === 0) return;
    const secret = createSecret(set, systemNamespace, data);
    secrets.push(secret.document);
    for (const { phase, object, key } of pending) {
      (references[phase] as (Reference | undefined)[])[object] = {
        name: secret.name,
        namespace: systemNamespace,
        key,
      };
    }
    data = new Map();
    size = 0;
    pending = [];
  };
  for (const [phase, { objects }] of set.phases.entries()) {
    for (const [object, member] of objects.entries()) {
      const bytes = encodeObject(member);
      const key = createHash('sha256').update(bytes).digest('base64url');
      if (!data.has(key)) {
        if (size + bytes.length > maxDataSize) close();
        data.set(key, bytes);
        size += bytes.length;
      }
      pending.push({ phase, object, key });
    }
  }
  close();
  const encoded = set.encode((phase, object) => ({ ref: { ...references[phase]?.[object] } as JsonObject }));
  return { set: encoded, secrets };
}

function encodeObject({ kind, name, content }: SetObject): Buffer {
  const plain = Buffer.from(encodeGoJson(sortKeysDeep(content), { escapeHtml: true }));
  if (plain.length <= maxDataSize) return plain;
  const compressed = gzipSync(plain, { level: 9 });
  if (compressed.length > maxDataSize) {
    throw new OpmateError('LIMIT', `has ${compressed.length} bytes compressed, maximum is ${maxDataSize}`, {
      subject: `${kind} ${name}`,
    });
  }
  return compressed;
}

function createSecret(
  { name: revision, owner }: ObjectSet,
  namespace: string,
  data: ReadonlyMap<string, Buffer>,
): { name: string; document: JsonObject } {
  const entries = [...data].sort(([a], [b]) => compareBytes(a, b));
  const hash = createHash('sha256');
  for (const [key, bytes] of entries) hash.update(key).update(bytes);
  const name = `${revision}-${hash.digest('hex').slice(0, 16)}`;
  const document: JsonObject = {
    apiVersion: 'v1',
    kind: 'Secret',
    metadata: {
      name,
      namespace,
      labels: { [revisionKeys.revisionName]: revision, [revisionKeys.ownerName]: owner.name },
    },
    immutable: true,
    type: objectDataType,
    data: Object.fromEntries(entries.map(([key, bytes]) => [key, bytes.toString('base64')])),
  };
  return { name, document };
}
