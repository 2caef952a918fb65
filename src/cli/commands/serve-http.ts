import path from 'node:path';
import type { Catalog } from '../../catalog/catalog.js';
import { UsageError } from '../../core/errors.js';
import { HeldCatalogs } from '../../serve/catalogs/catalog-set.js';
import { storeContent } from '../../serve/catalogs/stored-content.js';
import { watchCertificateFiles } from '../../serve/grpc/certificate-files.js';
import { catalogNameFault } from '../../serve/http/catalog-names.js';
import {
  closeCatalogServer,
  createCatalogServer,
  replaceCertificate,
} from '../../serve/http/catalog-server.js';
import type { CommandContext } from '../context.js';
import { writeAll } from '../output.js';
import type { CommandSession } from '../session.js';
import { type ServeCatalogsOptions, addressOf, certificateOf, listen, urlOf } from './serve-catalogs.js';

export interface ServeHttpOptions extends ServeCatalogsOptions {
  /** What the catalog is called in URLs. */
  name?: string;
}

/**
 * Serves one catalog over HTTP until it is closed, and prints its URL. The name is that of the options, else made of
 * the reference. Throws OpmateError.
 */
export async function startHttp(
  context: CommandContext,
  catalog: Catalog,
  reference: string,
  options: ServeHttpOptions,
  session: CommandSession,
): Promise<{ close(): Promise<void> }> {
  const { tlsCert, tlsKey, storage } = options;
  const { logger } = session;
  const name = nameOf(options.name, reference);
  const address = addressOf(options.http);
  const files = tlsCert === undefined || tlsKey === undefined ? undefined : { cert: tlsCert, key: tlsKey };
  const certificate = await certificateOf(context, files, options.tlsSelfSigned === true, address.host);
  const held = new HeldCatalogs();
  const server = createCatalogServer({
    catalogs: held,
    externalUrl: options.externalUrl,
    certificate,
    logger,
  });
  const content = await storeContent(catalog, {
    directory: storage === undefined ? undefined : path.resolve(context.workingDirectory, storage),
    temporaryDirectory: session.temporaryDirectory,
    now: context.now,
    logger,
    signal: session.signal,
  });
  await held.put({ name, content, labels: {}, priority: 0 });
  held.markReady();
  let watcher: { stop(): void } | undefined;
  const close = async (): Promise<void> => {
    watcher?.stop();
    if (server.listening) await closeCatalogServer(server);
    await held.close();
  };
  try {
    await listen(server, address);
    if (files !== undefined && certificate !== undefined) {
      const pair = { cert: Buffer.from(certificate.cert), key: Buffer.from(certificate.key) };
      watcher = watchCertificateFiles(
        files,
        pair,
        ({ cert, key }) => replaceCertificate(server, { cert: cert.toString(), key: key.toString() }),
        logger,
      );
    }
    const url =
      options.externalUrl?.replace(/\/+$/, '') ?? urlOf(server, address.host, certificate !== undefined);
    await writeAll(context.stdout, `${url}/catalogs/${name}\n`);
    return { close };
  } catch (error) {
    await close();
    throw error;
  }
}

function nameOf(given: string | undefined, reference: string): string {
  if (given === undefined) {
    const base = path.basename(reference.replace(/@.*$/, '').replace(/:[^/:]*$/, ''));
    const name = base
      .replace(/\.(db|tar|json|ya?ml)$/, '')
      .toLowerCase()
      .replace(/[^a-z0-9]+/g, '-')
      .replace(/^-+|-+$/g, '');
    return name === '' ? 'catalog' : name.slice(0, 63).replace(/-+$/, '');
  }
  const fault = catalogNameFault(given);
  if (fault === undefined) return given;
  throw new UsageError(`--name ${given}: ${fault}`);
}
