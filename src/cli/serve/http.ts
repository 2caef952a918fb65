import path from 'node:path';
import type { Catalog } from '../../catalog/catalog.js';
import { UsageError } from '../../core/errors.js';
import { HeldCatalogs } from '../../serve/catalogs/catalog-set.js';
import { storeContent } from '../../serve/catalogs/content-store.js';
import { catalogNameFault, defaultCatalogName } from '../../serve/http/catalog-names.js';
import { type CatalogServerOptions, prepareCatalogServer } from './catalog-server.js';
import type { CommandContext } from '../context.js';
import { writeAll } from '../output.js';
import type { CommandSession } from '../session.js';

/**
 * Serves one catalog over HTTP until it is closed, and prints its URL. The name is that of the options, else made of
 * the reference. Throws OpmateError.
 */
export async function startHttp(
  context: CommandContext,
  catalog: Catalog,
  reference: string,
  options: CatalogServerOptions,
  session: CommandSession,
): Promise<{ close(): Promise<void> }> {
  const { storage } = options;
  const { logger } = session;
  const name = getName(options.name, reference);
  const held = new HeldCatalogs();
  const server = await prepareCatalogServer(context, options, held, logger);
  const content = await storeContent(catalog, {
    directory: storage === undefined ? undefined : path.resolve(context.workingDirectory, storage),
    temporaryDirectory: session.temporaryDirectory,
    now: context.now,
    logger,
    signal: session.signal,
  });
  await held.put({ name, content, labels: {}, priority: 0 });
  held.markReady();
  const close = async (): Promise<void> => {
    await server.close();
    await held.close();
  };
  try {
    const url = await server.listen();
    await writeAll(context.stdout, `${url}/catalogs/${name}\n`);
    return { close };
  } catch (error) {
    await close();
    throw error;
  }
}

function getName(name: string | undefined, reference: string): string {
  if (name === undefined) return defaultCatalogName(reference);
  const fault = catalogNameFault(name);
  if (fault === undefined) return name;
  throw new UsageError(`--name ${name}: ${fault}`);
}
