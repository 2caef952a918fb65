import { closeHttpServer } from '../../serve/server/http-server.js';
import { type ListenAddress, getServerUrl, listenOn } from '../../serve/server/listening.js';
import { throwAbout } from '../../source/reference-error.js';
import { type Session, withChanges } from '../../source/session.js';
import {
  type CatalogView,
  type CatalogViewOptions,
  type ViewedCatalog,
  openCatalogView,
} from '../../view/catalog-view.js';
import { CurrentView } from '../../view/current-view.js';
import type { ClusterOverview, MirrorOverview } from '../../view/responses.js';
import { type EditActions, createViewServer } from '../../view/view-server.js';

/** Time to finish requests of the page when its server closes. */
const graceMs = 1_000;

/** A page that is served. `close` ends it. */
export interface ServedPage {
  /** Includes the token of a page that may write. */
  url: string;
  close(): Promise<void>;
}

/** Returns the same session, whose work also ends when `stop` fires. */
export function withSignal(session: Session, stop: AbortSignal): Session {
  const signals = session.signal === undefined ? [stop] : [stop, session.signal];
  return withChanges(session, { signal: AbortSignal.any(signals) });
}

/**
 * Opens the view of an open catalog, and lets the doctor check it until the signal of the session fires; `checksFirst` waits
 * for that.
 */
export async function openView(
  shown: ViewedCatalog,
  compareWith: ViewedCatalog | undefined,
  session: Session,
  { checksFirst = false, reword }: Pick<CatalogViewOptions, 'checksFirst' | 'reword'> = {},
): Promise<CatalogView> {
  const { logger, signal } = session;
  const view = await openCatalogView(shown, { compareWith, logger, signal, checksFirst, reword }).catch(
    throwAbout(shown.name),
  );
  if (!checksFirst) view.startChecks();
  return view;
}

/** Serves the page of an open catalog beside other servers; the catalog may be closed after the page. */
export async function servePage(
  shown: ViewedCatalog,
  { reword, ...address }: ListenAddress & Pick<CatalogViewOptions, 'reword'> & { host: string },
  session: Session,
): Promise<ServedPage> {
  const current = new CurrentView({
    open: async (stop) => ({ view: await openView(shown, undefined, withSignal(session, stop), { reword }) }),
    now: session.now,
  });
  // The other servers start at once; requests of the page wait for the view, and get its error.
  void current.use(true, () => undefined).catch(() => undefined);
  try {
    return await startPage(current, address, 'options.page', session, { reword });
  } catch (error) {
    await current.close();
    throw error;
  }
}

/** Content of a page, in addition to a catalog if it has one. */
interface PageContent {
  edit?: EditActions | undefined;
  cluster?: ClusterOverview | undefined;
  readMirror?: (() => Promise<MirrorOverview>) | undefined;
  /** Rewords errors, which name options and verbs of the library. */
  reword?: ((text: string) => string) | undefined;
}

/** Serves the page of a view, which is closed with it, or one without a catalog. Throws OpmateError IO. */
export async function startPage(
  view: CurrentView | undefined,
  address: ListenAddress & { host: string },
  flag: string,
  { logger }: Session,
  { edit, cluster, readMirror, reword }: PageContent = {},
): Promise<ServedPage> {
  const host = address.host;
  const server = await createViewServer({ view, host, logger, edit, cluster, readMirror, reword });
  await listenOn(server, address, flag);
  const ownStart = readMirror === undefined ? '' : '#/mirror';
  const start = cluster === undefined ? ownStart : '#/cluster';
  const token = edit === undefined ? start : `?token=${edit.token}#/edit`;
  return {
    url: `${getServerUrl(server, host, false)}/${token}`,
    async close() {
      await closeHttpServer(server, graceMs);
      await view?.close();
    },
  };
}
