import type { Catalog } from '../../catalog/catalog.js';
import { withOpen } from '../../core/concurrency.js';
import { OpmateError, throwIfCancelled } from '../../core/errors.js';
import type { Limiter } from '../../core/limiter.js';
import type { Logger } from '../../core/log.js';
import { quoteGo } from '../../document/go-json.js';
import type { JsonObject } from '../../document/json.js';
import { getObject } from '../../document/json-fields.js';
import type { Connection } from '../../oci/registry/connection.js';
import type { PlaceState, ResolvedPlace } from '../../source/drivers/driver.js';
import type { CatalogPlace, ImagePlace, SourceCredentials } from '../../source/place.js';
import { openResolved, resolvePlace } from '../../source/resolve-place.js';
import type { CredentialsRequest, SecretName } from '../../source/secrets.js';
import { type SourceSession, withChanges } from '../../source/session.js';
import type { CatalogSource } from '../../source/source-types.js';
import { storeContent } from './content-store.js';
import type { KeptManifest } from './catalog-status.js';
import type { StoredContent } from './stored-content.js';

/** A manifest whose origin could be read. */
export type OriginManifest = KeptManifest & { origin: CatalogPlace };

export interface FetchOptions {
  /** `connect` is called for every look, and its connection closed afterwards: credentials may change. */
  origins: SourceSession;
  /** Reads credentials from a Secret for every look, as they may change; without it, Secrets are refused. */
  credentials?: ((request: CredentialsRequest) => Promise<SourceCredentials>) | undefined;
  /** Directory of contents. */
  contents: string | undefined;
  now: () => Date;
  /** Limits the catalogs that are unpacked at the same time. */
  turns: Limiter;
  /** Removes stored content, unless another catalog has it. */
  discard(hash: string): Promise<void>;
  logger: Logger;
}

/** State of an origin; `content` is undefined where the state has not changed. */
interface FetchedState {
  state: PlaceState;
  content: StoredContent | undefined;
}

/** Looks at the origin of a catalog, and stores its content when its state has changed. */
export class ContentFetcher {
  readonly #options: FetchOptions;
  readonly #signal: AbortSignal;
  /** State with invalid content, which is not fetched again. */
  #rejected: { state: PlaceState; error: unknown } | undefined;
  /** Logged problems of pull Secrets. */
  readonly #unusable = new Set<string>();

  constructor(options: FetchOptions, signal: AbortSignal) {
    this.#options = options;
    this.#signal = signal;
  }

  /** Faults of a Secret are retried, as those of the origin: the Secret may change. */
  async #addCredentials(manifest: OriginManifest): Promise<CatalogPlace> {
    const { name, origin, secret, pullSecrets } = manifest;
    if (origin.kind === 'image') return this.#addPullSecrets(name, origin, pullSecrets);
    if (secret === undefined || (origin.kind !== 'git' && origin.kind !== 'http')) return origin;
    try {
      if (this.#options.credentials === undefined) {
        throw new OpmateError('AUTH', `Secret ${quoteGo(secret.name)}: no directory of Secrets`, {
          hint: 'specify its directory with options.secrets',
        });
      }
      const address = origin.kind === 'git' ? origin.repository : origin.url;
      return {
        ...origin,
        credentials: await this.#options.credentials({ ...secret, kind: origin.kind, address }),
      };
    } catch (error) {
      if (!(error instanceof OpmateError)) throw error;
      const { message, hint } = error;
      throw new OpmateError('AUTH', message, { hint, cause: error });
    }
  }

  /** Adds the credentials of all Secrets that exist; the first of a registry takes precedence. */
  async #addPullSecrets(
    name: string,
    origin: ImagePlace,
    secrets: readonly SecretName[],
  ): Promise<CatalogPlace> {
    if (this.#options.credentials === undefined) return origin;
    const auths: JsonObject[] = [];
    for (const secret of secrets) {
      try {
        const read = await this.#options.credentials({ ...secret, kind: 'image' });
        if (read.type === 'docker') auths.push(getObject(JSON.parse(read.config), 'auths'));
      } catch (error) {
        if (!(error instanceof OpmateError)) throw error;
        if (this.#unusable.has(error.message)) continue;
        this.#unusable.add(error.message);
        const { message, hint = '' } = error;
        this.#options.logger.log('warn', `catalog ${name}: ${message}${hint === '' ? '' : ` (${hint})`}`);
      }
    }
    if (auths.length === 0) return origin;
    const config = JSON.stringify({ auths: Object.assign({}, ...auths.reverse()) as JsonObject });
    return { ...origin, credentials: { type: 'docker', config } };
  }

  async #store(place: ResolvedPlace): Promise<StoredContent> {
    const { state, isImmutable } = place;
    const { temporaryDirectory } = this.#options.origins;
    const key = isImmutable ? state.id : undefined;
    let source: CatalogSource | undefined;
    const catalog: Pick<Catalog, 'metas'> = {
      async *metas(options) {
        // The store may not need it.
        source ??= await openResolved(place);
        yield* source.catalog.metas(options);
      },
    };
    let content: StoredContent;
    try {
      content = await storeContent(catalog, {
        directory: this.#options.contents,
        temporaryDirectory,
        now: this.#options.now,
        key,
        signal: this.#signal,
        logger: this.#options.logger,
      });
    } catch (error) {
      if (isContentFault(error) && isImmutable) this.#rejected = { state, error };
      throw error;
    } finally {
      await source?.close();
    }
    try {
      if ((await place.confirm?.()) === false) {
        throw new OpmateError('IO', `${state.ref}: has changed by another process while reading`);
      }
      throwIfCancelled(this.#signal);
    } catch (error) {
      await content.close();
      // Unreferenced; the sweep would keep it for an hour.
      await this.#options.discard(content.hash);
      throw error;
    }
    return content;
  }

  async #compare(place: ResolvedPlace, known: PlaceState | undefined): Promise<FetchedState> {
    const { state } = place;
    if (state.id === known?.id) return { state, content: undefined };
    if (this.#rejected?.state.id === state.id) throw this.#rejected.error;
    const content = await this.#options.turns(() => {
      throwIfCancelled(this.#signal);
      return this.#store(place);
    });
    return { state, content };
  }

  /** Fetches a rejected state again. */
  forgetRejected(): void {
    this.#rejected = undefined;
  }

  /** Compares the origin with a known state. Throws OpmateError for an unusable origin or content. */
  async fetch(manifest: OriginManifest, known: PlaceState | undefined): Promise<FetchedState> {
    let connection: Promise<Connection> | undefined;
    const connect = (): Promise<Connection> =>
      (connection ??= Promise.resolve(this.#options.origins.connect()));
    const session = withChanges(this.#options.origins, { signal: this.#signal, connect });
    try {
      const origin = await this.#addCredentials(manifest);
      // A rejected state most likely still exists, and need not be sent again either.
      const place = resolvePlace(origin, session, { known: this.#rejected?.state ?? known });
      return await withOpen(place, (resolved) => this.#compare(resolved, known));
    } finally {
      (await connection?.catch(() => undefined))?.close();
    }
  }
}

/** Reports whether an error is about the content itself: another attempt would fail alike. */
export function isContentFault(error: unknown): boolean {
  const codes = ['SYNTAX', 'INVALID', 'UNSUPPORTED', 'LIMIT', 'UNSAFE'];
  return error instanceof OpmateError && codes.includes(error.code);
}
