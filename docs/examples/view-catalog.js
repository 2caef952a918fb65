// Writes the page of a catalog as static files, or serves it until Ctrl+C.
//
//     node docs/examples/view-catalog.js CATALOG [DIRECTORY]
import { once } from 'node:events';
import { exportCatalogView, openSession, viewCatalog } from 'opmate';

const [catalog = 'catalog', directory] = process.argv.slice(2);
const cancel = new AbortController();
process.once('SIGINT', () => cancel.abort());
const session = await openSession({ signal: cancel.signal });
try {
  if (directory === undefined) {
    const page = await viewCatalog(catalog, session);
    console.log(page.url);
    if (!cancel.signal.aborted) await once(cancel.signal, 'abort');
    await page.close();
  } else {
    await exportCatalogView(catalog, directory, session);
    console.log(`open ${directory}/index.html`);
  }
} finally {
  await session.close();
}
