import { randomBytes } from 'node:crypto';
import path from 'node:path';
import { SelectionEditor, imageOfCatalog } from '../../api/selection/edit-selection.js';
import { catalogForms, openCatalog } from '../../api/open-catalog.js';
import { argument, defineCommand } from '../command/declaration.js';
import { flag, text } from '../command/flags.js';
import { onAbort } from '../../core/concurrency.js';
import { localStateReader } from '../../source/source.js';
import { exportPage } from '../../view/export-page.js';
import { CurrentView, type OpenedView } from '../../view/current-view.js';
import { parsePort } from '../serve/listen-options.js';
import { loopbackHostFlag, portFlag } from '../serve/server-flags.js';
import { openBrowser } from '../serve/open-browser.js';
import { openView, startPage, withSignal } from '../serve/page.js';
import type { CommandContext } from '../context.js';
import { type CommandSession, useSession } from '../session.js';

/** `opmate view`: a page that shows a catalog, until the command is told to stop. Prints its URL. */
export const command = defineCommand({
  summary: 'show a catalog in the browser: packages, upgrade graphs, bundles, problems',
  arguments: [argument('<catalog>', `catalog: ${catalogForms}`)],
  flags: {
    compare: text('catalog', 'show the differences from this older catalog'),
    open: flag('open the page in the browser'),
    export: text('directory', 'write the page as static files to this directory, and exit'),
    edit: flag('select packages, channels and versions in the page, and write them to a file'),
    to: text('file', 'with --edit: file to write', { default: 'imageset-config.yaml' }),
    port: portFlag('0'),
    host: loopbackHostFlag,
  },
  examples: [
    ['Show a catalog directory in the browser', 'opmate view ./catalog --open'],
    ['Write the page for any web server', 'opmate view ./catalog --export ./page'],
    [
      'Select what to mirror, and write an ImageSetConfiguration',
      'opmate view registry.example.com/demo/catalog:v1 --edit --to imageset.yaml',
    ],
    ['Show what changed since an older catalog', 'opmate view ./catalog --compare ./older-catalog'],
  ],
  async run({ context, args: [reference], options }) {
    const { compare, host } = options;
    const address = { host, port: parsePort(options) };
    await useSession(context, options, async (session) => {
      const { logger, signal } = session;
      const references = compare === undefined ? [reference] : [reference, compare];
      const readers: (() => Promise<string>)[] = [];
      for (const name of references) {
        const reader = await localStateReader(name, session);
        if (reader !== undefined) readers.push(reader);
      }
      const current = new CurrentView({
        open: (stop) => openReferences(reference, compare, withSignal(session, stop)),
        readState: async () => (await Promise.all(readers.map((read) => read()))).join('\n'),
        now: context.now,
      });
      try {
        await current.use(true, async (view, { readAt }) => {
          if (options.export === undefined) return;
          await view.endChecks();
          await exportPage(view, options.export, { readAt, signal });
        });
        if (options.export !== undefined) {
          logger.log('info', `exported ${options.export}: open ${options.export}/index.html`);
          return;
        }
        const editor = options.edit ? await readEditor(reference, options.to, context, session) : undefined;
        const page = await startPage(context, current, address, '--port', session, editor);
        if (options.open) openBrowser(page.url, context.environment, logger);
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

async function readEditor(
  reference: string,
  file: string,
  { workingDirectory }: CommandContext,
  session: CommandSession,
): Promise<SelectionEditor> {
  const token = randomBytes(16).toString('hex');
  const catalog = await imageOfCatalog(reference);
  return new SelectionEditor({ token, file, path: path.resolve(workingDirectory, file), catalog }, session);
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
