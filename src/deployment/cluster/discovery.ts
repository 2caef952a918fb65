import { mapConcurrent } from '../../core/concurrency.js';
import { OpmateError } from '../../core/errors.js';
import { parseGoJson } from '../../document/go-json.js';
import { type JsonObject, isJsonObject } from '../../document/json.js';
import { getObjects } from '../../document/json-fields.js';
import { sortedByBytes } from '../../core/order.js';
import type { Kubectl } from './kubectl.js';
import { getGroup } from '../../kube/object.js';
import type { ObjectId } from './objects.js';

/** How the API names a kind. */
interface Resource {
  group: string;
  /** As in `deployments`. */
  plural: string;
  isNamespaced: boolean;
  /** Whether the cluster has it already; false where a definition among the objects will bring it. */
  isThere: boolean;
}

/** Kinds by `APIVERSION KIND`. */
export type Resources = ReadonlyMap<string, Resource>;

/** The kind of an object, if the cluster has it, or will. */
export function findResource(resources: Resources, { apiVersion, kind }: ObjectId): Resource | undefined {
  return resources.get(`${apiVersion} ${kind}`);
}

const groupVersion = /^(?:[a-z0-9](?:[-a-z0-9.]*[a-z0-9])?\/)?v[a-z0-9]+$/;
const concurrency = 4;

/** Asks which kinds of these objects the cluster has, one call an API version, and adds those that they define. */
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
    // What no cluster has must not become a path.
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
      // Sub-resources, as in `deployments/scale`, bear kinds of their own.
      if (typeof name !== 'string' || typeof kind !== 'string' || name.includes('/')) continue;
      const group = getGroup(apiVersion);
      resources.set(`${apiVersion} ${kind}`, {
        group,
        plural: name,
        isNamespaced: namespaced === true,
        isThere: true,
      });
    }
  });
  return resources;
}

/** The kinds that a custom resource definition brings, one a version. */
function definedBy({ apiVersion, kind, spec }: JsonObject): [string, Resource][] {
  if (kind !== 'CustomResourceDefinition' || typeof apiVersion !== 'string' || !isJsonObject(spec)) return [];
  const { group, names, scope, versions } = spec;
  if (!isJsonObject(names) || typeof group !== 'string' || !Array.isArray(versions)) return [];
  const { plural, kind: defined } = names;
  if (typeof plural !== 'string' || typeof defined !== 'string') return [];
  const resource = { group, plural, isNamespaced: scope !== 'Cluster', isThere: false };
  return versions.flatMap((version) =>
    isJsonObject(version) && typeof version['name'] === 'string' && version['served'] !== false
      ? [[`${group}/${version['name']} ${defined}`, resource]]
      : [],
  );
}
