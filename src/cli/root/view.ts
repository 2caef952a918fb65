import { catalogForms } from '../../api/open-catalog.js';
import type { ServedPage } from '../../api/view/page.js';
import type { ClusterViewRequest } from '../../api/view/cluster-overview.js';
import { exportCatalogView, viewCatalog } from '../../api/view/view-catalog.js';
import { viewMirror } from '../../api/view/view-mirror.js';
import { onAbort, withOpen } from '../../core/concurrency.js';
import { UsageError } from '../../core/errors.js';
import type { Session } from '../../source/session.js';
import { argument, defineCommand } from '../command/declaration.js';
import { type FlagValues, flag, grouped, repeated, text } from '../command/flags.js';
import type { CommandContext } from '../context.js';
import {
  parseSnapshotCatalogs,
  parseVersionedCatalogs,
  readSnapshotPlaces,
  upgradeFlags,
} from '../cluster/snapshot-input.js';
import { writeAll } from '../output.js';
import { withFlags } from '../reports/option-words.js';
import { openBrowser } from '../serve/open-browser.js';
import { loopbackHostFlag, portFlag } from '../serve/server-flags.js';

const flags = {
  compare: text('catalog', 'show the differences from this older catalog'),
  open: flag('open the page in the browser'),
  export: text('directory', 'write the page as static files to this directory, and exit'),
  edit: flag('select packages, channels and versions in the page; write to --to', { excludes: ['export'] }),
  ...grouped('Cluster', {
    snapshot: repeated('place', 'show operators and updates: objects of a cluster, must-gather directory', {
      excludes: ['export'],
    }),
    catalog: repeated('name=reference', 'content of a CatalogSource: NAME=REF, or of a version: v4.19=REF', {
      needs: 'snapshot',
    }),
    upgradeTo: text('version', 'plan the updates to this version of OpenShift', { needs: 'snapshot' }),
    graph: { ...upgradeFlags.graph, needs: 'upgradeTo' as const },
  }),
  mirror: text('workspace', 'show a mirror workspace instead: state, runs, generations, next step', {
    excludes: ['compare', 'export', 'edit', 'snapshot'],
  }),
  to: text('file', 'with --edit: file to write (default: by the kind of catalog)', { needs: 'edit' }),
  port: portFlag(0),
  host: loopbackHostFlag,
};

/** `opmate view`; prints the URL of the page. */
export const command = defineCommand({
  summary: 'show a catalog in the browser: packages, upgrade graphs, bundles, problems',
  arguments: [
    argument('[catalog]', `catalog: ${catalogForms} (default with --snapshot: the first --catalog)`),
  ],
  flags,
  commonFlags: ['open', 'compare', 'export', 'edit', 'to', 'port', 'host', 'mirror', 'snapshot', 'catalog'],
  examples: {
    'Show a catalog directory in the browser': 'opmate view ./catalog --open',
    'Select content to mirror, and write an ImageSetConfiguration':
      'opmate view registry.example.com/demo/catalog:v1 --edit --to imageset.yaml',
    'Show what happens to the operators of a cluster':
      'opmate view ./catalog --snapshot objects.yaml --catalog demo=./catalog --upgrade-to 4.19 --catalog v4.19=./newer',
    'Show the runs of a mirror and the command to run next': 'opmate view --mirror .',
  },
  async runInSession({ context, args: [catalog], options, session }) {
    const { compare, host, port, mirror, export: directory } = options;
    if (mirror !== undefined) {
      if (catalog !== undefined)
        throw new UsageError('--mirror: shows no catalog', { hint: 'remove the catalog or --mirror' });
      await serveUntilStopped(viewMirror(mirror, session, { host, port }), options, context, session);
      return;
    }
    const cluster = await readCluster(options, context);
    const reference = catalog ?? findFirstReference(cluster);
    if (reference === undefined)
      throw new UsageError('missing argument: catalog', {
        hint: 'specify a catalog, or --snapshot and --catalog',
      });
    const { logger } = session;
    if (directory !== undefined) {
      await exportCatalogView(reference, directory, session, { compare, reword: withFlags });
      logger.log('info', `exported ${directory}: open ${directory}/index.html`);
      return;
    }
    const edit = options.edit ? (options.to ?? true) : undefined;
    const page = viewCatalog(reference, session, {
      ...{ compare, host, port, edit, cluster },
      reword: withFlags,
    });
    await serveUntilStopped(page, options, context, session);
  },
});

/** Prints the URL of a page, opens it with `--open`, and serves it until the command is stopped. */
async function serveUntilStopped(
  page: Promise<ServedPage>,
  { open }: FlagValues<typeof flags>,
  { stdout, environment, signal }: CommandContext,
  { logger }: Pick<Session, 'logger'>,
): Promise<void> {
  await withOpen(page, async ({ url }) => {
    await writeAll(stdout, `${url}\n`);
    if (open) openBrowser(url, environment, logger);
    logger.log('info', 'press Ctrl+C to stop');
    await new Promise<void>((resolve) => void onAbort(signal, resolve));
  });
}

/** Reads the options of a cluster; undefined without a snapshot. Throws UsageError. */
async function readCluster(
  { snapshot, catalog = [], upgradeTo, graph }: FlagValues<typeof flags>,
  context: CommandContext,
): Promise<ClusterViewRequest | undefined> {
  if (snapshot === undefined) return undefined;
  const isVersioned = (value: string): boolean => /^v?\d+\.\d+=/.test(value);
  const upgrade =
    upgradeTo === undefined
      ? undefined
      : {
          to: upgradeTo,
          catalogs: parseVersionedCatalogs(catalog.filter(isVersioned)),
          updateGraph: graph === undefined ? undefined : { graph },
          today: new Date().toISOString().slice(0, 10),
        };
  return {
    snapshot: await readSnapshotPlaces(snapshot, context),
    catalogs: parseSnapshotCatalogs(catalog.filter((value) => !isVersioned(value))),
    upgrade,
  };
}

function findFirstReference(cluster: ClusterViewRequest | undefined): string | undefined {
  const [first] = cluster?.catalogs.values() ?? [];
  return first !== null && first !== undefined && 'references' in first ? first.references[0] : undefined;
}
