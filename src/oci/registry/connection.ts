/** Puts the layers of transport, credentials and policies of registries together. */
import type { LookupFunction } from 'node:net';
import { getOrAdd } from '../../core/groups.js';
import { type Logger, silentLogger } from '../../core/log.js';
import { createTokenCache, withAuth } from './auth.js';
import {
  type CertificateOptions,
  type CertificateStore,
  createCertificateStore,
} from '../transport/certificates.js';
import {
  type CredentialOptions,
  type CredentialOverrides,
  type CredentialStore,
  withCredentialOverrides,
} from './credentials.js';
import { HostAgents, getRegistryHints } from './host-agents.js';
import { checkLiteralAddress, isAllowedHost } from '../transport/network-policy.js';
import {
  getHost,
  isInsecureHost,
  readRegistriesConf,
  type RegistriesConfOptions,
  type RegistryRule,
  type ResolvedLocation,
  resolveLocations,
} from './registries-conf.js';
import { Schemes } from './schemes.js';
import { withRetry } from '../transport/transport-retry.js';
import { createHttpTransport, type Transport, withLog, withRedirects } from '../transport/transport.js';

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

export function createConnection(options: ConnectionOptions): Connection {
  return new RegistryConnection(options);
}

class LocatedEndpoint implements Endpoint {
  readonly registry: string;
  readonly repository: string;
  readonly isMirror: boolean;
  readonly transport: Transport;
  readonly #place: ResolvedLocation;
  readonly #schemes: Schemes;

  constructor(place: ResolvedLocation, transport: Transport, schemes: Schemes) {
    this.registry = place.registry;
    this.repository = place.repository;
    this.isMirror = place.isMirror;
    this.transport = transport;
    this.#place = place;
    this.#schemes = schemes;
  }

  get baseUrl(): string {
    return `${this.#schemes.get(this.#place)}://${getHost(this.#place)}`;
  }
}

/** Transports to registries, with what was learned of each: certificates, schemes and tokens. */
class RegistryConnection implements Connection {
  readonly #options: ConnectionOptions & { logger: Logger; systemDirectory: string };
  readonly #now: () => number;
  readonly #credentials: CredentialStore;
  readonly #stores = new Map<string | undefined, CertificateStore>();
  readonly #agents: HostAgents;
  readonly #cache = createTokenCache();
  readonly #schemes: Schemes;
  readonly #transports = new Map<string, Transport>();
  readonly #wires: Readonly<Record<Security, Transport>>;
  #rules: Promise<RegistryRule[]> | undefined;

  constructor(options: ConnectionOptions) {
    const { logger = silentLogger, systemDirectory = '/etc', overridesFor = () => undefined } = options;
    this.#options = { ...options, logger, systemDirectory };
    this.#now = options.now ?? (() => performance.now());
    this.#credentials = withCredentialOverrides(this.#options, overridesFor);
    this.#agents = new HostAgents(options, (host, isNamed) => this.#readCertificates(host, isNamed));
    this.#wires = {
      verified: this.#createWire('verified'),
      insecure: this.#createWire('insecure'),
      'insecure-by-flag': this.#createWire('insecure-by-flag'),
    };
    this.#schemes = new Schemes(this.#wires.insecure, options);
  }

  async endpoints(
    registry: string,
    repository: string,
    { signal, ...choice }: Parameters<Connection['endpoints']>[2] = {},
  ): Promise<Endpoint[]> {
    const places = resolveLocations(await this.#readRules(), registry, repository, choice);
    const isFlagged = this.#isFlagged(registry);
    return Promise.all(
      places.map(async (location) => {
        const place = isFlagged ? { ...location, insecure: true } : location;
        const security = isFlagged ? 'insecure-by-flag' : location.insecure ? 'insecure' : 'verified';
        if (place.insecure) await this.#schemes.expect(place, signal);
        const key = [place.registry, security, place.isMirror].join(' ');
        const transport = getOrAdd(this.#transports, key, () => this.#createTransport(place, security));
        return new LocatedEndpoint(place, transport, this.#schemes);
      }),
    );
  }

  plainTransport(): Transport {
    return this.#retrying(withRedirects(this.#createWire('verified')));
  }

  close(): void {
    this.#agents.close();
  }

  #readCertificates(host: string, isNamed: boolean): ReturnType<CertificateStore> {
    const certDir = this.#options.overridesFor?.(host)?.certDir ?? this.#options.certDir;
    const findFiles = getOrAdd(this.#stores, certDir, () =>
      createCertificateStore({ ...this.#options, certDir }),
    );
    return findFiles(host, isNamed);
  }

  #readRules(): Promise<RegistryRule[]> {
    return (this.#rules ??= readRegistriesConf(this.#options));
  }

  /** Reports whether an option makes a registry insecure. */
  #isFlagged(registry: string): boolean {
    const { insecure } = this.#options;
    return typeof insecure === 'function' ? insecure(registry) : insecure === true;
  }

  /** Sends requests to a registry, and to the servers that its responses lead to. */
  #createWire(registry: Security): Transport {
    const { allowedPrivateHosts = [] } = this.#options;
    const http = createHttpTransport({
      routeTo: async (url, lead) => {
        const isNamed = lead === undefined;
        const trust = { verify: !(await this.#isUnverified(url, registry, isNamed)), isNamed };
        if (lead === undefined || isAllowedHost(url, allowedPrivateHosts))
          return this.#agents.routeTo(url, trust);
        checkLiteralAddress(url, lead, getRegistryHints());
        return this.#agents.routeTo(url, trust, lead.kind);
      },
      idleTimeoutMs: this.#options.idleTimeoutMs ?? 30_000,
    });
    return withLog(http, this.#options.logger);
  }

  /** Reports whether any certificate will do. A redirect or token server needs an exception of its own. */
  async #isUnverified({ host }: URL, registry: Security, isNamed: boolean): Promise<boolean> {
    const { skipTlsVerify, insecure } = this.#options;
    if (skipTlsVerify === true || insecure === true) return true;
    if (isNamed) return registry !== 'verified';
    if (registry === 'insecure-by-flag' && this.#isFlagged(host)) return true;
    return isInsecureHost(await this.#readRules(), host);
  }

  #createTransport(place: ResolvedLocation, security: Security): Transport {
    const base = this.#wires[security];
    const authorized = withAuth(withRedirects(base), {
      registry: place.registry,
      credentials: this.#credentials,
      tokens: withRedirects(base, { sameOrigin: true }),
      cache: this.#cache,
      allowedPrivateHosts: this.#options.allowedPrivateHosts ?? [],
      now: this.#now,
    });
    const resolved = place.insecure ? this.#schemes.wrap(authorized, place) : authorized;
    return this.#retrying(resolved, place.isMirror ? 2 : Infinity);
  }

  #retrying(transport: Transport, maxAttempts = Infinity): Transport {
    return withRetry(transport, {
      maxAttempts: Math.min(this.#options.maxAttempts ?? Infinity, maxAttempts),
      timeoutMs: this.#options.retryTimeoutMs ?? 60_000,
      baseDelayMs: this.#options.retryBaseDelayMs ?? 500,
      constantDelayMs: this.#options.retryDelayMs,
      random: this.#options.random ?? (() => 0.5),
      now: this.#now,
      logger: this.#options.logger,
      timeOption: 'registry.retryTimeoutMs',
    });
  }
}

/** Reason why certificates of a registry are not verified, if any. */
type Security = 'verified' | 'insecure' | 'insecure-by-flag';
