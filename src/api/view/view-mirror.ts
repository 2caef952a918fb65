import { closeOnAbort } from '../../core/concurrency.js';
import { Workspace } from '../../mirror/image-set/workspace.js';
import type { Session } from '../../source/session.js';
import { parseDirectoryUrl } from '../mirror/destination.js';
import { readMirrorOverview } from './mirror-overview.js';
import { type ServedPage, startPage } from './page.js';
import type { ViewCatalogOptions } from './view-catalog.js';

/** Options of `viewMirror`. */
export type ViewMirrorOptions = Pick<ViewCatalogOptions, 'host' | 'port'>;

/**
 * Serves the page of a mirror workspace, a directory or `file://DIRECTORY`, until it is closed or the signal of the session
 * fires: state of the last run, next commands, runs and generations. Each request reads the workspace again. Throws
 * OpmateError for a missing or damaged workspace, and IO for an address that is in use.
 */
export async function viewMirror(
  name: string,
  session: Session,
  { host = '127.0.0.1', port = 0 }: ViewMirrorOptions = {},
): Promise<ServedPage> {
  const { workingDirectory } = session;
  const workspace = new Workspace(workingDirectory, parseDirectoryUrl(name, workingDirectory) ?? name);
  const readMirror = () => readMirrorOverview(workspace, name);
  await readMirror();
  const page = await startPage(undefined, { host, port }, 'options.port', session, { readMirror });
  return { url: page.url, close: closeOnAbort(session.signal, () => page.close()) };
}
