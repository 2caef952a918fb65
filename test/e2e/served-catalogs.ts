/** Catalogs served over the HTTP API in this process, on a real socket. */
import { type IncomingHttpHeaders, type OutgoingHttpHeaders, type Server, request } from 'node:http';
import { type AddressInfo, connect } from 'node:net';
import { buffer } from 'node:stream/consumers';
import { onTestFinished } from 'vitest';
import { DirectoryCatalog } from '../../src/catalog/catalog.js';
import type { Logger } from '../../src/core/log.js';
import {
  type CatalogSet,
  type ServedCatalog,
  createCatalogSet,
} from '../../src/serve/catalogs/catalog-set.js';
import type { StoreOptions, StoredContent } from '../../src/serve/catalogs/stored-content.js';
import { storeContent } from '../../src/serve/catalogs/content-store.js';
import { type CatalogServerOptions, createCatalogServers } from '../../src/serve/http/catalog-server.js';
import { closeHttpServer } from '../../src/serve/server/http-server.js';
import { directoryWith } from '../support/temporary.js';

/** When everything is stored, unless a test says otherwise. */
export const storedAt = new Date('2026-03-04T05:06:07.800Z');
export const lastModified = 'Wed, 04 Mar 2026 05:06:07 GMT';

export async function contentOf(
  files: Record<string, string>,
  options: Partial<StoreOptions> = {},
): Promise<StoredContent> {
  const catalog = new DirectoryCatalog(await directoryWith(files));
  const content = await storeContent(catalog, { now: () => storedAt, ...options });
  // It is closed when its last reader is done, which a server that is closed after this may hold: not waited for.
  onTestFinished(() => void content.close());
  return content;
}

export interface Served {
  /** `http://127.0.0.1:PORT` */
  url: string;
  port: number;
  server: Server;
  set: CatalogSet;
  logged: string[];
  put(
    name: string,
    files: Record<string, string> | StoredContent,
    options?: Partial<ServedCatalog>,
  ): Promise<StoredContent>;
  get(path: string, headers?: OutgoingHttpHeaders, method?: string): Promise<Answer>;
}

export interface Answer {
  status: number;
  headers: IncomingHttpHeaders;
  body: Buffer;
  text: string;
}

/** Serves catalogs, given by the files of each; closed when the running test is done. */
export async function serve(
  catalogs: Record<string, Record<string, string>>,
  options: Partial<CatalogServerOptions> = {},
): Promise<Served> {
  const set = createCatalogSet();
  const logged: string[] = [];
  const logger: Logger = {
    log: (level, message, fields) => void logged.push(`${level}: ${message} ${JSON.stringify(fields)}`),
    progress: () => undefined,
  };
  const { api: server } = createCatalogServers({ catalogs: set, logger, ...options });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  onTestFinished(async () => {
    if (server.listening) await closeHttpServer(server, 0);
    await set.close();
  });
  const { port } = server.address() as AddressInfo;
  const url = `http://127.0.0.1:${port}`;
  const put: Served['put'] = async (name, files, more = {}) => {
    const content =
      typeof files['openReader'] === 'function'
        ? (files as StoredContent)
        : await contentOf(files as Record<string, string>);
    await set.put({ name, content, labels: {}, priority: 0, ...more });
    return content;
  };
  for (const [name, files] of Object.entries(catalogs)) await put(name, files);
  set.markReady();
  return {
    url,
    port,
    server,
    set,
    logged,
    put,
    get: (path, headers, method) => get(port, path, headers, method),
  };
}

/** One request; the path goes out as it is written. */
export function get(
  port: number,
  path: string,
  headers: OutgoingHttpHeaders = {},
  method = 'GET',
): Promise<Answer> {
  return new Promise((resolve, reject) => {
    const options = { host: '127.0.0.1', port, path, method, headers, agent: false };
    const sent = request(options, (response) => {
      buffer(response).then((body) => {
        const { statusCode = 0, headers: received } = response;
        resolve({ status: statusCode, headers: received, body, text: body.toString() });
      }, reject);
    });
    sent.on('error', reject);
    sent.end();
  });
}

/** Sends bytes as they are, and returns all that comes back until the server closes. */
export function exchangeRaw(port: number, text: string): Promise<string> {
  return new Promise((resolve, reject) => {
    const socket = connect(port, '127.0.0.1', () => socket.write(text));
    let received = '';
    socket.on('data', (chunk: Buffer) => (received += chunk.toString('latin1')));
    socket.on('close', () => resolve(received));
    socket.on('error', reject);
  });
}

/** Blobs of about this many bytes together, as one JSON file; the same for the same seed. */
export function largeCatalog(bytes: number, seed = 'a'): Record<string, string> {
  const blobBytes = 200_000;
  const blobs = Array.from({ length: Math.ceil(bytes / blobBytes) }, (_, i) => {
    const data = Buffer.alloc((blobBytes * 3) / 4, `${seed}${i}`).toString('base64');
    return `{"data":"${data}","name":"b${i}","package":"p${i % 7}","schema":"olm.bundle"}\n`;
  });
  return { 'catalog.json': blobs.join('') };
}
