import { getObject, getText } from '../../document/json-fields.js';
import { asJson, type JsonObject } from '../../document/json.js';
import type { PlainObject } from '../../kube/object.js';
import { groupByPhase, type Phase, type PhasedObject } from './phases.js';
import { defaultProbes } from './probes.js';

/** Prefix of labels and annotations of OLM v1. */
const prefix = 'olm.operatorframework.io';

/** Labels and annotations of OLM v1. (Source: operator-controller.) */
export const revisionKeys = {
  ownerKind: `${prefix}/owner-kind`,
  ownerName: `${prefix}/owner-name`,
  revisionName: `${prefix}/revision-name`,
  bundleName: `${prefix}/bundle-name`,
  packageName: `${prefix}/package-name`,
  bundleVersion: `${prefix}/bundle-version`,
  bundleReference: `${prefix}/bundle-reference`,
  bundleRelease: `${prefix}/bundle-release`,
} as const;

/** Type of Secrets with objects of a set. */
export const objectDataType = `${prefix}/object-data`;

/** The ClusterExtension that a set belongs to. */
interface SetOwner {
  name: string;
  uid: string;
  /** Undefined or 0 for none. */
  progressDeadlineMinutes?: number | undefined;
}

/** The bundle that a set installs, as resolution chose it. */
export interface InstalledBundle {
  name: string;
  package: string;
  version: string;
  image: string;
  release?: string | undefined;
  /** JSON text of the annotation `olm.properties` of its ClusterServiceVersion. */
  properties?: string | undefined;
}

/** An object of a phase, with its identity and content. */
export interface SetObject extends PhasedObject {
  content: JsonObject;
}

/** A ClusterObjectSet as operator-controller writes it, with its objects inline. */
export interface ObjectSet {
  name: string;
  owner: SetOwner;
  phases: Phase<SetObject>[];
  /** Document of a set with these objects for each phase. */
  encode(objects: (phase: number, object: number) => JsonObject): JsonObject;
}

/**
 * Returns the ClusterObjectSet that operator-controller creates for rendered objects: labeled and annotated, without
 * status and with name, namespace, labels and annotations as only metadata, grouped by phase.
 */
export function createObjectSet(
  objects: readonly PlainObject[],
  {
    owner,
    bundle,
    revision = 1,
  }: { owner: SetOwner; bundle: InstalledBundle; revision?: number | undefined },
): ObjectSet {
  const labels = { [revisionKeys.ownerKind]: 'ClusterExtension', [revisionKeys.ownerName]: owner.name };
  const phases = groupByPhase(objects.map((object) => toSetObject(object, labels, bundle)));
  const name = `${owner.name}-${revision}`;
  const metadata: JsonObject = {
    name,
    labels,
    annotations: setAnnotations(bundle),
    ownerReferences: [
      {
        apiVersion: `${prefix}/v1`,
        kind: 'ClusterExtension',
        name: owner.name,
        uid: owner.uid,
        controller: true,
        blockOwnerDeletion: true,
      },
    ],
  };
  const encode: ObjectSet['encode'] = (objectAt) => ({
    apiVersion: `${prefix}/v1`,
    kind: 'ClusterObjectSet',
    metadata,
    spec: {
      lifecycleState: 'Active',
      revision,
      collisionProtection: 'Prevent',
      ...((owner.progressDeadlineMinutes ?? 0) > 0 && {
        progressDeadlineMinutes: owner.progressDeadlineMinutes as number,
      }),
      progressionProbes: defaultProbes.map((probe) => asJson(probe)),
      phases: phases.map(({ name: phaseName, objects: members }, phase) => ({
        name: phaseName,
        objects: members.map((_, object) => objectAt(phase, object)),
      })),
    },
  });
  return { name, owner, phases, encode };
}

/** Returns the document of a set with its objects inline. */
export function encodeObjectSet({ phases, encode }: ObjectSet): JsonObject {
  return encode((phase, object) => ({ object: phases[phase]?.objects[object]?.content ?? {} }));
}

function setAnnotations(bundle: InstalledBundle): JsonObject {
  return {
    [revisionKeys.bundleName]: bundle.name,
    [revisionKeys.packageName]: bundle.package,
    [revisionKeys.bundleVersion]: bundle.version,
    [revisionKeys.bundleReference]: bundle.image,
    ...(bundle.release !== undefined && { [revisionKeys.bundleRelease]: bundle.release }),
    ...(bundle.properties !== undefined && { 'olm.properties': bundle.properties }),
  };
}

/** Annotation of `kubectl apply`, which repeats the object. */
const lastApplied = 'kubectl.kubernetes.io/last-applied-configuration';

function toSetObject(object: PlainObject, labels: JsonObject, bundle: InstalledBundle): SetObject {
  const loaded = { ...object.load() };
  delete loaded['status'];
  const annotations = { ...getObject(loaded, 'metadata', 'annotations') };
  delete annotations[lastApplied];
  const namespace = getText(loaded, 'metadata', 'namespace');
  const metadata: JsonObject = {
    name: getText(loaded, 'metadata', 'name'),
    ...(namespace !== '' && { namespace }),
    labels: { ...getObject(loaded, 'metadata', 'labels'), ...labels },
    annotations: {
      ...annotations,
      ...(bundle.version !== '' && { [revisionKeys.bundleVersion]: bundle.version }),
      ...(bundle.package !== '' && { [revisionKeys.packageName]: bundle.package }),
    },
  };
  const { apiVersion, kind, name } = object;
  return { apiVersion, kind, name, namespace, content: { ...loaded, metadata } };
}
