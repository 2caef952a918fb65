import type { ConnectionHints } from '../transport/transport-faults.js';
import { setMaxListeners } from 'node:events';
import { Agent as HttpAgent, type ClientRequest } from 'node:http';
import { Agent as HttpsAgent } from 'node:https';
import type { LookupFunction } from 'node:net';
import { createSecureContext, type SecureContext } from 'node:tls';
import { getMessage, OpmateError } from '../../core/errors.js';
import { getOrAdd } from '../../core/groups.js';
import type { Environment } from '../../files/run-program.js';
import type { CertificateStore, TlsFiles } from '../transport/certificates.js';
import { defaultLookup, guardLookup, rememberLookup } from '../transport/guarded-lookup.js';
import type { AddressKind } from '../transport/network-policy.js';
import { readProxies } from '../transport/proxy.js';
import type { AgentRoute } from '../transport/transport.js';
import { dockerHub } from './registries-conf.js';

/** Trust in the server of a URL. */
interface ServerTrust {
  /** Verify its certificate. */
  verify: boolean;
  /** The user named it, so it gets client certificates that are not specific to a host. */
  isNamed: boolean;
}

/** Settings of agents; see `ConnectionOptions`. */
interface AgentOptions {
  environment: Environment;
  lookup?: LookupFunction | undefined;
  overridesFor?: ((registry: string) => { insecureFlag?: string | undefined } | undefined) | undefined;
}

const noAuthorities: string[] = [];

/** Returns hints in the words of the options of a registry; `insecureFlag` allows plain HTTP and any certificate. */
export function getRegistryHints(insecureFlag?: string): ConnectionHints {
  const [plain, unverified] = [insecureFlag ?? 'registry.useHttp', insecureFlag ?? 'registry.skipTlsVerify'];
  return {
    untrusted: `add its certificate authority with registry.caFile or certs.d, or accept any certificate with ${unverified}`,
    plainHttp: `use ${plain}, or insecure = true in registries.conf`,
    https: `remove registry.useHttp; add ${unverified} for a certificate that cannot be verified`,
    clientCertificate: 'add the required client certificate to certs.d as NAME.cert and NAME.key',
    privateAddress: (host) => `allow the host with registry.allowedPrivateHosts ${host}`,
  };
}

/** One agent per origin, with kept connections and the certificates and proxy of the host. */
export class HostAgents {
  readonly #options: AgentOptions;
  readonly #readCertificates: CertificateStore;
  readonly #findProxy: (url: URL) => URL | undefined;
  readonly #routes = new Map<string, Promise<AgentRoute>>();
  readonly #contexts = new WeakMap<string[], SecureContext>();
  readonly #opened: { destroy(): void }[] = [];
  /** Sockets that wait for a proxy belong to no agent yet. */
  readonly #closing = new AbortController();

  constructor(options: AgentOptions, readCertificates: CertificateStore) {
    this.#options = options;
    this.#readCertificates = readCertificates;
    this.#findProxy = readProxies(options.environment);
    setMaxListeners(0, this.#closing.signal);
  }

  #getContext({ ca, cert, key, trustPaths }: TlsFiles): SecureContext {
    const own = cert !== undefined && key !== undefined;
    const known = own ? undefined : this.#contexts.get(ca);
    if (known) return known;
    let context: SecureContext;
    try {
      context = createSecureContext({ ca, minVersion: 'TLSv1.2', ...(own && { cert, key }) });
    } catch (cause) {
      const files = [...new Set(trustPaths)].join(', ');
      const problem = `unusable certificate: ${getMessage(cause)}`;
      throw new OpmateError('INVALID', problem, { subject: files, cause });
    }
    if (!own) this.#contexts.set(ca, context);
    return context;
  }

  async #open(
    url: URL,
    { verify, isNamed }: ServerTrust,
    ledFrom: AddressKind | undefined,
  ): Promise<AgentRoute> {
    const proxy = this.#findProxy(url);
    const common = { keepAlive: true, maxSockets: 64, scheduling: 'lifo' as const };
    const { lookup: lookupAddress = defaultLookup } = this.#options;
    // A proxy, which the user named, looks names up itself.
    const known = rememberLookup(
      ledFrom === undefined || proxy ? lookupAddress : guardLookup(ledFrom, lookupAddress),
    );
    const { lookup } = known;
    const getAddress = proxy ? undefined : known.getAddress;
    const direct = { ...common, lookup };
    const host = url.host === dockerHub.host ? dockerHub.registry : url.host;
    const hints = getRegistryHints(this.#options.overridesFor?.(host)?.insecureFlag);
    if (url.protocol === 'http:') {
      const agent = proxy ? await this.#openProxy(proxy, common) : new HttpAgent(direct);
      this.#opened.push(agent);
      return { agent, trustPaths: [], proxy: proxy?.host, lookup, getAddress, hints };
    }
    const certificates = await this.#readCertificates(host, isNamed);
    // Reading authorities takes 17 ms, in vain where nothing is verified.
    const used = verify ? certificates : { ...certificates, ca: noAuthorities };
    const tls = { secureContext: this.#getContext(used), rejectUnauthorized: verify };
    const agent = proxy ? await this.#openProxy(proxy, common, tls) : new HttpsAgent({ ...direct, ...tls });
    this.#opened.push(agent);
    const { trustPaths } = certificates;
    return { agent, trustPaths, proxy: proxy?.host, lookup, getAddress, hints };
  }

  /** Returns the agent of a proxy: with the TLS options of the host it opens tunnels, without it sends plain HTTP. */
  async #openProxy(proxy: URL, common: object, tls?: object): Promise<HttpAgent> {
    const { HttpProxyAgent, HttpsProxyAgent } = await import('../transport/proxy-agents.js');
    // The proxy is always verified with the authorities of its own name.
    const secureContext =
      proxy.protocol === 'https:'
        ? this.#getContext(await this.#readCertificates(proxy.host, false))
        : undefined;
    const own = {
      ...common,
      signal: this.#closing.signal,
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

  /** `ledFrom` is the kind of address that led there, if the user did not name the server. */
  routeTo(url: URL, trust: ServerTrust, ledFrom?: AddressKind): Promise<AgentRoute> {
    const key = [url.origin, trust.verify, trust.isNamed, ledFrom].join(' ');
    return getOrAdd(this.#routes, key, () => this.#open(url, trust, ledFrom));
  }

  close(): void {
    for (const agent of this.#opened) agent.destroy();
    this.#closing.abort();
  }
}
