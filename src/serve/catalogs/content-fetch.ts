import type { Catalog } from '../../catalog/catalog.js';
import { CancelledError, OpmateError, throwIfCancelled } from '../../core/errors.js';
import type { Limiter } from '../../core/limiter.js';
import type { Logger } from '../../core/log.js';
import { quoteGo } from '../../document/go-json.js';
import type { Connection } from '../../oci/registry/connection.js';
import type { PlaceState, ResolvedPlace } from '../../source/drivers/driver.js';
import type { CatalogPlace, SourceCredentials } from '../../source/place.js';
import { openResolved, resolvePlace } from '../../source/resolve-place.js';
import type { CredentialsKind, SecretName } from '../../source/secrets.js';
import { type SourceSession, withChanges } from '../../source/session.js';
import type { CatalogSource } from '../../source/source-types.js';
import { storeContent } from './content-store.js';
import type { KeptManifest } from './kept-manifest.js';
import type { StoredContent } from './stored-content.js';

/** A manifest whose origin could be read. */
export type OriginManifest = KeptManifest & { origin: CatalogPlace };

interface ContentFetcherOptions {
  origins: SourceSession;
  credentials?: ((secret: SecretName, kind: CredentialsKind) => Promise<SourceCredentials>) | undefined;
  /** Directory of contents. */
  contents: string | undefined;
  now: () => Date;
  /** Limits the catalogs that are unpacked at the same time. */
  turns: Limiter;
  /** Removes stored content, unless another catalog has it. */
  discard(hash: string): Promise<void>;
  signal: AbortSignal;
  logger: Logger;
}

/** State of an origin; `content` is undefined where the state has not changed. */
interface FetchedState {
  state: PlaceState;
  content: StoredContent | undefined;
}

/** Looks at the origin of a catalog and stores its content when its state has changed. */
export class ContentFetcher {
  readonly #options: ContentFetcherOptions;
  /** State with invalid content, which is not fetched again. */
  #rejected: { state: PlaceState; error: unknown } | undefined;

  constructor(options: ContentFetcherOptions) {
    this.#options = options;
  }

  /** Fetches a rejected state again. */
  forgetRejected(): void {
    this.#rejected = undefined;
  }

  /** Compares the origin with a known state. Throws OpmateError for an unusable origin or content. */
  async fetch(manifest: OriginManifest, known: PlaceState | undefined): Promise<FetchedState> {
    const { origins, signal } = this.#options;
    let connection: Promise<Connection> | undefined;
    const connect = (): Promise<Connection> => (connection ??= Promise.resolve(origins.connect()));
    try {
      return await this.#compare(manifest, known, withChanges(origins, { signal, connect }));
    } finally {
      (await connection?.catch(() => undefined))?.close();
    }
  }

  async #compare(
    manifest: OriginManifest,
    known: PlaceState | undefined,
    session: SourceSession,
  ): Promise<FetchedState> {
    // A rejected state most likely still exists, and need not be sent again either.
    const place = await resolvePlace(await this.#withCredentials(manifest), session, {
      known: this.#rejected?.state ?? known,
    });
    const { state } = place;
    try {
      if (state.id === known?.id) return { state, content: undefined };
      if (this.#rejected?.state.id === state.id) throw this.#rejected.error;
      const content = await this.#options.turns(() => {
        throwIfCancelled(session.signal);
        return this.#store(place, session);
      });
      return { state, content };
    } finally {
      await place.close();
    }
  }

  /** Faults of a Secret are retried, as those of the origin: the Secret may change. */
  async #withCredentials({ origin, secret }: OriginManifest): Promise<CatalogPlace> {
    const { credentials } = this.#options;
    if (secret === undefined || (origin.kind !== 'git' && origin.kind !== 'http')) return origin;
    try {
      if (credentials === undefined) {
        throw new OpmateError('AUTH', `Secret ${quoteGo(secret.name)}: no directory of Secrets`, {
          hint: 'specify its directory with --secrets',
        });
      }
      return { ...origin, credentials: await credentials(secret, origin.kind) };
    } catch (error) {
      if (!(error instanceof OpmateError)) throw error;
      const { message, hint } = error;
      throw new OpmateError('AUTH', message, { hint, cause: error });
    }
  }

  async #store(place: ResolvedPlace, session: SourceSession): Promise<StoredContent> {
    const { contents, now, logger, signal } = this.#options;
    const { state, isImmutable } = place;
    const catalog = openLazily(() => openResolved(place));
    let content: StoredContent;
    try {
      content = await storeContent(catalog, {
        directory: contents,
        temporaryDirectory: session.temporaryDirectory,
        now,
        key: isImmutable ? state.id : undefined,
        signal,
        logger,
      });
    } catch (error) {
      if (isContentFault(error) && isImmutable) this.#rejected = { state, error };
      throw error;
    } finally {
      await catalog.close();
    }
    try {
      if ((await place.confirm?.()) === false) {
        throw new OpmateError('IO', `${state.ref}: has changed by another process while reading`);
      }
      if (signal.aborted) throw new CancelledError();
    } catch (error) {
      await content.close();
      // Unreferenced; the sweep would keep it for an hour.
      await this.#options.discard(content.hash);
      throw error;
    }
    return content;
  }
}

/** Reports whether an error is about the content itself: another attempt would fail alike. */
export function isContentFault(error: unknown): boolean {
  const codes = ['SYNTAX', 'INVALID', 'UNSUPPORTED', 'LIMIT', 'UNSAFE'];
  return error instanceof OpmateError && codes.includes(error.code);
}

/** Opens a catalog with the first read, which the store may not need. */
function openLazily(open: () => Promise<CatalogSource>): Pick<Catalog, 'metas' | 'close'> {
  let source: CatalogSource | undefined;
  return {
    async *metas(options) {
      source ??= await open();
      yield* source.catalog.metas(options);
    },
    async close() {
      await source?.close();
    },
  };
}
