import type { Server } from 'node:http';
import { OpmateError } from '../../core/errors.js';
import type { Logger } from '../../core/log.js';
import type { CatalogSet } from '../catalogs/stored-content.js';

/** Certificate and key as PEM; replaced by `reload` of whoever watches the files. */
export interface ServerCertificate {
  cert: string;
  key: string;
}

export interface CatalogServerOptions {
  catalogs: CatalogSet;
  /** What URLs that are shown begin with, e.g. `https://catalogs.example`; that of the socket where left out. */
  externalUrl?: string | undefined;
  certificate?: ServerCertificate | undefined;
  logger?: Logger | undefined;
}

/** Makes the server of the HTTP catalog API; the caller listens. */
export function createCatalogServer(options: CatalogServerOptions): Server {
  throw new OpmateError('INTERNAL', 'not built yet', { cause: options });
}
