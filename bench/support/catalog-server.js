// Serves a catalog over the HTTP API until SIGTERM: catalog-server.js CATALOG CACHE. Or, as what that is held
// against, answers of 1 KB from memory: catalog-server.js bare.
import { createServer } from 'node:http';

const [catalog, cache] = process.argv.slice(2);
const started = performance.now();
if (catalog === 'bare') {
  const body = Buffer.alloc(1024, 'x');
  const headers = { 'Content-Type': 'application/jsonl', 'Content-Length': body.length };
  ready(createServer((_request, response) => response.writeHead(200, headers).end(body)));
} else {
  const { DirectoryCatalog } = await import('../../dist/catalog/catalog.js');
  const { storeContent } = await import('../../dist/serve/catalogs/content-store.js');
  const { createCatalogSet } = await import('../../dist/serve/catalogs/catalog-set.js');
  const { createCatalogServers } = await import('../../dist/serve/http/catalog-server.js');
  const content = await storeContent(new DirectoryCatalog(catalog), {
    directory: cache,
    key: catalog,
    now: () => new Date(),
  });
  const catalogs = createCatalogSet();
  await catalogs.put({ name: 'big', content, labels: {}, priority: 0 });
  catalogs.markReady();
  ready(createCatalogServers({ catalogs }).api, content.packages);
}

function ready(server, packages = []) {
  server.listen(0, '127.0.0.1', () => {
    console.log(
      JSON.stringify({
        port: server.address().port,
        packages,
        seconds: (performance.now() - started) / 1000,
        peak: process.resourceUsage().maxRSS / 1024,
      }),
    );
  });
  process.on('SIGTERM', () => process.exit(0));
}
