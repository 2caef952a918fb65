/** How registries are reached: everything that lies outside the distribution API itself, put together. */
import { setMaxListeners } from 'node:events';
import { Agent as HttpAgent, type ClientRequest } from 'node:http';
import { Agent as HttpsAgent } from 'node:https';
import { createSecureContext, type SecureContext } from 'node:tls';
import { type Logger, silentLogger } from '../core/log.js';
import { createTokenCache, withAuth } from './auth.js';
import { createCertificateStore, type TlsFiles } from './certificates.js';
import { createCredentialStore } from './credentials.js';
import { type Environment, readProxies } from './proxy.js';
import {
  readRegistriesConf,
  type RegistryRule,
  type ResolvedLocation,
  resolveLocations,
} from './registries-conf.js';
import { NetworkError } from './transport-faults.js';
import { withRetry } from './transport-retry.js';
import {
  type AgentRoute,
  createHttpTransport,
  discard,
  type Transport,
  withLog,
  withRedirects,
} from './transport.js';

/**
 * Everything that decides how registries are talked to; made once by the caller from environment and flags.
 */
export interface ConnectionOptions {
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
  /** Attempts of one request in all; 5, at a mirror 2. */
  maxAttempts?: number | undefined;
  /** The wait before the second attempt; 500 ms. */
  retryBaseDelayMs?: number | undefined;
  /** How long nothing may move on a connection; 30 s. */
  idleTimeoutMs?: number | undefined;
  /** How long a credential helper may take; 30 s. */
  helperTimeoutMs?: number | undefined;
  /** Token servers that are trusted against the rules of `checkRealm`. */
  trustedRealmHosts?: readonly string[] | undefined;
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
  /** Scheme, host and port that requests go to, e.g. `https://registry-1.docker.io`. */
  baseUrl: string;
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

export function createConnection(options: ConnectionOptions): Connection {
  const logger = options.logger ?? silentLogger;
  const now = options.now ?? (() => performance.now());
  const files = { ...options, logger, systemDirectory: options.systemDirectory ?? '/etc' };
  const { helperTimeoutMs, ...withoutHelper } = files;
  const credentials = createCredentialStore({
    ...withoutHelper,
    ...(helperTimeoutMs && { helperTimeoutMs }),
  });
  const agents = createAgents(options, createCertificateStore(files));
  const cache = createTokenCache();
  const schemes = new Map<string, Promise<'http' | 'https'>>();
  const transports = new Map<string, Transport>();
  let rules: Promise<RegistryRule[]> | undefined;

  function wire(insecure: boolean): Transport {
    const http = createHttpTransport({
      routeTo: (url) => agents.routeTo(url, insecure),
      idleTimeoutMs: options.idleTimeoutMs ?? 30_000,
    });
    return withLog(http, logger);
  }
  const wires = { verified: wire(options.skipTlsVerify === true), insecure: wire(true) };

  function transportTo(place: ResolvedLocation): Transport {
    const key = [place.registry, place.insecure, place.isMirror].join(' ');
    const known = transports.get(key);
    if (known) return known;
    const base = place.insecure ? wires.insecure : wires.verified;
    const authorized = withAuth(withRedirects(base), {
      registry: place.registry,
      credentials,
      tokens: withRedirects(base, { sameOrigin: true }),
      cache,
      trustedRealmHosts: options.trustedRealmHosts ?? [],
      now,
    });
    const transport = retrying(authorized, place.isMirror ? 2 : 5);
    transports.set(key, transport);
    return transport;
  }

  function retrying(transport: Transport, maxAttempts: number): Transport {
    return withRetry(transport, {
      maxAttempts: options.maxAttempts ?? maxAttempts,
      timeoutMs: options.retryTimeoutMs ?? 60_000,
      baseDelayMs: options.retryBaseDelayMs ?? 500,
      random: options.random ?? (() => 0.5),
      now,
      logger,
    });
  }

  /**
   * Which scheme an insecure registry speaks: HTTPS where it answers that, else HTTP where it answers that.
   */
  async function findScheme(host: string, signal: AbortSignal | undefined): Promise<'http' | 'https'> {
    for (const scheme of ['https', 'http'] as const) {
      try {
        discard(await wires.insecure.send({ method: 'GET', url: `${scheme}://${host}/v2/`, signal }));
        return scheme;
      } catch (error) {
        if (!(error instanceof NetworkError)) throw error;
      }
    }
    // Neither answers: not remembered, and the request itself tells what is wrong.
    schemes.delete(host);
    return 'https';
  }

  async function schemeOf(
    place: ResolvedLocation,
    host: string,
    signal: AbortSignal | undefined,
  ): Promise<'http' | 'https'> {
    if (options.useHttp) return 'http';
    if (!place.insecure) return 'https';
    const known = schemes.get(host) ?? findScheme(host, signal);
    schemes.set(host, known);
    known.catch(() => schemes.delete(host));
    return known;
  }

  return {
    async endpoints(registry, repository, { signal, ...choice } = {}) {
      rules ??= readRegistriesConf(files);
      const places = resolveLocations(await rules, registry, repository, choice);
      return Promise.all(
        places.map(async (found) => {
          const isInsecure =
            typeof options.insecure === 'function' ? options.insecure(registry) : options.insecure;
          const place = isInsecure ? { ...found, insecure: true } : found;
          const host = place.registry === dockerHub.registry ? dockerHub.host : place.registry;
          const scheme = await schemeOf(place, host, signal);
          return {
            registry: place.registry,
            repository: place.repository,
            baseUrl: `${scheme}://${host}`,
            allowHttp: options.useHttp === true || place.insecure,
            insecure: options.skipTlsVerify === true || place.insecure,
            isMirror: place.isMirror,
            transport: transportTo(place),
          };
        }),
      );
    },
    plainTransport: () =>
      retrying(withRedirects(options.insecure === true ? wires.insecure : wires.verified), 5),
    close: agents.close,
  };
}

interface Agents {
  routeTo(url: URL, insecure: boolean): Promise<AgentRoute>;
  close(): void;
}

/**
 * Agents that keep connections alive, one for each origin, with the certificates and the proxy of that host.
 */
function createAgents(
  options: ConnectionOptions,
  certificatesOf: (host: string) => Promise<TlsFiles>,
): Agents {
  const proxyOf = readProxies(options.environment);
  const routes = new Map<string, Promise<AgentRoute>>();
  const contexts = new WeakMap<string[], SecureContext>();
  const opened: { destroy(): void }[] = [];
  // Sockets to a proxy that are still waiting for its answer belong to no agent yet.
  const closing = new AbortController();
  setMaxListeners(0, closing.signal);

  function contextOf({ ca, cert, key }: TlsFiles): SecureContext {
    const own = cert !== undefined && key !== undefined;
    const known = own ? undefined : contexts.get(ca);
    if (known) return known;
    const context = createSecureContext({ ca, minVersion: 'TLSv1.2', ...(own && { cert, key }) });
    if (!own) contexts.set(ca, context);
    return context;
  }

  async function open(url: URL, insecure: boolean): Promise<AgentRoute> {
    const proxy = proxyOf(url);
    const common = { keepAlive: true, maxSockets: 64, scheduling: 'lifo' as const };
    if (url.protocol === 'http:') {
      const agent = proxy ? await openHttpProxy(proxy, common) : new HttpAgent(common);
      opened.push(agent);
      return { agent, trustPaths: [], proxy: proxy?.host };
    }
    const certificates = await certificatesOf(url.host === dockerHub.host ? dockerHub.registry : url.host);
    const tls = { secureContext: contextOf(certificates), rejectUnauthorized: !insecure };
    const agent = proxy ? await openTunnel(proxy, common, tls) : new HttpsAgent({ ...common, ...tls });
    opened.push(agent);
    return { agent, trustPaths: certificates.trustPaths, proxy: proxy?.host };
  }

  async function openHttpProxy(proxy: URL, common: object): Promise<HttpAgent> {
    const { HttpProxyAgent } = await import('http-proxy-agent');
    return new HttpProxyAgent(proxy.href as string, { ...common, ...(await proxyTls(proxy)) });
  }

  async function openTunnel(proxy: URL, common: object, tls: object): Promise<HttpAgent> {
    const { HttpsProxyAgent } = await import('https-proxy-agent');
    const agent = new HttpsProxyAgent(proxy.href as string, { ...common, ...(await proxyTls(proxy)) });
    // What the constructor takes is for the proxy itself; these are for the host behind it.
    Object.assign(agent.options, tls);
    // Left alone, the agent passes what the proxy says off as the answer of the host, challenges included.
    agent.on('proxyConnect', (answer: { statusCode: number }, request: ClientRequest) => {
      if (answer.statusCode === 200) return;
      const error = new Error(`proxy answered ${answer.statusCode}`);
      request.destroy(Object.assign(error, { code: `OPMATE_PROXY_${answer.statusCode}` }));
    });
    return agent;
  }

  /** TLS to the proxy is always verified, and with the authorities of the proxy's own name. */
  async function proxyTls(proxy: URL): Promise<object> {
    const signal = closing.signal;
    if (proxy.protocol !== 'https:') return { signal };
    return { signal, secureContext: contextOf(await certificatesOf(proxy.host)), rejectUnauthorized: true };
  }

  return {
    routeTo(url, insecure) {
      const key = `${url.origin} ${insecure}`;
      const known = routes.get(key) ?? open(url, insecure);
      routes.set(key, known);
      return known;
    },
    close() {
      for (const agent of opened) agent.destroy();
      closing.abort();
    },
  };
}
