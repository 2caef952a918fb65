import { CancelledError } from '../../core/errors.js';
import { getOrAdd } from '../../core/groups.js';
import { NetworkError } from '../transport/transport-faults.js';
import type { Transport, TransportRequest } from '../transport/transport.js';
import { type ResolvedLocation, getHost } from './registries-conf.js';

/** Maximum time to detect a scheme before the first request. */
const expectMs = 5_000;

/** Time limits of a request that waits for the scheme. */
type Waiting = Pick<TransportRequest, 'signal' | 'deadline'>;

interface SchemeOptions {
  useHttp?: boolean | undefined;
  retryTimeoutMs?: number | undefined;
}

/** Detects whether insecure registries speak HTTPS or HTTP. */
export class Schemes {
  readonly #wire: Transport;
  readonly #useHttp: boolean;
  readonly #retryTimeoutMs: number | undefined;
  readonly #detections = new Map<string, Promise<'http' | 'https'>>();
  readonly #known = new Map<string, 'http' | 'https'>();
  /** First detections, by host. */
  readonly #expected = new Map<string, Promise<void>>();

  constructor(wire: Transport, { useHttp = false, retryTimeoutMs }: SchemeOptions) {
    this.#wire = wire;
    this.#useHttp = useHttp;
    this.#retryTimeoutMs = retryTimeoutMs;
  }

  /** Returns HTTPS if an insecure registry responds, otherwise HTTP. Throws a temporary NetworkError of either first. */
  async #find(host: string, { signal, deadline }: Waiting): Promise<'http' | 'https'> {
    const faults: NetworkError[] = [];
    for (const scheme of ['https', 'http'] as const) {
      try {
        const url = `${scheme}://${host}/v2/`;
        (await this.#wire.send({ method: 'GET', url, signal, deadline })).discard();
        return scheme;
      } catch (error) {
        if (!(error instanceof NetworkError)) throw error;
        faults.push(error);
      }
    }
    throw faults.find(({ temporary }) => temporary) ?? faults[0];
  }

  /** Returns the scheme of an insecure registry; one that does not respond is tried again by the next request. */
  #detect(host: string, waiting: Waiting): Promise<'http' | 'https'> {
    return getOrAdd(this.#detections, host, () => {
      const detecting = this.#find(host, waiting).then((scheme) => {
        this.#known.set(host, scheme);
        return scheme;
      });
      detecting.catch(() => this.#detections.delete(host));
      return detecting;
    });
  }

  /** Detects a scheme before the first request. Later ones try again within their time limit, and report the error. */
  expect(place: ResolvedLocation, signal: AbortSignal | undefined): Promise<void> {
    if (this.#useHttp) return Promise.resolve();
    const host = getHost(place);
    return getOrAdd(this.#expected, host, async () => {
      const deadline = performance.now() + Math.min(expectMs, this.#retryTimeoutMs ?? expectMs);
      try {
        await this.#detect(host, { signal, deadline });
      } catch (error) {
        const isLate = error instanceof CancelledError && signal?.aborted !== true;
        if (error instanceof NetworkError || isLate) return;
        this.#expected.delete(host);
        throw error;
      }
    });
  }

  /** Sends each attempt with the scheme that the registry has by then. */
  wrap(next: Transport, place: ResolvedLocation): Transport {
    const host = getHost(place);
    const send: Transport['send'] = async (request) => {
      const rest = request.url.replace(/^https?:\/\//, '');
      if (this.#useHttp || !rest.startsWith(`${host}/`)) return next.send(request);
      const scheme = await this.#detect(host, request);
      return next.send({ ...request, url: `${scheme}://${rest}` });
    };
    return { send };
  }

  /** Returns the scheme for URLs; HTTPS until an insecure registry responds. */
  get(place: ResolvedLocation): 'http' | 'https' {
    if (this.#useHttp) return 'http';
    return (place.insecure && this.#known.get(getHost(place))) || 'https';
  }
}
