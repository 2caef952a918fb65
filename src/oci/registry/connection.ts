/** Puts the layers of transport, credentials and policies of registries together. */
import { setMaxListeners } from 'node:events';
import { Agent as HttpAgent, type ClientRequest } from 'node:http';
import { Agent as HttpsAgent } from 'node:https';
import type { LookupFunction } from 'node:net';
import { createSecureContext, type SecureContext } from 'node:tls';
import { CancelledError, getMessage, OpmateError } from '../../core/errors.js';
import { getOrAdd } from '../../core/groups.js';
import { silentLogger } from '../../core/log.js';
import { createTokenCache, withAuth } from './auth.js';
import {
  type CertificateOptions,
  type CertificateStore,
  createCertificateStore,
  type TlsFiles,
} from '../transport/certificates.js';
import { type CredentialOptions, type CredentialOverrides, withCredentialOverrides } from './credentials.js';
import { defaultLookup, guardLookup, rememberLookup } from '../transport/guarded-lookup.js';
import { type AddressKind, checkLiteralAddress, isAllowedHost } from '../transport/network-policy.js';
import { readProxies } from '../transport/proxy.js';
import {
  isInsecureHost,
  readRegistriesConf,
  type RegistriesConfOptions,
  type RegistryRule,
  type ResolvedLocation,
  resolveLocations,
} from './registries-conf.js';
import { NetworkError } from '../transport/transport-faults.js';
import { withRetry } from '../transport/transport-retry.js';
import {
  type AgentRoute,
  createHttpTransport,
  type Transport,
  type TransportRequest,
  withLog,
  withRedirects,
} from '../transport/transport.js';

/** Settings of one registry, which take precedence over those of the connection. */
export interface RegistryOverrides extends CredentialOverrides {
  certDir?: string | undefined;
  /** Flag that allows plain HTTP and any certificate for this registry, for hints. */
  insecureFlag?: string | undefined;
}

/**
 * Settings of connections. `signal` stops credential helpers; requests have their own. Of the environment are used:
 * REGISTRY_AUTH_FILE, DOCKER_CONFIG, CONTAINERS_REGISTRIES_CONF, SSL_CERT_FILE, NODE_EXTRA_CA_CERTS, proxies.
 */
export interface ConnectionOptions
  extends
    CredentialOptions,
    Omit<CertificateOptions, 'systemDirectory'>,
    Omit<RegistriesConfOptions, 'systemDirectory'> {
  /** Default: `/etc`. */
  systemDirectory?: string | undefined;
  /** Uses plain HTTP only. */
  useHttp?: boolean | undefined;
  /** Uses HTTPS with any certificate; never plain HTTP. */
  skipTlsVerify?: boolean | undefined;
  /** Treats all registries, or those selected by name, like `insecure` ones of registries.conf: any certificate or HTTP. */
  insecure?: boolean | ((registry: string) => boolean) | undefined;
  /** Time after the first attempt in which further ones begin, in milliseconds; default 60 s. */
  retryTimeoutMs?: number | undefined;
  /** Maximum attempts per request; default: unlimited, 2 for a mirror. */
  maxAttempts?: number | undefined;
  /** Delay before the second attempt in milliseconds, then doubled; default 500 ms. */
  retryBaseDelayMs?: number | undefined;
  /** Constant delay in milliseconds, in place of doubling. */
  retryDelayMs?: number | undefined;
  /** Returns the overrides of a registry by its name in references. */
  overridesFor?: ((registry: string) => RegistryOverrides | undefined) | undefined;
  /** Time without progress after which a connection fails, in milliseconds; default 30 s. */
  idleTimeoutMs?: number | undefined;
  /** Hosts (`host` or `host:port`) to which redirects and token realms may lead at any address. */
  allowedPrivateHosts?: readonly string[] | undefined;
  /** Default: that of the system. */
  lookup?: LookupFunction | undefined;
  /** Jitter of retries from 0 to 1; default: 0.5. */
  random?: (() => number) | undefined;
  /** Monotonic clock in milliseconds. */
  now?: (() => number) | undefined;
}

/** A location of a repository; its registry is named as in references and credentials. */
export interface Endpoint extends Omit<ResolvedLocation, 'insecure'> {
  /** Scheme, host and port of requests. The scheme of an insecure registry is known after its first response. */
  readonly baseUrl: string;
  /** Follows redirects, authenticates and retries. */
  transport: Transport;
}

export interface Connection {
  /**
   * Returns the endpoints to try for a repository: mirrors first, the registry itself last. Throws OpmateError for an
   * invalid registries.conf and a blocked registry.
   */
  endpoints(
    registry: string,
    repository: string,
    options?: { byDigest?: boolean; withoutMirrors?: boolean; signal?: AbortSignal | undefined },
  ): Promise<Endpoint[]>;
  /**
   * Returns a transport to servers other than registries: redirects, retries, certificates and proxies, but no
   * credentials except those of requests, which are sent to their origin only.
   */
  plainTransport(): Transport;
  /** Closes all connections; running requests fail. */
  close(): void;
}

/** Maximum time to detect a scheme before the first request. */
const expectMs = 5_000;

const dockerHub = { registry: 'docker.io', host: 'registry-1.docker.io' };

/** Returns `host[:port]` of requests to a registry. */
function getHost({ registry }: ResolvedLocation): string {
  return registry === dockerHub.registry ? dockerHub.host : registry;
}

export function createConnection(options: ConnectionOptions): Connection {
  const logger = options.logger ?? silentLogger;
  const now = options.now ?? (() => performance.now());
  const files = { ...options, logger, systemDirectory: options.systemDirectory ?? '/etc' };
  const overridesFor = options.overridesFor ?? (() => undefined);
  const credentials = withCredentialOverrides(files, overridesFor);
  const stores = new Map<string | undefined, CertificateStore>();
  const readCertificates: CertificateStore = (host, isNamed) => {
    const certDir = overridesFor(host)?.certDir ?? options.certDir;
    return getOrAdd(stores, certDir, () => createCertificateStore({ ...files, certDir }))(host, isNamed);
  };
  const agents = createAgents(options, readCertificates);
  const cache = createTokenCache();
  const schemes = new Map<string, Promise<'http' | 'https'>>();
  const knownSchemes = new Map<string, 'http' | 'https'>();
  /** First detections, by host. */
  const expected = new Map<string, Promise<void>>();
  const transports = new Map<string, Transport>();
  let rules: Promise<RegistryRule[]> | undefined;

  const { allowedPrivateHosts = [], insecure } = options;
  const everywhere = options.skipTlsVerify === true || insecure === true;

  const readRules = () => (rules ??= readRegistriesConf(files));

  /** Sends requests to a registry, and to the servers that its responses lead to. */
  function createWire(registry: Security): Transport {
    const isFlagged = (host: string): boolean =>
      registry === 'insecure-by-flag' && typeof insecure === 'function' && insecure(host);
    const http = createHttpTransport({
      async routeTo(url, lead) {
        const isNamed = lead === undefined;
        // A redirect or token server needs an exception of its own.
        const isUnverified =
          everywhere ||
          (isNamed
            ? registry !== 'verified'
            : isFlagged(url.host) || isInsecureHost(await readRules(), url.host));
        const trust = { verify: !isUnverified, isNamed };
        if (lead === undefined || isAllowedHost(url, allowedPrivateHosts)) return agents.routeTo(url, trust);
        checkLiteralAddress(url, lead);
        return agents.routeTo(url, trust, lead.kind);
      },
      idleTimeoutMs: options.idleTimeoutMs ?? 30_000,
    });
    return withLog(http, logger);
  }
  const wires = {
    verified: createWire('verified'),
    insecure: createWire('insecure'),
    'insecure-by-flag': createWire('insecure-by-flag'),
  };

  function createTransport(place: ResolvedLocation, security: Security): Transport {
    const base = wires[security];
    const authorized = withAuth(withRedirects(base), {
      registry: place.registry,
      credentials,
      tokens: withRedirects(base, { sameOrigin: true }),
      cache,
      allowedPrivateHosts,
      now,
    });
    const resolved = place.insecure ? withScheme(authorized, place) : authorized;
    return retrying(resolved, place.isMirror ? 2 : Infinity);
  }

  function retrying(transport: Transport, maxAttempts = Infinity): Transport {
    return withRetry(transport, {
      maxAttempts: Math.min(options.maxAttempts ?? Infinity, maxAttempts),
      timeoutMs: options.retryTimeoutMs ?? 60_000,
      baseDelayMs: options.retryBaseDelayMs ?? 500,
      constantDelayMs: options.retryDelayMs,
      random: options.random ?? (() => 0.5),
      now,
      logger,
    });
  }

  /** Returns HTTPS if an insecure registry responds, otherwise HTTP. Throws a temporary NetworkError of either first. */
  async function findScheme(host: string, { signal, deadline }: Waiting): Promise<'http' | 'https'> {
    const faults: NetworkError[] = [];
    for (const scheme of ['https', 'http'] as const) {
      try {
        const url = `${scheme}://${host}/v2/`;
        (await wires.insecure.send({ method: 'GET', url, signal, deadline })).discard();
        return scheme;
      } catch (error) {
        if (!(error instanceof NetworkError)) throw error;
        faults.push(error);
      }
    }
    throw faults.find(({ temporary }) => temporary) ?? faults[0];
  }

  /** Returns the scheme of an insecure registry; one that does not respond is tried again by the next request. */
  function detectScheme(host: string, waiting: Waiting): Promise<'http' | 'https'> {
    return getOrAdd(schemes, host, () => {
      const detecting = findScheme(host, waiting).then((scheme) => {
        knownSchemes.set(host, scheme);
        return scheme;
      });
      detecting.catch(() => schemes.delete(host));
      return detecting;
    });
  }

  /** Detects a scheme before the first request. Later ones try again within their time limit, and report the error. */
  function expectScheme(host: string, signal: AbortSignal | undefined): Promise<void> {
    return getOrAdd(expected, host, async () => {
      const deadline = performance.now() + Math.min(expectMs, options.retryTimeoutMs ?? expectMs);
      try {
        await detectScheme(host, { signal, deadline });
      } catch (error) {
        const isLate = error instanceof CancelledError && signal?.aborted !== true;
        if (error instanceof NetworkError || isLate) return;
        expected.delete(host);
        throw error;
      }
    });
  }

  /** Sends each attempt with the scheme that the registry has by then. */
  function withScheme(next: Transport, place: ResolvedLocation): Transport {
    const host = getHost(place);
    return {
      async send(request) {
        const rest = request.url.replace(/^https?:\/\//, '');
        if (options.useHttp || !rest.startsWith(`${host}/`)) return next.send(request);
        const scheme = await detectScheme(host, request);
        return next.send({ ...request, url: `${scheme}://${rest}` });
      },
    };
  }

  /** Returns the scheme for URLs; HTTPS until an insecure registry responds. */
  function getScheme(place: ResolvedLocation): 'http' | 'https' {
    if (options.useHttp) return 'http';
    return (place.insecure && knownSchemes.get(getHost(place))) || 'https';
  }

  return {
    async endpoints(registry, repository, { signal, ...choice } = {}) {
      const places = resolveLocations(await readRules(), registry, repository, choice);
      const isFlagged = typeof insecure === 'function' ? insecure(registry) : insecure === true;
      return Promise.all(
        places.map(async (location) => {
          const place = isFlagged ? { ...location, insecure: true } : location;
          const security = isFlagged ? 'insecure-by-flag' : location.insecure ? 'insecure' : 'verified';
          const host = getHost(place);
          if (place.insecure && !options.useHttp) {
            await expectScheme(host, signal);
          }
          return {
            registry: place.registry,
            repository: place.repository,
            get baseUrl() {
              return `${getScheme(place)}://${host}`;
            },
            isMirror: place.isMirror,
            transport: getOrAdd(transports, [place.registry, security, place.isMirror].join(' '), () =>
              createTransport(place, security),
            ),
          };
        }),
      );
    },
    plainTransport: () => retrying(withRedirects(createWire('verified'))),
    close: agents.close,
  };
}

/** Time limits of a request that waits for the scheme. */
type Waiting = Pick<TransportRequest, 'signal' | 'deadline'>;

/** Reason why certificates of a registry are not verified, if any. */
type Security = 'verified' | 'insecure' | 'insecure-by-flag';

/** Trust in the server of a URL. */
interface ServerTrust {
  /** Verify its certificate. */
  verify: boolean;
  /** The user named it, so it gets client certificates that are not specific to a host. */
  isNamed: boolean;
}

const noAuthorities: string[] = [];

/** Creates one agent per origin, with kept connections and the certificates and proxy of the host. */
function createAgents(options: ConnectionOptions, readCertificates: CertificateStore) {
  const findProxy = readProxies(options.environment);
  const routes = new Map<string, Promise<AgentRoute>>();
  const contexts = new WeakMap<string[], SecureContext>();
  const opened: { destroy(): void }[] = [];
  // Sockets that wait for a proxy belong to no agent yet.
  const closing = new AbortController();
  setMaxListeners(0, closing.signal);

  function getContext({ ca, cert, key, trustPaths }: TlsFiles): SecureContext {
    const own = cert !== undefined && key !== undefined;
    const known = own ? undefined : contexts.get(ca);
    if (known) return known;
    let context: SecureContext;
    try {
      context = createSecureContext({ ca, minVersion: 'TLSv1.2', ...(own && { cert, key }) });
    } catch (cause) {
      const files = [...new Set(trustPaths)].join(', ');
      const problem = `unusable certificate: ${getMessage(cause)}`;
      throw new OpmateError('INVALID', problem, { subject: files, cause });
    }
    if (!own) contexts.set(ca, context);
    return context;
  }

  async function open(
    url: URL,
    { verify, isNamed }: ServerTrust,
    ledFrom: AddressKind | undefined,
  ): Promise<AgentRoute> {
    const proxy = findProxy(url);
    const common = { keepAlive: true, maxSockets: 64, scheduling: 'lifo' as const };
    const { lookup: lookupAddress = defaultLookup } = options;
    // A proxy, which the user named, looks names up itself.
    const known = rememberLookup(
      ledFrom === undefined || proxy ? lookupAddress : guardLookup(ledFrom, lookupAddress),
    );
    const { lookup } = known;
    const getAddress = proxy ? undefined : known.getAddress;
    const direct = { ...common, lookup };
    const host = url.host === dockerHub.host ? dockerHub.registry : url.host;
    const insecureFlag = options.overridesFor?.(host)?.insecureFlag;
    if (url.protocol === 'http:') {
      const agent = proxy ? await openProxy(proxy, common) : new HttpAgent(direct);
      opened.push(agent);
      return { agent, trustPaths: [], proxy: proxy?.host, lookup, getAddress, insecureFlag };
    }
    const certificates = await readCertificates(host, isNamed);
    // Reading authorities takes 17 ms, in vain where nothing is verified.
    const used = verify ? certificates : { ...certificates, ca: noAuthorities };
    const tls = { secureContext: getContext(used), rejectUnauthorized: verify };
    const agent = proxy ? await openProxy(proxy, common, tls) : new HttpsAgent({ ...direct, ...tls });
    opened.push(agent);
    const { trustPaths } = certificates;
    return { agent, trustPaths, proxy: proxy?.host, lookup, getAddress, insecureFlag };
  }

  /** Returns the agent of a proxy: with the TLS options of the host it opens tunnels, without it sends plain HTTP. */
  async function openProxy(proxy: URL, common: object, tls?: object): Promise<HttpAgent> {
    const { HttpProxyAgent, HttpsProxyAgent } = await import('../transport/proxy-agents.js');
    // The proxy is always verified with the authorities of its own name.
    const secureContext =
      proxy.protocol === 'https:' ? getContext(await readCertificates(proxy.host, false)) : undefined;
    const own = {
      ...common,
      signal: closing.signal,
      ...(secureContext && { secureContext, rejectUnauthorized: true }),
    };
    if (tls === undefined) return new HttpProxyAgent(proxy.href as string, own);
    const agent = new HttpsProxyAgent(proxy.href as string, own);
    // The constructor takes options for the proxy; these are for the host.
    Object.assign(agent.options, tls);
    // By default, the agent returns the response of the proxy as that of the host, challenges included.
    agent.on('proxyConnect', (response: { statusCode: number }, request: ClientRequest) => {
      if (response.statusCode === 200) return;
      // A reply that is not HTTP has no status.
      const isHttp = response.statusCode >= 100 && response.statusCode <= 999;
      const status = isHttp ? String(response.statusCode) : 'INVALID';
      const error = new Error(`proxy returned ${isHttp ? status : 'no HTTP response'}`);
      request.destroy(Object.assign(error, { code: `OPMATE_PROXY_${status}` }));
    });
    return agent;
  }

  return {
    /** `ledFrom` is the kind of address that led there, if the user did not name the server. */
    routeTo(url: URL, trust: ServerTrust, ledFrom?: AddressKind): Promise<AgentRoute> {
      const key = [url.origin, trust.verify, trust.isNamed, ledFrom].join(' ');
      return getOrAdd(routes, key, () => open(url, trust, ledFrom));
    },
    close(): void {
      for (const agent of opened) agent.destroy();
      closing.abort();
    },
  };
}
