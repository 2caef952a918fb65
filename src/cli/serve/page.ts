import type { Catalog } from '../../catalog/catalog.js';
import { closeHttpServer } from '../../serve/server/http-server.js';
import { type ListenAddress, listenOn, getUrl } from '../../serve/server/listening.js';
import { withChanges } from '../../source/session.js';
import { inReference } from '../../source/reference-error.js';
import { type NamedCatalog, openCatalogView } from '../../view/catalog-view.js';
import { CurrentView, type OpenedView } from '../../view/current-view.js';
import { type EditActions, createViewServer } from '../../view/view-server.js';
import type { CommandContext } from '../context.js';
import { writeAll } from '../output.js';
import type { CommandSession } from '../session.js';
import { getAddress } from './listen-options.js';

/** Nobody waits for what a page asked when its server ends. */
const graceMs = 1_000;

/** The same session, whose work also ends when `stop` fires. */
export function withSignal(session: CommandSession, stop: AbortSignal): CommandSession {
  const signals = session.signal === undefined ? [stop] : [stop, session.signal];
  return withChanges(session, { signal: AbortSignal.any(signals) });
}

/** Opens the view of an open catalog, and lets the doctor check it until the view is closed. */
export async function openView(
  shown: NamedCatalog,
  compareWith: NamedCatalog | undefined,
  session: CommandSession,
): Promise<OpenedView> {
  const { logger } = session;
  const stop = new AbortController();
  const { signal } = withSignal(session, stop.signal);
  const view = await openCatalogView(shown, { compareWith, logger, signal }).catch((error: unknown) => {
    throw inReference(error, shown.name);
  });
  view.startChecks({ signal, logger });
  return {
    view,
    async close() {
      stop.abort();
      await view.endChecks();
    },
  };
}

/** Serves the page of a catalog beside other servers, on the address of `--ui`, and prints its URL. */
export async function startUi(
  context: CommandContext,
  catalog: Catalog,
  reference: string,
  ui: string | true,
  session: CommandSession,
): Promise<{ close(): Promise<void> }> {
  const address = getAddress(ui, '--ui', '127.0.0.1:8081');
  const current = new CurrentView({
    open: (stop) => openView({ name: reference, catalog }, undefined, withSignal(session, stop)),
    now: context.now,
  });
  // What is served otherwise is not kept waiting: requests of the page wait, and get the error.
  void current.use(true, () => undefined).catch(() => undefined);
  const page = await startPage(context, current, address, '--ui', session).catch(async (error: unknown) => {
    await current.close();
    throw error;
  });
  return {
    async close() {
      await page.close();
      // The catalog is closed next: nothing may still read it.
      await current.close();
    },
  };
}

/** Serves the page of a view, and prints its URL. Throws OpmateError IO. */
export async function startPage(
  context: CommandContext,
  view: CurrentView,
  address: ListenAddress & { host: string },
  flag: string,
  { logger }: CommandSession,
  edit?: EditActions,
): Promise<{ url: string; close(): Promise<void> }> {
  const server = await createViewServer({ view, host: address.host, logger, edit });
  await listenOn(server, address, flag);
  const token = edit === undefined ? '' : `?token=${edit.token}#/edit`;
  const url = `${getUrl(server, address.host, false)}/${token}`;
  await writeAll(context.stdout, `${url}\n`);
  return { url, close: () => closeHttpServer(server, graceMs) };
}
