import type { JsonObject } from '../document/json.js';
import { compareBytes } from '../core/order.js';

/** An object to be applied to a cluster. */
export interface PlainObject {
  apiVersion: string;
  kind: string;
  name: string;
  /** Empty for objects of the cluster. */
  namespace: string;
  /** Where it comes from, for messages: a file of the bundle, or the field that it was made for. */
  origin: string;
  /** Made by opmate, not taken from a file. */
  isGenerated: boolean;
  load(): JsonObject;
}

/** Takes an `apiVersion` apart at its last slash; the group is empty for the core group. */
export function splitApiVersion(apiVersion: string): { group: string; version: string } {
  const slash = apiVersion.lastIndexOf('/');
  return { group: apiVersion.slice(0, Math.max(0, slash)), version: apiVersion.slice(slash + 1) };
}

/** The group of an `apiVersion`; empty for the core group. */
export function getGroup(apiVersion: string): string {
  return splitApiVersion(apiVersion).group;
}

/** A generated object, which is complete already. */
export function generated(value: JsonObject, origin: string): PlainObject {
  const metadata = value['metadata'] as { name: string; namespace?: string };
  return {
    apiVersion: value['apiVersion'] as string,
    kind: value['kind'] as string,
    name: metadata.name,
    namespace: metadata.namespace ?? '',
    origin,
    isGenerated: true,
    load: () => value,
  };
}

/** By kind, namespace and name; what is the same in all three stays in order. */
export function sortObjects(objects: readonly PlainObject[]): PlainObject[] {
  return [...objects].sort(
    (a, b) =>
      compareBytes(a.kind, b.kind) || compareBytes(a.namespace, b.namespace) || compareBytes(a.name, b.name),
  );
}
