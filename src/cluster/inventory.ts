import { isDeepStrictEqual, promisify } from 'node:util';
import { gunzip, gzip } from 'node:zlib';
import { readManifests } from '../kube/manifests.js';
import { type PlainObject, toPlainObject } from '../kube/object.js';
import { writeObjects } from '../bundle/plain/write.js';
import { computeDigest } from '../core/digest.js';
import { LimitError, OpmateError } from '../core/errors.js';
import { decodeUtf8, encodeGoJson, parseGoJson, quoteGo } from '../document/go-json.js';
import { type JsonObject, type JsonValue, asJson } from '../document/json.js';
import { openValue } from '../document/document.js';
import type { Field } from '../document/field.js';
import { getText, getValue } from '../document/json-fields.js';
import type { Pin } from '../source/content/content.js';
import { type Kubectl, parseObjects } from './kubectl.js';
import type { ProgressionProbe } from '../bundle/object-set/probes.js';
import { readHealthChecks } from './documents/health-checks.js';
import type { ObjectId } from './objects.js';

/** A stored render: gzip in pieces, each in a Secret. */
export interface StoredRender {
  /** SHA-256 of its YAML. */
  digest: string;
  pieces: number;
}

/** Stored part of a pin. */
export type KeptPin = Pick<Pin, 'name' | 'type' | 'ref' | 'content'>;

/** An object of an inventory. */
export interface HeldObject extends ObjectId {
  /** It existed before the deployment: it is released, never deleted. */
  takenOver?: boolean;
}

/** An attempt to change a deployment. */
export interface Revision {
  /** Number, from 1. */
  revision: number;
  /** Time in RFC 3339. */
  time: string;
  result: 'applied' | 'failed';
  /** Reason of a failure. */
  reason?: string;
  packageName?: string;
  bundleName?: string;
  version?: string;
  /** Probes of its document. */
  healthChecks?: readonly ProgressionProbe[];
  /** Hash of the render when it was approved. */
  hash: string;
  pins: KeptPin[];
  /** Revision whose render was applied again. */
  rollbackTo?: number;
  /** Stored render; absent for failed and old attempts. */
  render?: StoredRender;
}

/** State of a deployment on a cluster. */
export interface DeploymentInventory {
  /** Objects that the deployment created or took over, and still owns. */
  objects: HeldObject[];
  /** Revisions, oldest first. */
  revisions: Revision[];
  /** A run that changes the cluster, recorded until it ends. */
  unfinished?: { time: string; hash: string; objects: ObjectId[]; isDeletion?: boolean };
  /** Set of deployments to which this one belongs. */
  set?: string;
}

/** An inventory as read; it is written only if unchanged in the cluster. */
export interface ReadInventory {
  inventory: DeploymentInventory;
  /** Undefined before the first apply. */
  resourceVersion: string | undefined;
}

/** Location of an inventory. */
export interface InventoryPlace {
  name: string;
  namespace: string;
}

/** Maximum number of stored renders and revisions. */
const keptRenders = 10;
const keptRevisions = 25;
/** A Secret may hold 1 MiB. */
const pieceSize = 900 * 1024;
const maxPieces = 64;
/** Maximum unpacked size of a state and a render. */
const maxUnpacked = 256 * 1024 * 1024;
const label = 'opmate.dev/inventory';
const setLabel = 'opmate.dev/set';
const zip = promisify(gzip);
const unzip = promisify(gunzip);

/** Returns the name of the Secret with the inventory of a deployment. */
export function inventoryName(name: string): string {
  const whole = `opmate-inventory-${name}`;
  return whole.length <= 200 ? whole : `${whole.slice(0, 180)}-${toHex(computeDigest(name)).slice(0, 16)}`;
}

function toHex(digest: string): string {
  return digest.slice(digest.indexOf(':') + 1);
}

function pieceNames({ name }: InventoryPlace, { digest, pieces }: StoredRender): string[] {
  const prefix = `${inventoryName(name)}-${toHex(digest).slice(0, 16)}`;
  return Array.from({ length: pieces }, (_, index) => `${prefix}-${index}`);
}

/** Returns the current revision: the last one applied completely. */
export function currentRevision({ revisions }: DeploymentInventory): Revision | undefined {
  return revisions.findLast(({ result }) => result === 'applied');
}

/** Reports whether a revision was applied from the same content and version, with the same render and health checks. */
export function isSameSource(
  revision: Revision,
  {
    hash,
    version,
    pins,
    healthChecks,
  }: Pick<Revision, 'hash' | 'version' | 'healthChecks'> & { pins: readonly KeptPin[] },
): boolean {
  const contents = (list: readonly KeptPin[]): string => JSON.stringify(list.map(({ content }) => content));
  return (
    revision.hash === hash &&
    (revision.version ?? '') === (version ?? '') &&
    contents(revision.pins) === contents(pins) &&
    isDeepStrictEqual(revision.healthChecks ?? [], healthChecks ?? [])
  );
}

/** Reads the inventory of a deployment; an empty one if missing. Throws OpmateError. */
export async function readInventory(kubectl: Kubectl, place: InventoryPlace): Promise<ReadInventory> {
  const name = inventoryName(place.name);
  const [secret] = await getSecrets(kubectl, place, [name]);
  if (secret === undefined) return { inventory: { objects: [], revisions: [] }, resourceVersion: undefined };
  try {
    const state = parseGoJson(decodeUtf8(await unpack(getData(secret, 'state'))));
    return { inventory: parseInventory(state), resourceVersion: getVersion(secret) };
  } catch (error) {
    const subject = `Secret ${quoteGo(name)} in namespace ${quoteGo(place.namespace)}`;
    throw new OpmateError('INVALID', `${subject}: damaged`, {
      hint: 'delete the inventory to adopt the objects of the deployment again',
      cause: error,
    });
  }
}

/**
 * Writes an inventory, and returns its new resource version. Throws OpmateError, also if another process has written
 * it.
 */
export async function writeInventory(
  kubectl: Kubectl,
  place: InventoryPlace,
  { inventory, resourceVersion }: ReadInventory,
  isCancellable = true,
): Promise<ReadInventory> {
  const state = await zip(Buffer.from(encodeGoJson(asJson({ format: 1, ...inventory }))));
  if (state.length > pieceSize) {
    throw new LimitError(`deployment ${quoteGo(place.name)}: too many objects for an inventory`);
  }
  const secret = toSecret(
    place,
    inventoryName(place.name),
    { state },
    { resourceVersion, set: inventory.set },
  );
  const verb = resourceVersion === undefined ? 'create' : 'replace';
  const subject = `inventory of ${quoteGo(place.name)}`;
  const { stdout, errors } = await kubectl.run([verb, '-f', '-', '-o', 'json', '--validate=false'], {
    objects: [secret],
    isCancellable,
  });
  if (errors.some((error) => /\((?:Conflict|AlreadyExists)\)/.test(error))) {
    throw new OpmateError('INVALID', `${subject}: another process is changing this deployment`, {
      hint: 'wait for the other run to finish, then try again',
    });
  }
  if (errors.length > 0) throw new OpmateError('INVALID', `${subject}: ${errors.join('; ')}`);
  return { inventory, resourceVersion: getVersion(parseObjects(stdout)[0]) };
}

function getVersion(object: JsonObject | undefined): string | undefined {
  const version = getValue(object, 'metadata', 'resourceVersion');
  return typeof version === 'string' ? version : undefined;
}

/** Stores a render on the cluster; existing pieces are not written again. */
export async function storeRender(
  kubectl: Kubectl,
  place: InventoryPlace,
  objects: readonly PlainObject[],
): Promise<StoredRender> {
  let text = '';
  for await (const part of writeObjects(objects, 'yaml')) text += part;
  const packed = await zip(Buffer.from(text));
  const pieces = Math.max(1, Math.ceil(packed.length / pieceSize));
  if (pieces > maxPieces) throw new LimitError(`deployment ${quoteGo(place.name)}: too large to store`);
  const render = { digest: computeDigest(text), pieces };
  for (const [index, name] of pieceNames(place, render).entries()) {
    const piece = packed.subarray(index * pieceSize, (index + 1) * pieceSize);
    const secret = toSecret(place, name, { render: piece });
    const { errors } = await kubectl.run(['create', '-f', '-', '-o', 'name', '--validate=false'], {
      objects: [secret],
    });
    const wrong = errors.filter((error) => !error.includes('(AlreadyExists)'));
    if (wrong.length > 0) {
      throw new OpmateError('INVALID', `storing the render of ${quoteGo(place.name)}: ${wrong.join('; ')}`);
    }
  }
  return render;
}

/** Returns the objects of a stored render. Throws OpmateError if missing or changed. */
export async function loadRender(
  kubectl: Kubectl,
  place: InventoryPlace,
  render: StoredRender,
): Promise<PlainObject[]> {
  const names = pieceNames(place, render);
  const secrets = await getSecrets(kubectl, place, names);
  const subject = `stored render of ${quoteGo(place.name)}`;
  const parts = names.map((name) => {
    const secret = secrets.find(({ metadata }) => getValue(metadata, 'name') === name);
    if (secret !== undefined) return getData(secret, 'render');
    throw new OpmateError('NOT_FOUND', `${subject}: Secret ${quoteGo(name)} not found`);
  });
  const content = await unpack(Buffer.concat(parts)).catch((error: unknown) => {
    throw new OpmateError('INVALID', `${subject}: damaged`, { cause: error });
  });
  if (computeDigest(content) !== render.digest)
    throw new OpmateError('DIGEST', `${subject}: digest mismatch`);
  const { manifests } = readManifests([{ name: 'render.yaml', content }], { prefix: '' });
  return manifests.map((manifest) => toPlainObject(manifest));
}

/** Deletes the renders that no revision refers to. Failures are ignored. */
export async function dropRenders(
  kubectl: Kubectl,
  place: InventoryPlace,
  before: readonly Revision[],
  after: readonly Revision[],
): Promise<void> {
  const kept = new Set(after.map(({ render }) => render?.digest));
  const names = before.flatMap(({ render }) =>
    render !== undefined && !kept.has(render.digest) ? pieceNames(place, render) : [],
  );
  if (names.length === 0) return;
  const objects = names.map((name) => toSecret(place, name, {}));
  const args = ['delete', '--ignore-not-found', '--wait=false', '-o', 'name', '-f', '-'];
  await kubectl.run(args, { objects, isCancellable: false });
}

/** Returns the deployments of a set in all namespaces. Throws OpmateError. */
export async function listSet(kubectl: Kubectl, set: string): Promise<InventoryPlace[]> {
  const flags = ['--all-namespaces', `--selector=${setLabel}=${set}`, '-o', 'json'];
  const text = await kubectl.expect(`deployments of set ${quoteGo(set)}`, ['get', 'secrets', ...flags]);
  return parseObjects(text).map((secret) => ({
    namespace: getText(secret, 'metadata', 'namespace'),
    name: getText(secret, 'metadata', 'annotations', 'opmate.dev/deployment'),
  }));
}

/** Deletes the inventory and the renders of a deployment. Throws OpmateError. */
export async function deleteInventory(
  kubectl: Kubectl,
  place: InventoryPlace,
  { revisions }: DeploymentInventory,
): Promise<void> {
  await dropRenders(kubectl, place, revisions, []);
  const secret = toSecret(place, inventoryName(place.name), {});
  const args = ['delete', '--ignore-not-found', '-o', 'name', '-f', '-'];
  await kubectl.expect(`deleting the inventory of ${quoteGo(place.name)}`, args, { objects: [secret] });
}

/** Returns revisions with one more; older ones are kept without their render, the oldest dropped. */
export function withRevision(revisions: readonly Revision[], next: Revision): Revision[] {
  const all = [...revisions, next].slice(-keptRevisions);
  const withRender = all.filter(({ render }) => render !== undefined);
  const old = new Set(withRender.slice(0, Math.max(0, withRender.length - keptRenders)));
  return all.map((revision) => (old.has(revision) ? withoutRender(revision) : revision));
}

/** Returns a revision without its render. */
export function withoutRender(revision: Revision): Revision {
  const rest = { ...revision };
  delete rest.render;
  return rest;
}

async function getSecrets(
  kubectl: Kubectl,
  { name, namespace }: InventoryPlace,
  names: readonly string[],
): Promise<JsonObject[]> {
  const flags = [`--namespace=${namespace}`, '--ignore-not-found', '-o', 'json'];
  return parseObjects(
    await kubectl.expect(`inventory of ${quoteGo(name)}`, ['get', 'secrets', ...names, ...flags]),
  );
}

function toSecret(
  { name, namespace }: InventoryPlace,
  secretName: string,
  data: Readonly<Record<string, Buffer>>,
  { resourceVersion, set }: { resourceVersion?: string | undefined; set?: string | undefined } = {},
): JsonObject {
  return {
    apiVersion: 'v1',
    kind: 'Secret',
    metadata: {
      name: secretName,
      namespace,
      labels: {
        'app.kubernetes.io/managed-by': 'opmate',
        [label]: toHex(computeDigest(name)).slice(0, 32),
        ...(set !== undefined && { [setLabel]: set }),
      },
      annotations: { 'opmate.dev/deployment': name },
      ...(resourceVersion !== undefined && { resourceVersion }),
    },
    type: 'opmate.dev/inventory',
    data: Object.fromEntries(Object.entries(data).map(([key, value]) => [key, value.toString('base64')])),
  };
}

function getData(secret: JsonObject, key: string): Buffer {
  return Buffer.from(getText(secret, 'data', key), 'base64');
}

function unpack(packed: Buffer): Promise<Buffer> {
  return unzip(packed, { maxOutputLength: maxUnpacked });
}

/** Validates an inventory, which anybody with access to Secrets could have changed. Throws OpmateError. */
function parseInventory(value: JsonValue): DeploymentInventory {
  const root = openValue(value, { name: 'inventory' });
  const { format, objects, revisions, unfinished, set } = root.object(
    ['format', 'objects', 'revisions', 'unfinished', 'set'],
    foreign,
  );
  if (format.value !== 1) return format.fail('not format 1');
  return {
    objects: objects.list().map(readHeldObject),
    revisions: revisions.list().map(readRevision),
    ...(unfinished.isPresent && { unfinished: readUnfinished(unfinished) }),
    ...(set.isPresent && { set: set.anyText() }),
  };
}

/** Other versions may write more fields. */
const foreign = { unknown: 'ignore' } as const;

function readUnfinished(field: Field<never>): Required<DeploymentInventory>['unfinished'] {
  const keys = ['time', 'hash', 'objects', 'isDeletion'] as const;
  const { time, hash, objects, isDeletion } = field.object(keys, foreign);
  return {
    time: time.anyText(),
    hash: hash.anyText(),
    objects: objects.list().map(readId),
    ...(isDeletion.value === true && { isDeletion: true }),
  };
}

const revisionKeys = [
  'revision',
  'time',
  'result',
  'reason',
  'packageName',
  'bundleName',
  'version',
  'healthChecks',
  'hash',
  'pins',
  'rollbackTo',
  'render',
] as const;

function readRevision(field: Field<never>): Revision {
  const {
    revision,
    time,
    result,
    reason,
    packageName,
    bundleName,
    version,
    healthChecks,
    hash,
    pins,
    rollbackTo,
    render,
  } = field.object(revisionKeys, foreign);
  return {
    revision: revision.integer(1, Number.MAX_SAFE_INTEGER),
    time: time.anyText(),
    result: result.choice(['applied', 'failed']),
    ...(reason.isPresent && { reason: reason.anyText(Infinity) }),
    ...(packageName.isPresent && { packageName: packageName.anyText() }),
    ...(bundleName.isPresent && { bundleName: bundleName.anyText() }),
    ...(version.isPresent && { version: version.anyText() }),
    ...(healthChecks.isPresent && { healthChecks: readHealthChecks(healthChecks) ?? [] }),
    hash: hash.anyText(),
    pins: pins.optionalList().map(readPin),
    ...(rollbackTo.isPresent && { rollbackTo: rollbackTo.integer(1, Number.MAX_SAFE_INTEGER) }),
    ...(render.isPresent && { render: readRender(render) }),
  };
}

function readPin(field: Field<never>): KeptPin {
  const { name, type, ref, content } = field.object(['name', 'type', 'ref', 'content'], foreign);
  const kind = type.anyText() as KeptPin['type'];
  return { name: name.anyText(Infinity), type: kind, ref: ref.anyText(Infinity), content: content.anyText() };
}

function readRender(field: Field<never>): StoredRender {
  const { digest, pieces } = field.object(['digest', 'pieces'], foreign);
  const isSha256 = (text: string): boolean => /^sha256:[0-9a-f]{64}$/.test(text);
  return { digest: digest.matching(isSha256, 'a SHA-256 digest'), pieces: pieces.integer(1, maxPieces) };
}

function readHeldObject(field: Field<never>): HeldObject {
  const { takenOver } = field.object(['takenOver'], foreign);
  return { ...readId(field), ...(takenOver.value === true && { takenOver: true }) };
}

function readId(field: Field<never>): ObjectId {
  const fields = field.object(['apiVersion', 'kind', 'namespace', 'name'], foreign);
  return {
    apiVersion: fields.apiVersion.anyText(),
    kind: fields.kind.anyText(),
    namespace: fields.namespace.anyText(),
    name: fields.name.anyText(),
  };
}
