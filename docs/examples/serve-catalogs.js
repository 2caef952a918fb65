// Serves the catalogs of the ClusterCatalog manifests in a directory, waits until all are served, and lists their packages.
//
//     node docs/examples/serve-catalogs.js MANIFESTS [--use-http]
import { listServedPackages, openSession, serveCatalogs, waitForCatalogs } from 'opmate';

const [manifests = 'manifests', ...flags] = process.argv.slice(2);
const session = await openSession({ registry: { useHttp: flags.includes('--use-http') } });
try {
  const served = await serveCatalogs(manifests, session, { http: { port: 0 } });
  try {
    await waitForCatalogs(() => served, session, { timeoutMs: 30_000 });
    for (const { catalog, name } of await listServedPackages(served, session)) {
      console.log(`${catalog}/${name}`);
    }
  } finally {
    await served.close();
  }
} finally {
  await session.close();
}
