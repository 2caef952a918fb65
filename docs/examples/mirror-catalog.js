// Mirrors a catalog with its images, as oc adm catalog mirror does; with --dry-run writes mapping and manifests only.
//
//     node docs/examples/mirror-catalog.js CATALOG-IMAGE REGISTRY/PATH DIRECTORY [--use-http] [--dry-run]
import { mirrorCatalog, openSession } from 'opmate';

const [source, destination, manifests, ...flags] = process.argv.slice(2);
const session = await openSession({ registry: { useHttp: flags.includes('--use-http') } });
try {
  const manifestsOnly = flags.includes('--dry-run');
  const { report, directory } = await mirrorCatalog(source, destination, session, {
    manifests,
    manifestsOnly,
  });
  if (report !== undefined) console.log(`mirrored ${report.done.length} images`);
  console.log(`next: kubectl apply -f ${directory}`);
} finally {
  await session.close();
}
