/** How registries are reached: everything that lies outside the distribution API itself, put together. */
import { setMaxListeners } from 'node:events';
import { Agent as HttpAgent, type ClientRequest } from 'node:http';
import { Agent as HttpsAgent } from 'node:https';
import type { LookupFunction } from 'node:net';
import { createSecureContext, type SecureContext } from 'node:tls';
import type { CancelOptions } from '../../core/concurrency.js';
import { getMessage, OpmateError } from '../../core/errors.js';
import { type Logger, silentLogger } from '../../core/log.js';
import { createTokenCache, withAuth } from './auth.js';
import { type CertificateStore, createCertificateStore, type TlsFiles } from '../transport/certificates.js';
import { type CredentialOverrides, withCredentialOverrides } from './credentials.js';
import { type Exchange, fetchExchange } from '../transport/exchange.js';
import { defaultLookup, guardLookup } from '../transport/guarded-lookup.js';
import {
  type AddressKind,
  checkLiteralAddress,
  isAllowedHost,
  type ServerTrust,
  trustServer,
} from '../transport/network-policy.js';
import { readProxies } from '../transport/proxy.js';
import type { Environment } from '../../files/run-program.js';
import {
  isInsecureHost,
  readRegistriesConf,
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

/** What the user says of one registry, in place of what holds for all. */
export interface RegistryOverrides extends CredentialOverrides {
  /** Like `certDir` of the connection. */
  certDir?: string | undefined;
  /** The flag that allows plain HTTP and any certificate for this registry, for hints. */
  insecureFlag?: string | undefined;
}

/**
 * Everything that decides how registries are talked to; made once by the caller from environment and flags. `signal` ends
 * credential helpers; requests have a signal of their own.
 */
export interface ConnectionOptions extends CancelOptions {
  /**
   * Read: REGISTRY_AUTH_FILE, DOCKER_CONFIG, CONTAINERS_REGISTRIES_CONF, SSL_CERT_FILE, NODE_EXTRA_CA_CERTS,
   * proxies.
   */
  environment: Environment;
  homeDirectory: string;
  /** `XDG_RUNTIME_DIR` */
  runtimeDirectory?: string | undefined;
  /** `/etc`, unless told otherwise. */
  systemDirectory?: string | undefined;
  authFile?: string | undefined;
  /** Plain HTTP only. */
  useHttp?: boolean | undefined;
  /** HTTPS with any certificate; never plain HTTP. */
  skipTlsVerify?: boolean | undefined;
  /**
   * Every registry, or each of which this says so by its name in references, is treated as one that registries.conf
   * calls insecure: HTTPS with any certificate, else HTTP.
   */
  insecure?: boolean | ((registry: string) => boolean) | undefined;
  caFile?: string | undefined;
  certDir?: string | undefined;
  registriesConfFile?: string | undefined;
  /** No attempt begins later than this after the first; 60 s. */
  retryTimeoutMs?: number | undefined;
  /** Attempts of one request in all; as many as the time allows, at a mirror at most 2. */
  maxAttempts?: number | undefined;
  /** The wait before the second attempt; 500 ms. */
  retryBaseDelayMs?: number | undefined;
  /** The same wait before each further attempt; doubling from `retryBaseDelayMs` when left out. */
  retryDelayMs?: number | undefined;
  /** Overrides of a registry, by its name in references. */
  overridesFor?: ((registry: string) => RegistryOverrides | undefined) | undefined;
  /** How long nothing may move on a connection; 30 s. */
  idleTimeoutMs?: number | undefined;
  /** How long a credential helper may take; 30 s. */
  helperTimeoutMs?: number | undefined;
  /** Hosts (`host` or `host:port`) that redirects and token realms may lead to at any address. */
  allowedPrivateHosts?: readonly string[] | undefined;
  /** How host names are looked up; by the system when left out. */
  lookup?: LookupFunction | undefined;
  logger?: Logger | undefined;
  /** From 0 to 1, for the jitter of retries; always 0.5 when left out. */
  random?: (() => number) | undefined;
  /** Milliseconds of a clock that never goes back. */
  now?: (() => number) | undefined;
}

/** One place where a repository can be found. */
export interface Endpoint {
  /** `host[:port]`, as references and credentials name it. */
  registry: string;
  repository: string;
  /**
   * Scheme, host and port that requests go to, e.g. `https://registry-1.docker.io`. The scheme of an insecure
   * registry is known when it has answered.
   */
  readonly baseUrl: string;
  /** Whether plain HTTP is in order here. */
  allowHttp: boolean;
  /** Whether certificates are left unverified. */
  insecure: boolean;
  isMirror: boolean;
  /** Follows redirects, answers challenges, and retries. */
  transport: Transport;
}

export interface Connection {
  /**
   * The endpoints to try for a repository, in order: mirrors first, the registry itself last. For writing ask
   * without mirrors. Throws OpmateError for a broken registries.conf and a blocked registry.
   */
  endpoints(
    registry: string,
    repository: string,
    options?: { byDigest?: boolean; withoutMirrors?: boolean; signal?: AbortSignal | undefined },
  ): Promise<Endpoint[]>;
  /**
   * For servers that are no registries: redirects, retries, certificates and proxies as for these. It knows no
   * credentials; those that a request carries stay with its origin.
   */
  plainTransport(): Transport;
  /** Closes all connections; requests under way fail. */
  close(): void;
}

const dockerHub = { registry: 'docker.io', host: 'registry-1.docker.io' };

/** `host[:port]` that requests for a registry go to. */
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
    const store = stores.get(certDir) ?? createCertificateStore({ ...files, certDir });
    stores.set(certDir, store);
    return store(host, isNamed);
  };
  const agents = createAgents(options, readCertificates);
  const cache = createTokenCache();
  const schemes = new Map<string, Promise<'http' | 'https'>>();
  const foundSchemes = new Map<string, 'http' | 'https'>();
  const transports = new Map<string, Transport>();
  let rules: Promise<RegistryRule[]> | undefined;

  const { allowedPrivateHosts = [], insecure } = options;
  const everywhere = options.skipTlsVerify === true || insecure === true;

  function readRules(): Promise<RegistryRule[]> {
    return (rules ??= readRegistriesConf(files));
  }

  /** Sends what is for one registry: to itself, and to where its answers lead. */
  function wire(registry: Security, exchange?: Exchange): Transport {
    const isFlagged = (host: string): boolean =>
      registry === 'insecure-by-flag' && typeof insecure === 'function' && insecure(host);
    const http = createHttpTransport({
      async routeTo(url, lead) {
        const conf = lead === undefined || everywhere ? [] : await readRules();
        const trust = trustServer(url, lead, {
          everywhere,
          registry: registry !== 'verified',
          isHost: (host) => isFlagged(host) || isInsecureHost(conf, host),
        });
        if (lead === undefined || isAllowedHost(url, allowedPrivateHosts)) return agents.routeTo(url, trust);
        checkLiteralAddress(url, lead);
        return agents.routeTo(url, trust, lead.kind);
      },
      idleTimeoutMs: options.idleTimeoutMs ?? 30_000,
      exchange,
    });
    return withLog(http, logger);
  }
  const wires = {
    verified: wire('verified'),
    insecure: wire('insecure'),
    'insecure-by-flag': wire('insecure-by-flag'),
  };

  function transportTo(place: ResolvedLocation, security: Security): Transport {
    const key = [place.registry, security, place.isMirror].join(' ');
    const known = transports.get(key);
    if (known) return known;
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
    const transport = retrying(resolved, place.isMirror ? 2 : Infinity);
    transports.set(key, transport);
    return transport;
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

  /**
   * Finds the scheme that an insecure registry speaks: HTTPS where it answers that, else HTTP where it answers that.
   * Throws the NetworkError of the one that may be answered later.
   */
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

  /** What is known of the scheme of an insecure registry, looking once more where it is not. */
  function insecureScheme(host: string, waiting: Waiting): Promise<'http' | 'https'> {
    const known = schemes.get(host);
    if (known) return known;
    const finding = findScheme(host, waiting).then((scheme) => {
      foundSchemes.set(host, scheme);
      return scheme;
    });
    schemes.set(host, finding);
    finding.catch(() => schemes.delete(host));
    return finding;
  }

  /**
   * Sends each attempt by the scheme that the registry speaks by then: one that comes up late is asked again for it,
   * and is as insecure as it was.
   */
  function withScheme(next: Transport, place: ResolvedLocation): Transport {
    const host = getHost(place);
    return {
      async send(request) {
        const rest = request.url.replace(/^https?:\/\//, '');
        if (options.useHttp || !rest.startsWith(`${host}/`)) return next.send(request);
        const scheme = await insecureScheme(host, request);
        return next.send({ ...request, url: `${scheme}://${rest}` });
      },
    };
  }

  /** The scheme to name in URLs; HTTPS as long as an insecure registry does not answer. */
  function getScheme(place: ResolvedLocation): 'http' | 'https' {
    if (options.useHttp) return 'http';
    return (place.insecure && foundSchemes.get(getHost(place))) || 'https';
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
            await insecureScheme(host, { signal }).catch((error: unknown) => {
              // Its requests look again, in the time that they may take, and say what is wrong.
              if (!(error instanceof NetworkError)) throw error;
            });
          }
          return {
            registry: place.registry,
            repository: place.repository,
            get baseUrl() {
              return `${getScheme(place)}://${host}`;
            },
            allowHttp: options.useHttp === true || place.insecure,
            insecure: options.skipTlsVerify === true || place.insecure,
            isMirror: place.isMirror,
            transport: transportTo(place, security),
          };
        }),
      );
    },
    plainTransport: () => retrying(withRedirects(wire('verified', fetchExchange))),
    close: agents.close,
  };
}

/** How long a request waits for what is to be known before it is sent. */
type Waiting = Pick<TransportRequest, 'signal' | 'deadline'>;

/** Why certificates of a registry are left unverified, if they are. */
type Security = 'verified' | 'insecure' | 'insecure-by-flag';

interface Agents {
  /** `ledFrom` is the kind of address that led there, where the user did not name the server. */
  routeTo(url: URL, trust: ServerTrust, ledFrom?: AddressKind): Promise<AgentRoute>;
  close(): void;
}

/**
 * Agents that keep connections alive, one for each origin, with the certificates and the proxy of that host.
 */
function createAgents(options: ConnectionOptions, readCertificates: CertificateStore): Agents {
  const findProxy = readProxies(options.environment);
  const routes = new Map<string, Promise<AgentRoute>>();
  const contexts = new WeakMap<string[], SecureContext>();
  const opened: { destroy(): void }[] = [];
  // Sockets to a proxy that are still waiting for its answer belong to no agent yet.
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
      throw new OpmateError('INVALID', `one of these certificates cannot be used: ${getMessage(cause)}`, {
        subject: files,
        cause,
      });
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
    // A proxy looks names up itself, and is itself named by the user.
    const lookup = ledFrom === undefined || proxy ? lookupAddress : guardLookup(ledFrom, lookupAddress);
    const direct = { ...common, lookup };
    const host = url.host === dockerHub.host ? dockerHub.registry : url.host;
    const insecureFlag = options.overridesFor?.(host)?.insecureFlag;
    if (url.protocol === 'http:') {
      const agent = proxy ? await openHttpProxy(proxy, common) : new HttpAgent(direct);
      opened.push(agent);
      return { agent, trustPaths: [], proxy: proxy?.host, lookup, insecureFlag };
    }
    const certificates = await readCertificates(host, isNamed);
    const tls = { secureContext: getContext(certificates), rejectUnauthorized: verify };
    const agent = proxy ? await openTunnel(proxy, common, tls) : new HttpsAgent({ ...direct, ...tls });
    opened.push(agent);
    return { agent, trustPaths: certificates.trustPaths, proxy: proxy?.host, lookup, insecureFlag };
  }

  async function openHttpProxy(proxy: URL, common: object): Promise<HttpAgent> {
    const { HttpProxyAgent } = await import('../transport/proxy-agents.js');
    return new HttpProxyAgent(proxy.href as string, { ...common, ...(await proxyTls(proxy)) });
  }

  async function openTunnel(proxy: URL, common: object, tls: object): Promise<HttpAgent> {
    const { HttpsProxyAgent } = await import('../transport/proxy-agents.js');
    const agent = new HttpsProxyAgent(proxy.href as string, { ...common, ...(await proxyTls(proxy)) });
    // What the constructor takes is for the proxy itself; these are for the host behind it.
    Object.assign(agent.options, tls);
    // Left alone, the agent passes what the proxy says off as the answer of the host, challenges included.
    agent.on('proxyConnect', (response: { statusCode: number }, request: ClientRequest) => {
      if (response.statusCode === 200) return;
      const error = new Error(`proxy returned ${response.statusCode}`);
      request.destroy(Object.assign(error, { code: `OPMATE_PROXY_${response.statusCode}` }));
    });
    return agent;
  }

  /** TLS to the proxy is always verified, and with the authorities of the proxy's own name. */
  async function proxyTls(proxy: URL): Promise<object> {
    const signal = closing.signal;
    if (proxy.protocol !== 'https:') return { signal };
    return {
      signal,
      secureContext: getContext(await readCertificates(proxy.host, false)),
      rejectUnauthorized: true,
    };
  }

  return {
    routeTo(url, trust, ledFrom) {
      const key = [url.origin, trust.verify, trust.isNamed, ledFrom].join(' ');
      const known = routes.get(key) ?? open(url, trust, ledFrom);
      routes.set(key, known);
      return known;
    },
    close() {
      for (const agent of opened) agent.destroy();
      closing.abort();
    },
  };
}
