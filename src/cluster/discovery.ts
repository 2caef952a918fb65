import { mapConcurrent } from '../core/concurrency.js';
import { OpmateError } from '../core/errors.js';
import { parseGoJson } from '../document/go-json.js';
import { type JsonObject, isJsonObject } from '../document/json.js';
import { getObjects } from '../document/json-fields.js';
import { sortedByBytes } from '../core/order.js';
import type { Kubectl } from './kubectl.js';
import { getGroup } from '../kube/object.js';
import type { ObjectId } from './objects.js';

/** A kind in the API. */
interface Resource {
  group: string;
  /** Plural name: `deployments`. */
  plural: string;
  isNamespaced: boolean;
  /** The kind exists; false if one of the objects defines it. */
  exists: boolean;
}

/** Kinds by `APIVERSION KIND`. */
export type Resources = ReadonlyMap<string, Resource>;

/** Returns the kind of an object, existing or defined. */
export function findResource(resources: Resources, { apiVersion, kind }: ObjectId): Resource | undefined {
  return resources.get(`${apiVersion} ${kind}`);
}

const groupVersion = /^(?:[a-z0-9](?:[-a-z0-9.]*[a-z0-9])?\/)?v[a-z0-9]+$/;
const concurrency = 4;

/**
 * Returns the kinds of objects in the cluster, with one call per API version, and the kinds that the objects define.
 */
export async function discoverResources(
  kubectl: Kubectl,
  objects: readonly JsonObject[],
): Promise<Resources> {
  const versions = new Set(
    objects.map(({ apiVersion }) => apiVersion).filter((text) => typeof text === 'string'),
  );
  const resources = new Map<string, Resource>();
  for (const [key, resource] of objects.flatMap(definedBy)) resources.set(key, resource);
  await mapConcurrent(sortedByBytes(versions), concurrency, async (apiVersion) => {
    // Invalid versions must not become a path.
    if (!groupVersion.test(apiVersion)) return;
    const address = apiVersion.includes('/') ? `/apis/${apiVersion}` : `/api/${apiVersion}`;
    const { stdout, errors } = await kubectl.run(['get', '--raw', address]);
    if (errors.length > 0) {
      if (errors.every((error) => error.includes('(NotFound)'))) return;
      throw new OpmateError('INVALID', `${apiVersion}: ${errors.join('; ')}`);
    }
    const list = parseGoJson(stdout);
    for (const resource of getObjects(list, 'resources')) {
      const { name, kind, namespaced } = resource;
      // Subresources, such as `deployments/scale`, have other kinds.
      if (typeof name !== 'string' || typeof kind !== 'string' || name.includes('/')) continue;
      const group = getGroup(apiVersion);
      resources.set(`${apiVersion} ${kind}`, {
        group,
        plural: name,
        isNamespaced: namespaced === true,
        exists: true,
      });
    }
  });
  return resources;
}

/** Returns the kinds of a custom resource definition, one per version. */
function definedBy({ apiVersion, kind, spec }: JsonObject): [string, Resource][] {
  if (kind !== 'CustomResourceDefinition' || typeof apiVersion !== 'string' || !isJsonObject(spec)) return [];
  const { group, names, scope, versions } = spec;
  if (!isJsonObject(names) || typeof group !== 'string' || !Array.isArray(versions)) return [];
  const { plural, kind: defined } = names;
  if (typeof plural !== 'string' || typeof defined !== 'string') return [];
  const resource = { group, plural, isNamespaced: scope !== 'Cluster', exists: false };
  return versions.flatMap((version) =>
    isJsonObject(version) && typeof version['name'] === 'string' && version['served'] !== false
      ? [[`${group}/${version['name']} ${defined}`, resource]]
      : [],
  );
}
