// Queries a served catalog over HTTP and gRPC.
//
//     opmate serve CATALOG --port 50051 --http 127.0.0.1:8080 --name operators
//     node docs/examples/catalog-client.js http://127.0.0.1:8080 127.0.0.1:50051
//
// With a directory as third argument, the second run fetches the catalog only if it has changed.
import { CatalogClient, OpmateError } from 'opmate';

const [server = 'http://127.0.0.1:8080', address = '127.0.0.1:50051', cacheDirectory] = process.argv.slice(2);

// List the catalogs of the server, and create a client for one.
const listing = CatalogClient.http(server);
const [listed] = await listing.catalogs();
listing.close();
console.log(`catalog ${listed.name}: ${listed.count} blobs`);

const http = CatalogClient.http(`${server}/catalogs/${listed.name}`, { cacheDirectory });
const grpc = CatalogClient.grpc(address);
try {
  const { changed } = await http.refresh();
  console.log(changed ? 'changed' : 'not changed');

  // Blobs are streamed, and typed by kind. Blobs of other schemas are unchanged.
  for await (const blob of http.all()) {
    if (blob.kind === 'bundle') console.log(`${blob.name} is ${blob.blob.image}`);
    if (blob.kind === 'other') console.log(`${blob.schema} has ${Object.keys(blob.value).join(', ')}`);
  }

  // Both APIs support the same queries.
  for (const client of [http, grpc]) {
    for (const name of await client.listPackages()) {
      const { defaultChannel, channels } = await client.getPackage(name);
      const head = channels.find((channel) => channel.name === defaultChannel)?.head;
      const entries = await client.listEntries(name);
      console.log(`${name}: ${defaultChannel} leads to ${head}, ${entries.length} entries`);
    }
  }

  await grpc.getPackage('no-such-package');
} catch (error) {
  if (!(error instanceof OpmateError) || error.code !== 'NOT_FOUND') throw error;
  console.log(`not found: ${error.message}`);
} finally {
  http.close();
  grpc.close();
}
