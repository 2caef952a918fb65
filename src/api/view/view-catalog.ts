import type { Session } from '../../source/session.js';
import { closeOnAbort, withOpen, keepOpen } from '../../core/concurrency.js';
import type { CatalogSource } from '../../source/source-types.js';
import { localStateReader } from '../../source/source.js';
import { CurrentView } from '../../view/current-view.js';
import { exportPage } from '../../view/export-page.js';
import { openCatalog } from '../open-catalog.js';
import { type ClusterViewRequest, readClusterOverview } from './cluster-overview.js';
import { createEditActions } from '../selection/edit-selection.js';
import { type ServedPage, openView, startPage, withSignal } from './page.js';

/** Options of `exportCatalogView`. */
export interface ExportViewOptions {
  /** Older catalog to show the differences from. */
  compare?: string | undefined;
  /** Rewords problems and hints, which name options and verbs of the library (default: as they are). */
  reword?: ((text: string) => string) | undefined;
}

/** Options of `viewCatalog`. */
export interface ViewCatalogOptions extends ExportViewOptions {
  /** Default `127.0.0.1`. */
  host?: string | undefined;
  /** Default 0, a free port. */
  port?: number | undefined;
  /**
   * File that selections in the page are written to; with `true` `imageset-config.yaml`, or `catalog-filter.yaml` for
   * a catalog that is not an image. By default the page writes nothing.
   */
  edit?: string | true | undefined;
  /** Cluster whose operators and updates the page shows. */
  cluster?: ClusterViewRequest | undefined;
}

/**
 * Serves the page of a catalog until it is closed or the signal of the session fires: packages, upgrade graphs, bundles,
 * problems. A local catalog is read again once its files change. Throws OpmateError for a catalog that cannot be read,
 * and IO for an address that is in use.
 */
export async function viewCatalog(
  reference: string,
  session: Session,
  { compare, host = '127.0.0.1', port = 0, edit, cluster, reword }: ViewCatalogOptions = {},
): Promise<ServedPage> {
  return keepOpen(createView(reference, { compare, reword }, session), async (current) => {
    await current.use(true, () => undefined);
    const editor = edit === undefined ? undefined : await createEditActions(reference, edit, session);
    const overview = cluster === undefined ? undefined : await readClusterOverview(cluster, session);
    const page = await startPage(current, { host, port }, 'options.port', session, {
      edit: editor,
      cluster: overview,
      reword,
    });
    return { url: page.url, close: closeOnAbort(session.signal, () => page.close()) };
  });
}

/**
 * Writes the page of a catalog with all its data to a new or empty directory, as files for any web server or to be
 * opened from the disk. The directory appears whole or not at all. Throws OpmateError.
 */
export async function exportCatalogView(
  reference: string,
  directory: string,
  session: Session,
  { compare, reword }: ExportViewOptions = {},
): Promise<void> {
  const references = compare === undefined ? [reference] : [reference, compare];
  await withOpen(openReferences(references, session, { checksFirst: true, reword }), ({ view }) =>
    exportPage(view, directory, { signal: session.signal }),
  );
}

async function createView(
  reference: string,
  { compare, reword }: ExportViewOptions,
  session: Session,
): Promise<CurrentView> {
  const references = compare === undefined ? [reference] : [reference, compare];
  const readers: (() => Promise<string>)[] = [];
  for (const name of references) {
    const reader = await localStateReader(name, session);
    if (reader !== undefined) readers.push(reader);
  }
  return new CurrentView({
    open: (stop) => openReferences(references, withSignal(session, stop), { reword }),
    readState: async () => (await Promise.all(readers.map((read) => read()))).join('\n'),
    now: session.now,
  });
}

/** Opens the view of a catalog, compared with the second one if there is one. */
async function openReferences(
  references: readonly string[],
  session: Session,
  options?: Parameters<typeof openView>[3],
) {
  const sources: CatalogSource[] = [];
  const close = async (): Promise<void> => {
    for (const source of sources) await source.close();
  };
  try {
    for (const reference of references) sources.push(await openCatalog(reference, session));
    const [shown, other] = sources.map(({ catalog }, index) => ({
      name: references[index] as string,
      catalog,
    }));
    return { view: await openView(shown as NonNullable<typeof shown>, other, session, options), close };
  } catch (error) {
    await close();
    throw error;
  }
}
