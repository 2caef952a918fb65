import { type Diagnostic, createWarning } from '../../core/diagnostic.js';
import { OpmateError } from '../../core/errors.js';
import { groupBy } from '../../core/groups.js';
import { sortedByBytes } from '../../core/order.js';
import type { JsonObject } from '../../document/json.js';
import { getText } from '../../document/json-fields.js';
import { type ClusterSnapshot, readSnapshot } from '../../cluster/snapshot.js';
import type { ClusterText } from '../../cluster/snapshot-files.js';
import { type NamespaceState, readNamespace } from '../../solve/v0/namespace-state.js';
import type { CatalogKey, ResolverCatalog } from '../../solve/v0/resolver-types.js';
import type { Session } from '../../source/session.js';
import {
  type CatalogSourceContent,
  findCatalogSources,
  readResolverCatalogs,
  requireCatalogSources,
} from './read-resolver-catalogs.js';

/** Snapshot and catalogs that OLM v0 resolves. */
export interface ResolverRequest {
  /** Files, directories and texts of objects, or a snapshot. */
  snapshot: readonly (string | ClusterText)[] | ClusterSnapshot;
  /**
   * Content of CatalogSources by `NAMESPACE/NAME`, name or image; null for one without a connection. Others are left out
   * with a warning.
   */
  catalogs: ReadonlyMap<string, CatalogSourceContent | null>;
  /** Objects that are applied before, such as a new Subscription. */
  proposed?: readonly (string | ClusterText)[];
  /** Default all that have a Subscription. */
  namespaces?: readonly string[];
  /** Namespace whose catalogs all namespaces see; default `openshift-marketplace` if it has CatalogSources, else `olm`. */
  globalNamespace?: string;
}

/** A namespace with what OLM v0 resolves it from. */
export interface ResolverNamespace {
  state: NamespaceState;
  /** Objects of the namespace. */
  objects: readonly JsonObject[];
  /** Catalogs that it sees. */
  catalogs: ResolverCatalog[];
}

/**
 * Reads the namespaces of a snapshot with the catalogs that each sees. Throws OpmateError, NOT_FOUND without a Subscription,
 * and for a catalog or namespace that the snapshot lacks.
 */
export async function readResolverNamespaces(
  request: ResolverRequest,
  session: Session,
): Promise<{ namespaces: ResolverNamespace[]; findings: Diagnostic[] }> {
  const { objects, findings } = await readObjects(request, session);
  const sources = findCatalogSources(objects, request.catalogs);
  requireCatalogSources(sources, objects, request.catalogs.keys());
  const catalogs = await readResolverCatalogs(sources, session);
  const globalNamespace = request.globalNamespace ?? findGlobalNamespace(objects);
  const byNamespace = groupBy(objects, (object) => getText(object, 'metadata', 'namespace'));
  const namespaces = chooseNamespaces(objects, request.namespaces).map((namespace) => {
    const own = byNamespace.get(namespace) ?? [];
    return {
      state: readNamespace(namespace, own),
      objects: own,
      catalogs: catalogs.filter(
        ({ key }) => key.namespace === namespace || key.namespace === globalNamespace,
      ),
    };
  });
  return { namespaces, findings: [...findings, ...sources.flatMap(findUnknownContent)] };
}

function findUnknownContent({ key, content }: { key: CatalogKey; content: unknown }): Diagnostic[] {
  if (content !== undefined) return [];
  return [
    createWarning('unknown-catalog', 'content not specified: its bundles are left out', {
      subject: `CatalogSource ${key.namespace}/${key.name}`,
      hint: `specify its catalog as ${key.name}=REFERENCE`,
    }),
  ];
}

async function readObjects(
  { snapshot, proposed = [] }: ResolverRequest,
  session: Session,
): Promise<ClusterSnapshot> {
  const base = 'objects' in snapshot ? snapshot : await readSnapshot(snapshot, session);
  if (proposed.length === 0) return base;
  const added = await readSnapshot(proposed, session);
  const replaced = new Map(added.objects.map((object) => [objectKey(object), object]));
  const merged = base.objects.map((object) => {
    const proposal = replaced.get(objectKey(object));
    if (proposal === undefined) return object;
    replaced.delete(objectKey(object));
    // A status is the cluster's, not the document's.
    return { ...proposal, status: object['status'] ?? {} };
  });
  return { objects: [...merged, ...replaced.values()], findings: [...base.findings, ...added.findings] };
}

function objectKey(object: JsonObject): string {
  const names = ['namespace', 'name'].map((field) => getText(object, 'metadata', field));
  return [getText(object, 'kind'), ...names].join('/');
}

function findGlobalNamespace(objects: readonly JsonObject[]): string {
  const isOpenShift = objects.some(
    (object) =>
      object['kind'] === 'ClusterVersion' ||
      (object['kind'] === 'CatalogSource' &&
        getText(object, 'metadata', 'namespace') === 'openshift-marketplace'),
  );
  return isOpenShift ? 'openshift-marketplace' : 'olm';
}

function chooseNamespaces(objects: readonly JsonObject[], wanted: readonly string[] | undefined): string[] {
  const subscribed = sortedByBytes(
    new Set(
      objects
        .filter((object) => object['kind'] === 'Subscription')
        .map((object) => getText(object, 'metadata', 'namespace')),
    ),
  );
  if (subscribed.length === 0)
    throw new OpmateError('NOT_FOUND', 'no Subscription found', { hint: 'use the output of kubectl get' });
  if (wanted === undefined) return subscribed;
  const unknown = wanted.find((namespace) => !subscribed.includes(namespace));
  if (unknown === undefined) return [...wanted];
  throw new OpmateError('NOT_FOUND', 'no Subscription of the snapshot is in this namespace', {
    subject: `namespace ${unknown}`,
    hint: `use one of ${subscribed.join(', ')}`,
  });
}
