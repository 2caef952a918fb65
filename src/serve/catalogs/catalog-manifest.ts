import { computeDigest } from '../../core/digest.js';
import type { WrittenDocument } from '../../document/document.js';
import { type Field, findNearest } from '../../document/field.js';
import { encodeGoJson, quoteGo, sortKeysDeep } from '../../document/go-json.js';
import { type JsonValue, asJson, isJsonObject } from '../../document/json.js';
import type { CatalogPlace } from '../../source/place.js';
import type { SecretName } from '../../source/secrets.js';
import { findCatalogNameFault } from '../http/catalog-names.js';
import {
  type ManifestContext,
  type ReadContext,
  type ReadSource,
  findConfigMap,
  isPinnedRef,
  readDuration,
  readImageRef,
  readPullSecrets,
  readUnionSource,
} from './manifest-source.js';

/** A manifest of a catalog to serve. */
export interface CatalogManifest {
  name: string;
  kind: string;
  /** As the user named it. */
  file: string;
  line: number;
  labels: Readonly<Record<string, string>>;
  priority: number;
  isAvailable: boolean;
  /** Interval of looks for a new state, in milliseconds; undefined for none. */
  pollMs: number | undefined;
  origin: CatalogPlace;
  /** Secret with the credentials of the origin. */
  secret?: SecretName | undefined;
  /** Secrets with credentials of its registry; missing ones are ignored, as kubelets do. */
  pullSecrets: readonly SecretName[];
  /** Digest of the origin. */
  originKey: string;
  /** Digest of all fields that affect serving. */
  key: string;
}

/** Label that selects a catalog by name. (Source: catalogd.) */
const nameLabel = 'olm.operatorframework.io/metadata.name';

/** First API version of catalogd. */
const firstCatalogd = 'catalogd.operatorframework.io/v1beta1';

/** API versions of each kind, newest first; OperatorCatalog is a name that was proposed for CatalogSource. */
const apiVersions: Readonly<Record<string, readonly string[]>> = {
  ClusterCatalog: [
    'olm.operatorframework.io/v1',
    'olm.operatorframework.io/v1alpha1',
    'catalogd.operatorframework.io/v1alpha1',
  ],
  Catalog: ['catalogd.operatorframework.io/v1alpha1', firstCatalogd, 'core.rukpak.io/v1alpha1'],
  CatalogSource: ['operators.coreos.com/v1alpha1', firstCatalogd],
  OperatorCatalog: ['operators.coreos.com/v1alpha1', 'operators.coreos.com/v1', firstCatalogd],
};
const kinds = Object.keys(apiVersions);

/** Reads the manifest of a catalog; undefined for other kinds and for faults, which are reported. */
export function readCatalog(object: WrittenDocument, context: ReadContext): CatalogManifest | undefined {
  const { root, name: file, findPlace } = object;
  const log = (level: 'warn' | 'info', field: Field, message: string): void =>
    context.logger.log(level, `${file}:${findPlace(field.path).line}: ${message}`);
  const kind = root.jsonObject() && root.field('kind').text();
  if (kind === undefined) return undefined;
  if (!kinds.includes(kind)) {
    if (findNearest(kind, kinds) !== undefined) root.field('kind').choice(kinds);
    else log('warn', root.field('kind'), `kind ${quoteGo(kind)} is not a catalog, skipped`);
    return undefined;
  }
  const fields = root.object(['apiVersion', 'kind', 'metadata', 'spec', 'status']);
  const versions = apiVersions[kind] ?? [];
  const apiVersion = fields?.apiVersion.choice(versions);
  const metadata = fields?.metadata.object(['name', 'namespace', 'labels'], { unknown: 'ignore' });
  const name = metadata?.name.text();
  const nameFault = name === undefined ? undefined : findCatalogNameFault(name);
  if (nameFault !== undefined) metadata?.name.fail(`${quoteGo(name ?? '')} ${nameFault}`);
  const spec = fields?.spec;
  if (spec?.jsonObject() === undefined || metadata === undefined) return undefined;
  const labels = readLabels(metadata.labels, name ?? '');
  const priority = spec.field('priority').optionalInteger(-(2 ** 31), 2 ** 31 - 1) ?? 0;
  const isFirst = apiVersion !== versions[0] || kind === 'Catalog';
  const notice = (field: Field, message: string): void => log('info', field, message);
  const inner = { ...context, namespace: metadata.namespace.optionalText(), isFirst, notice };
  const read = readSpec(root.field('kind'), spec, inner);
  if (name === undefined || read?.origin === undefined) return undefined;
  const { origin, secret, pullSecrets = [], isAvailable = true, pollMs } = read;
  const originKey = toKey(asJson(origin));
  const secrets = [...(secret === undefined ? [] : [secret]), ...pullSecrets].map((item) => ({ ...item }));
  const key = toKey([originKey, labels, priority, isAvailable, pollMs ?? 0, ...secrets]);
  const { line } = findPlace(metadata.name.path);
  return {
    name,
    kind,
    file,
    line,
    labels,
    priority,
    isAvailable,
    pollMs,
    origin,
    secret,
    pullSecrets,
    originKey,
    key,
  };
}

/** Reads the spec by the kind, or by its fields in a form that was replaced. */
function readSpec(kind: Field, spec: Field, context: ManifestContext): ReadSpec | undefined {
  const has = (key: string): boolean => spec.field(key).isPresent;
  if (kind.value === 'ClusterCatalog') return readClusterCatalog(spec, context);
  if (kind.value === 'Catalog') {
    return has('image') && !has('source')
      ? readImageSpec(kind, spec, context)
      : readClusterCatalog(spec, context);
  }
  if (kind.value === 'OperatorCatalog' && has('sourceType')) {
    context.notice(kind, 'kind OperatorCatalog is CatalogSource today');
  }
  const isCatalogSource = kind.value === 'CatalogSource' ? !context.isFirst : has('sourceType');
  return isCatalogSource ? readCatalogSource(spec, context) : readImageSpec(kind, spec, context);
}

function toKey(value: JsonValue): string {
  return computeDigest(encodeGoJson(sortKeysDeep(value)));
}

const maxLabels = 10_000;

function readLabels(field: Field, name: string): Record<string, string> {
  const labels: Record<string, string> = {};
  for (const [key, label] of field.isPresent ? (field.entries(maxLabels) ?? []) : []) {
    if (/^[A-Za-z0-9][-A-Za-z0-9._/]{0,316}$/.test(key)) labels[key] = label.optionalText(63) ?? '';
    else label.fail('invalid label name');
  }
  labels[nameLabel] = name;
  return labels;
}

interface ReadSpec extends ReadSource {
  /** Default true. */
  isAvailable?: boolean;
}

function readClusterCatalog(spec: Field, context: ManifestContext): ReadSpec | undefined {
  const { isFirst } = context;
  const former = isFirst ? (['availability'] as const) : [];
  const fields = spec.object(['source', 'priority', 'availabilityMode', ...former]);
  if (fields === undefined) return undefined;
  const modes = ['Available', 'Unavailable', 'Enabled', 'Disabled'] as const;
  const mode =
    fields.availabilityMode.optionalChoice(['Available', 'Unavailable']) ??
    (isFirst ? spec.field('availability').optionalChoice(modes) : undefined);
  const isAvailable = mode !== 'Unavailable' && mode !== 'Disabled';
  const source = readUnionSource(fields.source, context);
  return source && { ...source, isAvailable };
}

/** Interval of `poll: true` without a time, that of catalog operators. */
const defaultPollMs = 15 * 60_000;

const sourceKeys = [
  'sourceType',
  'priority',
  'configMap',
  'address',
  'image',
  'grpcPodConfig',
  'updateStrategy',
  'poll',
  'pollTimer',
  'secrets',
  'displayName',
  'description',
  'publisher',
  'icon',
  'runAsRoot',
] as const;

function readCatalogSource(spec: Field, context: ManifestContext): ReadSpec | undefined {
  const fields = spec.object(sourceKeys);
  if (fields === undefined) return undefined;
  const strategy = fields.updateStrategy.optionalObject(['registryPoll']);
  const registryPoll = strategy?.registryPoll.optionalObject(['interval']);
  const pollMs = (registryPoll && readDuration(registryPoll.interval)) ?? readFormerPoll(spec, context);
  const type = fields.sourceType.choice(['grpc', 'internal', 'configmap']);
  if (type === undefined) return undefined;
  if (type !== 'grpc') {
    return { origin: findConfigMap(fields.configMap, context.namespace, context), pollMs: undefined };
  }
  if (!fields.image.isPresent && fields.address.isPresent) {
    return fields.address.fail('unsupported: the catalog of another server', { hint: 'set its image' });
  }
  const ref = readImageRef(fields.image, context.directory);
  if (ref === undefined) return undefined;
  const pullSecrets = readPullSecrets(fields.secrets.optionalList(), context);
  return { origin: { kind: 'image', ref }, pullSecrets, pollMs: isPinnedRef(ref) ? undefined : pollMs };
}

/** Reads the proposed forms of the interval: `poll: {interval: 10m}`, `poll: 10m`, or `pollTimer: 10m` with `poll: true`. */
function readFormerPoll(spec: Field, { notice }: ManifestContext): number | undefined {
  const [poll, timer] = [spec.field('poll'), spec.field('pollTimer')];
  for (const field of [poll, timer]) {
    if (field.isPresent) {
      const key = field === poll ? 'poll' : 'pollTimer';
      notice(field, `${key} is updateStrategy.registryPoll.interval today`);
    }
  }
  if (typeof poll.value === 'boolean') {
    return poll.value ? (readDuration(timer) ?? defaultPollMs) : undefined;
  }
  const pollMs = isJsonObject(poll.value)
    ? readDuration(poll.object(['interval'])?.interval ?? poll)
    : readDuration(poll);
  return pollMs ?? readDuration(timer);
}

/** Reads the first form of catalogs of OLM v1: an image and an interval. */
function readImageSpec(kind: Field, spec: Field, context: ManifestContext): ReadSpec | undefined {
  const fields = spec.object(['image', 'pollingInterval', 'priority', 'secrets', 'displayName', 'publisher']);
  if (fields === undefined) return undefined;
  context.notice(
    kind,
    `kind ${quoteGo(String(kind.value))} with spec.image is ClusterCatalog with spec.source today`,
  );
  const ref = readImageRef(fields.image, context.directory);
  const pollMs = readDuration(fields.pollingInterval);
  if (ref === undefined) return undefined;
  const pullSecrets = readPullSecrets(fields.secrets.optionalList(), context);
  return { origin: { kind: 'image', ref }, pullSecrets, pollMs: isPinnedRef(ref) ? undefined : pollMs };
}
