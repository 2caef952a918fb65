import { catalogForms } from '../../api/open-catalog.js';
import { exportCatalogView, viewCatalog } from '../../api/view/view-catalog.js';
import { onAbort, withOpen } from '../../core/concurrency.js';
import { argument, defineCommand } from '../command/declaration.js';
import { flag, text } from '../command/flags.js';
import { writeAll } from '../output.js';
import { openBrowser } from '../serve/open-browser.js';
import { loopbackHostFlag, portFlag } from '../serve/server-flags.js';

/** `opmate view`; prints the URL of the page. */
export const command = defineCommand({
  summary: 'show a catalog in the browser: packages, upgrade graphs, bundles, problems',
  arguments: [argument('<catalog>', `catalog: ${catalogForms}`)],
  flags: {
    compare: text('catalog', 'show the differences from this older catalog'),
    open: flag('open the page in the browser'),
    export: text('directory', 'write the page as static files to this directory, and exit'),
    edit: flag('select packages, channels and versions in the page; write to --to', { excludes: ['export'] }),
    to: text('file', 'with --edit: file to write (default: by the kind of catalog)', { needs: 'edit' }),
    port: portFlag(0),
    host: loopbackHostFlag,
  },
  examples: {
    'Show a catalog directory in the browser': 'opmate view ./catalog --open',
    'Write the page for any web server': 'opmate view ./catalog --export ./page',
    'Select content to mirror, and write an ImageSetConfiguration':
      'opmate view registry.example.com/demo/catalog:v1 --edit --to imageset.yaml',
    'Show the changes since an older catalog': 'opmate view ./catalog --compare ./older-catalog',
  },
  async runInSession({ context, args: [reference], options, session }) {
    const { compare, host, port, export: directory } = options;
    const { logger } = session;
    if (directory !== undefined) {
      await exportCatalogView(reference, directory, session, { compare });
      logger.log('info', `exported ${directory}: open ${directory}/index.html`);
      return;
    }
    const edit = options.edit ? (options.to ?? true) : undefined;
    await withOpen(viewCatalog(reference, session, { compare, host, port, edit }), async ({ url }) => {
      await writeAll(context.stdout, `${url}\n`);
      if (options.open) openBrowser(url, context.environment, logger);
      logger.log('info', 'press Ctrl+C to stop');
      await new Promise<void>((resolve) => void onAbort(context.signal, resolve));
    });
  },
});
