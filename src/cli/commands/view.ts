import type { Catalog } from '../../catalog/catalog.js';
import { onAbort } from '../../core/concurrency.js';
import { closeHttpServer } from '../../serve/server/http-server.js';
import { type ListenAddress, listenOn, urlOf } from '../../serve/server/listening.js';
import { inReference } from '../../source/render.js';
import { type CatalogView, type NamedCatalog, openCatalogView } from '../../view/catalog-view.js';
import { createViewServer } from '../../view/view-server.js';
import { withCatalog } from '../catalog-input.js';
import type { CommandContext, GlobalOptions } from '../context.js';
import { addressOf, portOf } from '../listen-options.js';
import { writeAll } from '../output.js';
import { type CommandSession, useSession } from '../session.js';

/** Nobody waits for what a page asked when its server ends. */
const graceMs = 1_000;

interface ViewCommandOptions extends GlobalOptions {
  compare?: string;
  port?: string;
  host?: string;
}

/** `opmate view`: a page that shows a catalog, until the command is told to stop. Prints its URL. */
export async function view(
  context: CommandContext,
  reference: string,
  options: ViewCommandOptions,
): Promise<void> {
  const { compare, host = '127.0.0.1' } = options;
  const address = { host, port: portOf(options) };
  await useSession(context, options, (session) =>
    withCatalog(reference, session, async ({ catalog }) => {
      const shown = { name: reference, catalog };
      if (compare === undefined) return showUntilStopped(context, shown, undefined, address, session);
      return withCatalog(compare, session, (other) =>
        showUntilStopped(context, shown, { name: compare, catalog: other.catalog }, address, session),
      );
    }),
  );
}

async function showUntilStopped(
  context: CommandContext,
  shown: NamedCatalog,
  compareWith: NamedCatalog | undefined,
  address: ListenAddress & { host: string },
  session: CommandSession,
): Promise<void> {
  const { logger, signal } = session;
  const opened = await openCatalogView(shown, { compareWith, logger, signal }).catch((error: unknown) => {
    throw inReference(error, shown.name);
  });
  const page = await startPage(context, opened, address, '--port', session);
  logger.log('info', 'press Ctrl+C to stop');
  try {
    await new Promise<void>((resolve) => void onAbort(context.signal, resolve));
  } finally {
    await page.close();
  }
}

/** The page of a catalog that is served otherwise too, on an address as `--ui` gives it; its URL is printed. */
export async function startUi(
  context: CommandContext,
  catalog: Catalog,
  reference: string,
  ui: string | true,
  session: CommandSession,
): Promise<{ close(): Promise<void> }> {
  const { logger, signal } = session;
  const address = addressOf(ui, '--ui', '127.0.0.1:8081');
  // What is served otherwise is not kept waiting: the page waits, and is told what went wrong.
  const opened = openCatalogView({ name: reference, catalog }, { logger, signal });
  return startPage(context, opened, address, '--ui', session);
}

async function startPage(
  context: CommandContext,
  opened: CatalogView | Promise<CatalogView>,
  address: ListenAddress & { host: string },
  flag: string,
  { logger, signal }: CommandSession,
): Promise<{ close(): Promise<void> }> {
  const readable = Promise.resolve(opened).catch(() => undefined);
  const server = await createViewServer({ view: opened, host: address.host, logger });
  await listenOn(server, address, flag);
  const checked = readable.then((one) => {
    one?.startChecks({ signal, logger });
    return one;
  });
  await writeAll(context.stdout, `${urlOf(server, address.host, false)}/\n`);
  return {
    async close() {
      await closeHttpServer(server, graceMs);
      // The catalog is closed next: nothing may still read it. The signal has ended what did.
      await (await checked)?.endChecks();
    },
  };
}
