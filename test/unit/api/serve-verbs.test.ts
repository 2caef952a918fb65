import { connect } from 'node:net';
import { access, readdir } from 'node:fs/promises';
import path from 'node:path';
import { beforeEach, describe, expect, it, onTestFinished } from 'vitest';
import {
  type Session,
  buildServeCache,
  exportCatalogView,
  openSession,
  publishCatalog,
  serveCatalog,
  serveCatalogs,
  serveIndex,
  viewCatalog,
} from '../../../src/index.js';
import { widgetCatalog } from '../../e2e/catalogs.js';
import { indexFile } from '../../support/index-file.js';
import { directoryWith } from '../../support/temporary.js';

const host = '127.0.0.1';
let stop: AbortController;
let session: Session;
beforeEach(async () => {
  stop = new AbortController();
  session = await openSession({ signal: stop.signal });
  onTestFinished(() => session.close());
});

const catalog = (): Promise<string> => directoryWith({ 'all.json': widgetCatalog });
const portOf = (url: string | undefined): number => Number(new URL(url ?? '').port);

/** Reports whether something listens on a port of the loopback interface. */
function listens(port: number): Promise<boolean> {
  return new Promise((resolve) => {
    const socket = connect({ host, port });
    socket.once('connect', () => {
      socket.destroy();
      resolve(true);
    });
    socket.once('error', () => resolve(false));
  });
}

/** Aborts the session of a server that listens on ports, and expects that none of them is open afterwards. */
async function expectClosedByAbort(server: { close(): Promise<void> }, ports: number[]): Promise<void> {
  expect(await Promise.all(ports.map(listens))).toEqual(ports.map(() => true));
  stop.abort();
  // Closing again waits for what the signal began.
  await server.close();
  expect(await Promise.all(ports.map(listens))).toEqual(ports.map(() => false));
}

describe('aborting the signal of the session', () => {
  it('closes the gRPC and HTTP servers of a catalog', async () => {
    const served = await serveCatalog(await catalog(), session, {
      grpc: { host, port: 0 },
      http: { port: 0 },
    });
    await expectClosedByAbort(served, [served.grpcPort ?? 0, portOf(served.url)]);
  });

  it('closes the servers of several catalogs, and unlocks their storage', async () => {
    const storage = path.join(await directoryWith(), 'storage');
    const options = { http: { port: 0 }, grpc: { host, port: 0 }, storage };
    const manifests = await directoryWith();
    const served = await serveCatalogs(manifests, session, options);
    await expectClosedByAbort(served, [portOf(served.url), served.grpcPort ?? 0]);
    const next = await openSession();
    onTestFinished(() => next.close());
    const again = await serveCatalogs(manifests, next, options);
    await again.close();
  });

  it('closes the server of an index', async () => {
    const served = await serveIndex(await indexFile(), session, { grpc: { host, port: 0 } });
    await expectClosedByAbort(served, [served.grpcPort]);
  });

  it('ends a connection to a server that is idle', async () => {
    const served = await serveCatalog(await catalog(), session, { http: { port: 0 } });
    const socket = connect({ host, port: portOf(served.url) });
    const ended = new Promise<void>((resolve) => socket.once('close', () => resolve()));
    socket.resume();
    await new Promise<void>((resolve) => socket.once('connect', resolve));
    stop.abort();
    await served.close();
    await ended;
  });
});

describe('a signal that was aborted before', () => {
  beforeEach(() => stop.abort());
  const cancelled = { code: 'CANCELLED' };

  it('refuses to serve a catalog', async () => {
    const both = { grpc: { host, port: 0 }, http: { port: 0 } };
    await expect(serveCatalog(await catalog(), session, both)).rejects.toMatchObject(cancelled);
  });

  it('refuses to show or export the page of a catalog', async () => {
    const directory = path.join(await directoryWith(), 'page');
    await expect(viewCatalog(await catalog(), session)).rejects.toMatchObject(cancelled);
    await expect(exportCatalogView(await catalog(), directory, session)).rejects.toMatchObject(cancelled);
    await expect(access(directory)).rejects.toThrow('ENOENT');
  });

  it('leaves neither a cache nor published files', async () => {
    const directory = await directoryWith();
    const cache = path.join(directory, 'cache');
    const published = path.join(directory, 'published');
    await expect(buildServeCache(await catalog(), cache, session)).rejects.toMatchObject(cancelled);
    await expect(publishCatalog(await catalog(), published, session)).rejects.toMatchObject(cancelled);
    expect(await readdir(directory)).toEqual([]);
  });

  it.each([
    ['catalogs', async () => serveCatalogs(await directoryWith(), session, { http: { port: 0 } })],
    ['an index', async () => serveIndex(await indexFile(), session, { grpc: { host, port: 0 } })],
  ])('starts no server of %s that stays', async (_name, serve) => {
    const served = await serve().catch((error: unknown) => {
      expect(error).toMatchObject(cancelled);
      return undefined;
    });
    if (served === undefined) return;
    const port = 'url' in served ? portOf(served.url) : served.grpcPort;
    await served.close();
    expect(await listens(port)).toBe(false);
  });
});
