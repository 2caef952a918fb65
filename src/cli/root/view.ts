import { argument, defineCommand } from '../command/declaration.js';
import { text } from '../command/flags.js';
import { catalogForms } from '../command/shared-flags.js';
import type { Catalog } from '../../catalog/catalog.js';
import { onAbort } from '../../core/concurrency.js';
import { closeHttpServer } from '../../serve/server/http-server.js';
import { type ListenAddress, listenOn, urlOf } from '../../serve/server/listening.js';
import { localStateReader } from '../../source/source.js';
import { inReference } from '../../source/reference-error.js';
import { type NamedCatalog, openCatalogView } from '../../view/catalog-view.js';
import { CurrentView, type OpenedView } from '../../view/current-view.js';
import { createViewServer } from '../../view/view-server.js';
import { openCatalog } from '../catalog/input.js';
import type { CommandContext } from '../context.js';
import { addressOf, portOf } from '../serve/listen-options.js';
import { writeAll } from '../output.js';
import { withChanges } from '../../source/session.js';
import { type CommandSession, useSession } from '../session.js';

/** Nobody waits for what a page asked when its server ends. */
const graceMs = 1_000;

/** `opmate view`: a page that shows a catalog, until the command is told to stop. Prints its URL. */
export const command = defineCommand({
  summary: 'show a catalog in the browser: packages, upgrade graphs, bundles, problems',
  arguments: [argument('<catalog>', `catalog: ${catalogForms}`)],
  flags: {
    compare: text('catalog', 'show the differences from this older catalog'),
    port: text('port', 'port to listen on; 0 selects a free one', {
      short: 'p',
      default: '0',
      group: 'Server',
    }),
    host: text('address', 'address to listen on', { default: '127.0.0.1', group: 'Server' }),
  },
  examples: [
    ['Show a catalog directory', 'opmate view ./catalog'],
    ['Show what changed since an older catalog', 'opmate view ./catalog --compare ./older-catalog'],
  ],
  async run({ context, args: [reference], options }) {
    const { compare, host } = options;
    const address = { host, port: portOf(options) };
    await useSession(context, options, async (session) => {
      const { logger, signal } = session;
      const references = compare === undefined ? [reference] : [reference, compare];
      const readers: (() => Promise<string>)[] = [];
      for (const one of references) {
        const reader = await localStateReader(one, session);
        if (reader !== undefined) readers.push(reader);
      }
      const current = new CurrentView({
        open: (stop) => openReferences(reference, compare, withSignal(session, stop)),
        readState: async () => (await Promise.all(readers.map((read) => read()))).join('\n'),
      });
      try {
        await current.use(true, () => undefined);
        const page = await startPage(context, current, address, '--port', session);
        logger.log('info', 'press Ctrl+C to stop');
        try {
          await new Promise<void>((resolve) => void onAbort(signal, resolve));
        } finally {
          await page.close();
        }
      } finally {
        await current.close();
      }
    });
  },
});

/** The same session, whose work also ends when `stop` fires. */
function withSignal(session: CommandSession, stop: AbortSignal): CommandSession {
  const signals = session.signal === undefined ? [stop] : [stop, session.signal];
  return withChanges(session, { signal: AbortSignal.any(signals) });
}

async function openReferences(
  reference: string,
  compare: string | undefined,
  session: CommandSession,
): Promise<OpenedView> {
  const source = await openCatalog(reference, session);
  const other =
    compare === undefined
      ? undefined
      : await openCatalog(compare, session).catch(async (error: unknown) => {
          await source.close();
          throw error;
        });
  const closeSources = async (): Promise<void> => {
    await source.close();
    await other?.close();
  };
  try {
    const compareWith =
      compare === undefined || other === undefined ? undefined : { name: compare, catalog: other.catalog };
    const opened = await openView({ name: reference, catalog: source.catalog }, compareWith, session);
    return {
      view: opened.view,
      async close() {
        await opened.close();
        await closeSources();
      },
    };
  } catch (error) {
    await closeSources();
    throw error;
  }
}

/** Opens the view of an open catalog, and lets the doctor check it until the view is closed. */
async function openView(
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

/** The page of a catalog that is served otherwise too, on an address as `--ui` gives it; its URL is printed. */
export async function startUi(
  context: CommandContext,
  catalog: Catalog,
  reference: string,
  ui: string | true,
  session: CommandSession,
): Promise<{ close(): Promise<void> }> {
  const address = addressOf(ui, '--ui', '127.0.0.1:8081');
  const current = new CurrentView({
    open: (stop) => openView({ name: reference, catalog }, undefined, withSignal(session, stop)),
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

async function startPage(
  context: CommandContext,
  view: CurrentView,
  address: ListenAddress & { host: string },
  flag: string,
  { logger }: CommandSession,
): Promise<{ close(): Promise<void> }> {
  const server = await createViewServer({ view, host: address.host, logger });
  await listenOn(server, address, flag);
  await writeAll(context.stdout, `${urlOf(server, address.host, false)}/\n`);
  return { close: () => closeHttpServer(server, graceMs) };
}
