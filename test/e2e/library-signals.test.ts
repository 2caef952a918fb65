import { expect, it, onTestFinished } from 'vitest';
import { openSession, serveCatalog, viewCatalog } from 'opmate';
import { directoryWith } from '../support/temporary.js';
import { widgetCatalog } from './catalogs.js';

/** Opens a session of the built package, which alone has the page. */
async function openSignalled() {
  const stop = new AbortController();
  const session = await openSession({ signal: stop.signal });
  onTestFinished(() => session.close());
  return { stop, session, catalog: await directoryWith({ 'all.json': widgetCatalog }) };
}

it('closes the page of a catalog when the signal fires', async () => {
  const { stop, session, catalog } = await openSignalled();
  const { url, close } = await viewCatalog(catalog, session);
  expect((await fetch(url)).status).toBe(200);
  stop.abort();
  await close();
  await expect(fetch(url)).rejects.toThrow('fetch failed');
});

it('closes the page and the API of a served catalog when the signal fires', async () => {
  const { stop, session, catalog } = await openSignalled();
  const served = await serveCatalog(catalog, session, { http: { port: 0 }, page: { port: 0 } });
  const urls = [`${served.url}/api/v1/metas`, served.pageUrl ?? ''];
  for (const url of urls) expect((await fetch(url)).status).toBe(200);
  stop.abort();
  await served.close();
  for (const url of urls) await expect(fetch(url)).rejects.toThrow('fetch failed');
});
