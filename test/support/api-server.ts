/**
 * A small API server on loopback that answers as Kubernetes does, as far as kubectl asks when it applies, reads and
 * deletes objects: discovery, server-side apply with field managers, namespaces, definitions that become established,
 * access reviews, warnings. Lists in objects count as one value. It is told what to refuse, and records all requests.
 */
import { spawnSync } from 'node:child_process';
import { randomUUID } from 'node:crypto';
import { type IncomingMessage, type ServerResponse, createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { isDeepStrictEqual } from 'node:util';

/** Whether kubectl is installed here. */
export const hasKubectl = spawnSync('kubectl', ['version', '--client']).status === 0;

export type KubeObject = {
  apiVersion: string;
  kind: string;
  metadata: {
    name: string;
    namespace?: string;
    uid?: string;
    resourceVersion?: string;
    annotations?: Record<string, string>;
    labels?: Record<string, string>;
  };
} & Record<string, unknown>;

export interface KubeRequest {
  method: string;
  /** Without the query. */
  path: string;
  query: URLSearchParams;
  body: string;
  isDryRun: boolean;
}

export interface Refusal {
  code: number;
  reason: string;
  message: string;
}

/** What somebody may not do; parts that are left out are anything. */
export interface Denial {
  verb?: string;
  resource?: string;
  namespace?: string;
  /** The only names that are allowed all the same. */
  except?: string[];
}

interface Kind {
  group: string;
  version: string;
  kind: string;
  plural: string;
  isNamespaced: boolean;
}

const builtIn: [string, string, [string, string, boolean][]][] = [
  [
    '',
    'v1',
    [
      ['Namespace', 'namespaces', false],
      ['ServiceAccount', 'serviceaccounts', true],
      ['ConfigMap', 'configmaps', true],
      ['Secret', 'secrets', true],
      ['Service', 'services', true],
      ['Pod', 'pods', true],
    ],
  ],
  [
    'apps',
    'v1',
    [
      ['Deployment', 'deployments', true],
      ['DaemonSet', 'daemonsets', true],
      ['StatefulSet', 'statefulsets', true],
    ],
  ],
  [
    'rbac.authorization.k8s.io',
    'v1',
    [
      ['Role', 'roles', true],
      ['RoleBinding', 'rolebindings', true],
      ['ClusterRole', 'clusterroles', false],
      ['ClusterRoleBinding', 'clusterrolebindings', false],
    ],
  ],
  ['apiextensions.k8s.io', 'v1', [['CustomResourceDefinition', 'customresourcedefinitions', false]]],
  [
    'admissionregistration.k8s.io',
    'v1',
    [
      ['ValidatingWebhookConfiguration', 'validatingwebhookconfigurations', false],
      ['MutatingWebhookConfiguration', 'mutatingwebhookconfigurations', false],
    ],
  ],
  ['policy', 'v1', [['PodDisruptionBudget', 'poddisruptionbudgets', true]]],
  ['networking.k8s.io', 'v1', [['NetworkPolicy', 'networkpolicies', true]]],
  ['scheduling.k8s.io', 'v1', [['PriorityClass', 'priorityclasses', false]]],
  ['authorization.k8s.io', 'v1', [['SelfSubjectAccessReview', 'selfsubjectaccessreviews', false]]],
];

type Fields = Map<string, unknown>;

interface Stored {
  object: KubeObject;
  /** What each manager has applied, leaf by leaf. */
  managers: Map<string, Fields>;
  /** Reads until a definition is established. */
  readsLeft: number;
}

export class ApiServer {
  readonly #server = createServer((request, response) => void this.#serve(request, response));
  readonly #stored = new Map<string, Stored>();
  #kinds: Kind[] = builtIn.flatMap(([group, version, kinds]) =>
    kinds.map(([kind, plural, isNamespaced]) => ({ group, version, kind, plural, isNamespaced })),
  );
  #version = 0;
  readonly requests: KubeRequest[] = [];
  readonly denied: Denial[] = [];
  /** Says which requests fail, besides those that Kubernetes refuses. */
  refuse: (request: KubeRequest) => Refusal | undefined = () => undefined;
  /** Warnings that an answer bears. */
  warn: (request: KubeRequest) => string[] = () => [];
  /** Reads of a definition until it is established. */
  readsUntilEstablished = 1;

  constructor() {
    for (const name of ['default', 'kube-system']) {
      this.put({ apiVersion: 'v1', kind: 'Namespace', metadata: { name } });
    }
  }

  async start(port = 0): Promise<void> {
    await new Promise<void>((resolve) => this.#server.listen(port, '127.0.0.1', resolve));
  }

  get port(): number {
    return (this.#server.address() as AddressInfo).port;
  }

  async close(): Promise<void> {
    this.#server.closeAllConnections();
    await new Promise((resolve) => this.#server.close(resolve));
  }

  /** A kubeconfig with one context, `test`. */
  get kubeconfig(): string {
    return JSON.stringify({
      apiVersion: 'v1',
      kind: 'Config',
      clusters: [{ name: 'test', cluster: { server: `http://127.0.0.1:${this.port}` } }],
      users: [{ name: 'test', user: {} }],
      contexts: [{ name: 'test', context: { cluster: 'test', user: 'test' } }],
      'current-context': 'test',
    });
  }

  /** Puts an object there as if somebody else had. */
  put(object: KubeObject, manager = 'somebody'): KubeObject {
    const kind = this.#kindOf(object.apiVersion, object.kind);
    const key = keyOf(kind, object.metadata.namespace ?? '', object.metadata.name);
    const stored = this.#stored.get(key) ?? { object, managers: new Map(), readsLeft: 0 };
    stored.object = this.#versioned({
      ...object,
      metadata: { ...object.metadata, uid: stored.object.metadata.uid ?? randomUUID() },
    });
    stored.managers.set(manager, leavesOf(object));
    this.#stored.set(key, stored);
    this.#defineFrom(stored.object);
    return stored.object;
  }

  get(kind: string, name: string, namespace = ''): KubeObject | undefined {
    return this.objects(kind).find(
      ({ metadata }) => metadata.name === name && (metadata.namespace ?? '') === namespace,
    );
  }

  /** All objects, or those of one kind. */
  objects(kind?: string): KubeObject[] {
    return [...this.#stored.values()]
      .map(({ object }) => object)
      .filter((object) => kind === undefined || object.kind === kind);
  }

  remove(kind: string, name: string, namespace = ''): void {
    for (const [key, { object }] of this.#stored) {
      const { metadata } = object;
      if (object.kind === kind && metadata.name === name && (metadata.namespace ?? '') === namespace) {
        this.#stored.delete(key);
      }
    }
  }

  /** `PATCH Deployment here/widget`, …: what has changed something, in order; access reviews aside. */
  changes(): string[] {
    return this.requests
      .filter(({ method, isDryRun }) => method !== 'GET' && !isDryRun)
      .filter(({ path }) => !path.includes('selfsubject'))
      .map(({ method, path, body }) => {
        const named = (body === '' ? {} : JSON.parse(body)) as Partial<KubeObject>;
        const [plural, name = named.metadata?.name] = path
          .split('/')
          .slice(path.includes('/namespaces/') ? -2 : -2);
        const isCollection = method === 'POST';
        return `${method} ${isCollection ? path.split('/').at(-1) : plural} ${isCollection ? named.metadata?.name : name}`;
      });
  }

  #versioned(object: KubeObject): KubeObject {
    const metadata = { ...object.metadata, resourceVersion: String(++this.#version) };
    return { ...object, metadata };
  }

  #kindOf(apiVersion: string, kind: string): Kind {
    const found = this.#kinds.find((one) => one.kind === kind && apiVersionOf(one) === apiVersion);
    if (found === undefined) throw new Error(`no ${apiVersion} ${kind}`);
    return found;
  }

  async #serve(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const chunks: Buffer[] = [];
    for await (const chunk of request) chunks.push(chunk as Buffer);
    const url = new URL(request.url ?? '/', 'http://localhost');
    const asked: KubeRequest = {
      method: request.method ?? 'GET',
      path: url.pathname,
      query: url.searchParams,
      body: Buffer.concat(chunks).toString(),
      isDryRun: url.searchParams.has('dryRun'),
    };
    this.requests.push(asked);
    let answer: { code: number; body: unknown };
    try {
      answer = this.#answer(asked);
    } catch (error) {
      answer = status(500, 'InternalError', String(error));
    }
    for (const text of this.warn(asked)) response.appendHeader('warning', `299 - ${JSON.stringify(text)}`);
    response.writeHead(answer.code, { 'content-type': 'application/json' });
    response.end(JSON.stringify(answer.body));
  }

  #answer(asked: KubeRequest): { code: number; body: unknown } {
    const { path, method } = asked;
    const refusal = this.refuse(asked);
    if (refusal !== undefined) return status(refusal.code, refusal.reason, refusal.message);
    if (method === 'GET') {
      const described = this.#describe(path);
      if (described !== undefined) return { code: 200, body: described };
    }
    const match =
      /^\/(?:api|apis\/([^/]+))\/([^/]+)(?:\/namespaces\/([^/]+)(?=\/[^/]))?\/([^/]+)(?:\/([^/]+))?$/.exec(
        path,
      );
    const [, group = '', version = '', namespace = '', plural = '', name = ''] = match ?? [];
    const kind = this.#kinds.find(
      (one) => one.group === group && one.version === version && one.plural === plural,
    );
    if (match === null || kind === undefined) {
      return status(404, 'NotFound', 'the server could not find the requested resource');
    }
    if (kind.kind === 'SelfSubjectAccessReview') return this.#review(asked);
    const verb = {
      GET: name === '' ? 'list' : 'get',
      POST: 'create',
      PUT: 'update',
      PATCH: 'patch',
      DELETE: 'delete',
    }[method];
    const shown = group === '' ? plural : `${plural}.${group}`;
    if (verb === undefined || this.#denies(verb, plural, namespace, name)) {
      const where = namespace === '' ? 'at the cluster scope' : `in the namespace "${namespace}"`;
      return status(
        403,
        'Forbidden',
        `${shown} "${name}" is forbidden: User "test" cannot ${verb} resource "${plural}" in API group "${group}" ${where}`,
      );
    }
    return this.#store(asked, kind, namespace, name, shown);
  }

  #denies(verb: string, resource: string, namespace: string, name: string): boolean {
    return this.denied.some(
      (denial) =>
        (denial.verb ?? verb) === verb &&
        (denial.resource ?? resource) === resource &&
        (denial.namespace ?? namespace) === namespace &&
        denial.except?.includes(name) !== true,
    );
  }

  #review({ body }: KubeRequest): { code: number; body: unknown } {
    const review = JSON.parse(body) as { spec: { resourceAttributes: Record<string, string> } };
    const { verb = '', resource = '', namespace = '', name = '' } = review.spec.resourceAttributes;
    return {
      code: 201,
      body: { ...review, status: { allowed: !this.#denies(verb, resource, namespace, name) } },
    };
  }

  #store(
    asked: KubeRequest,
    kind: Kind,
    namespace: string,
    name: string,
    shown: string,
  ): { code: number; body: unknown } {
    const { method, query, isDryRun } = asked;
    if (method === 'GET' && name === '') {
      const selected = query.get('fieldSelector')?.replace('metadata.name=', '');
      const items = this.objects(kind.kind).filter(
        ({ metadata }) =>
          (selected ?? metadata.name) === metadata.name &&
          (namespace || metadata.namespace) === metadata.namespace,
      );
      const metadata = { resourceVersion: String(this.#version) };
      return {
        code: 200,
        body: { apiVersion: apiVersionOf(kind), kind: `${kind.kind}List`, metadata, items },
      };
    }
    const body = asked.body === '' ? undefined : (JSON.parse(asked.body) as KubeObject);
    const key = keyOf(kind, namespace, name === '' ? (body?.metadata.name ?? '') : name);
    const stored = this.#stored.get(key);
    const missing = status(404, 'NotFound', `${shown} "${name}" not found`);
    switch (method) {
      case 'GET':
        return stored === undefined ? missing : { code: 200, body: this.#read(stored) };
      case 'DELETE':
        if (stored === undefined) return missing;
        if (!isDryRun) this.#delete(key, stored.object);
        return { code: 200, body: { apiVersion: 'v1', kind: 'Status', status: 'Success' } };
      case 'PUT': {
        if (stored === undefined || body === undefined) return missing;
        const asRead = body.metadata.resourceVersion;
        if (asRead !== undefined && asRead !== stored.object.metadata.resourceVersion) {
          return status(
            409,
            'Conflict',
            `Operation cannot be fulfilled on ${shown} "${name}": the object has been modified; please apply your changes to the latest version and try again`,
          );
        }
        return { code: 200, body: isDryRun ? body : this.put(body, query.get('fieldManager') ?? 'replace') };
      }
      default:
    }
    if (body === undefined) return status(400, 'BadRequest', 'no object');
    if (kind.isNamespaced && !this.#stored.has(keyOf(this.#kindOf('v1', 'Namespace'), '', namespace))) {
      return status(404, 'NotFound', `namespaces "${namespace}" not found`);
    }
    if (method === 'POST') {
      if (stored !== undefined)
        return status(409, 'AlreadyExists', `${shown} "${body.metadata.name}" already exists`);
      return { code: 201, body: isDryRun ? body : this.put(body, 'create') };
    }
    return this.#apply(asked, key, body, stored);
  }

  #apply(
    { query, isDryRun }: KubeRequest,
    key: string,
    body: KubeObject,
    stored: Stored | undefined,
  ): { code: number; body: unknown } {
    const manager = query.get('fieldManager') ?? 'unknown';
    const wanted = leavesOf(body);
    const conflicts: { manager: string; field: string }[] = [];
    for (const [other, fields] of stored?.managers ?? []) {
      if (other === manager) continue;
      for (const [field, value] of wanted) {
        if (fields.has(field) && !isDeepStrictEqual(leafAt(stored?.object, field), value)) {
          conflicts.push({ manager: other, field });
        }
      }
    }
    if (conflicts.length > 0 && query.get('force') !== 'true') {
      const [{ manager: other, field } = { manager: '', field: '' }] = conflicts;
      const shown = `.${(JSON.parse(field) as string[]).join('.')}`;
      const details = {
        causes: conflicts.map((one) => ({
          reason: 'FieldManagerConflict',
          message: `conflict with "${one.manager}"`,
          field: `.${(JSON.parse(one.field) as string[]).join('.')}`,
        })),
      };
      const text =
        conflicts.length === 1
          ? `Apply failed with 1 conflict: conflict with "${other}": ${shown}`
          : `Apply failed with ${conflicts.length} conflicts: conflicts with "${other}":\n- ${shown}`;
      return status(409, 'Conflict', text, details);
    }
    const next = structuredClone(stored?.object ?? body);
    // Whoever applies an object has no say in its status.
    if (stored === undefined) delete next['status'];
    for (const field of stored?.managers.get(manager)?.keys() ?? []) {
      const isShared = [...(stored?.managers ?? [])].some(
        ([other, fields]) => other !== manager && fields.has(field),
      );
      if (!wanted.has(field) && !isShared) removeAt(next, field);
    }
    for (const [field, value] of wanted) setAt(next, field, value);
    const isSame = stored !== undefined && isDeepStrictEqual(next, stored.object);
    if (isDryRun) return { code: 200, body: next };
    const managers = stored?.managers ?? new Map<string, Fields>();
    for (const { manager: other, field } of conflicts) managers.get(other)?.delete(field);
    managers.set(manager, wanted);
    const readsLeft = stored?.readsLeft ?? this.readsUntilEstablished;
    const object = isSame
      ? stored.object
      : this.#versioned({ ...next, metadata: { ...next.metadata, uid: next.metadata.uid ?? randomUUID() } });
    this.#stored.set(key, { object, managers, readsLeft });
    return { code: stored === undefined ? 201 : 200, body: object };
  }

  #read(stored: Stored): KubeObject {
    const { object } = stored;
    if (
      object.kind === 'CustomResourceDefinition' &&
      object['status'] === undefined &&
      stored.readsLeft-- <= 0
    ) {
      const conditions = ['NamesAccepted', 'Established'].map((type) => ({ type, status: 'True' }));
      stored.object = this.#versioned({ ...object, status: { conditions } });
      this.#defineFrom(stored.object);
    }
    return stored.object;
  }

  #defineFrom(object: KubeObject): void {
    if (object.kind !== 'CustomResourceDefinition') return;
    const { group, names, scope, versions } = object['spec'] as {
      group: string;
      names: { kind: string; plural: string };
      scope: string;
      versions: { name: string }[];
    };
    for (const { name } of versions) {
      const kind = { group, version: name, ...names, isNamespaced: scope !== 'Cluster' };
      this.#kinds = [
        ...this.#kinds.filter(
          (one) => one.group !== group || one.plural !== names.plural || one.version !== name,
        ),
        kind,
      ];
    }
  }

  #delete(key: string, object: KubeObject): void {
    this.#stored.delete(key);
    for (const [other, { object: inside }] of this.#stored) {
      const isIn = object.kind === 'Namespace' && inside.metadata.namespace === object.metadata.name;
      const { group, names } = (object['spec'] ?? {}) as { group?: string; names?: { kind: string } };
      const isOf =
        object.kind === 'CustomResourceDefinition' &&
        inside.kind === names?.kind &&
        inside.apiVersion.startsWith(`${group}/`);
      if (isIn || isOf) this.#stored.delete(other);
    }
  }

  /** Discovery, and just enough of OpenAPI to say that fields are validated here. */
  #describe(path: string): unknown {
    const versions = [...new Set(this.#kinds.map(apiVersionOf))].filter((one) => one !== 'v1');
    if (path === '/version') {
      return { major: '1', minor: '32', gitVersion: 'v1.32.4', platform: 'linux/amd64' };
    }
    if (path === '/api') return { kind: 'APIVersions', versions: ['v1'] };
    if (path === '/apis') {
      const groups = [...new Set(versions.map((one) => one.split('/')[0] as string))].map((name) => {
        const own = versions
          .filter((one) => one.startsWith(`${name}/`))
          .map((groupVersion) => ({ groupVersion, version: groupVersion.split('/')[1] }));
        return { name, versions: own, preferredVersion: own[0] };
      });
      return { kind: 'APIGroupList', apiVersion: 'v1', groups };
    }
    if (path === '/openapi/v3') {
      const paths = ['api/v1', ...versions.map((one) => `apis/${one}`)];
      return {
        paths: Object.fromEntries(paths.map((one) => [one, { serverRelativeURL: `/openapi/v3/${one}` }])),
      };
    }
    const [, groupVersion] = /^\/(?:openapi\/v3\/)?(?:api|apis)\/(v1|[^/]+\/[^/]+)$/.exec(path) ?? [];
    const kinds = this.#kinds.filter((one) => apiVersionOf(one) === groupVersion);
    if (groupVersion === undefined || kinds.length === 0) return undefined;
    if (path.startsWith('/openapi')) return openApiOf(kinds);
    const verbs = ['create', 'delete', 'get', 'list', 'patch', 'update', 'watch'];
    const resources = kinds.map(({ plural, kind, isNamespaced }) => ({
      name: plural,
      singularName: kind.toLowerCase(),
      namespaced: isNamespaced,
      kind,
      verbs: kind.startsWith('SelfSubject') ? ['create'] : verbs,
    }));
    return { kind: 'APIResourceList', apiVersion: 'v1', groupVersion, resources };
  }
}

function openApiOf(kinds: readonly Kind[]): unknown {
  const parameters = ['dryRun', 'fieldValidation', 'fieldManager', 'force'].map((name) => ({
    name,
    in: 'query',
    schema: { type: 'string' },
  }));
  const paths = kinds.map(({ group, version, kind, plural }) => [
    `/${group === '' ? 'api' : `apis/${group}`}/${version}/${plural}/{name}`,
    { patch: { 'x-kubernetes-group-version-kind': { group, version, kind }, parameters, responses: {} } },
  ]);
  return {
    openapi: '3.0.0',
    info: { title: 'test', version: '1' },
    paths: Object.fromEntries(paths) as unknown,
  };
}

function apiVersionOf({ group, version }: Kind): string {
  return group === '' ? version : `${group}/${version}`;
}

function keyOf({ group, plural, isNamespaced }: Kind, namespace: string, name: string): string {
  return `${group}/${plural}/${isNamespaced ? namespace : ''}/${name}`;
}

function status(
  code: number,
  reason: string,
  message: string,
  details?: unknown,
): { code: number; body: unknown } {
  return {
    code,
    body: { kind: 'Status', apiVersion: 'v1', status: 'Failure', code, reason, message, details },
  };
}

/** What identifies an object belongs to no manager. */
const identity = new Set(['apiVersion', 'kind', 'status']);

function leavesOf(object: KubeObject): Fields {
  const leaves: Fields = new Map();
  const add = (value: unknown, path: string[]): void => {
    const isIdentity =
      (path.length === 1 && identity.has(path[0] as string)) ||
      (path[0] === 'metadata' && path.length === 2 && !['labels', 'annotations'].includes(path[1] as string));
    if (isIdentity) return;
    if (typeof value === 'object' && value !== null && !Array.isArray(value)) {
      for (const [key, part] of Object.entries(value)) add(part, [...path, key]);
    } else leaves.set(JSON.stringify(path), value);
  };
  add(object, []);
  return leaves;
}

function leafAt(object: unknown, field: string): unknown {
  return (JSON.parse(field) as string[]).reduce<unknown>(
    (value, key) => (value as Record<string, unknown> | undefined)?.[key],
    object,
  );
}

function setAt(object: unknown, field: string, value: unknown): void {
  const path = JSON.parse(field) as string[];
  let at = object as Record<string, unknown>;
  for (const key of path.slice(0, -1)) at = (at[key] ??= {}) as Record<string, unknown>;
  at[path.at(-1) as string] = value;
}

function removeAt(object: unknown, field: string): void {
  const path = JSON.parse(field) as string[];
  const at = path
    .slice(0, -1)
    .reduce<unknown>((value, key) => (value as Record<string, unknown> | undefined)?.[key], object);
  if (at !== undefined) delete (at as Record<string, unknown>)[path.at(-1) as string];
}

/** Starts an API server on a free port. */
export async function startApiServer(): Promise<ApiServer> {
  const server = new ApiServer();
  await server.start();
  return server;
}
