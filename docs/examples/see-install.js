// Shows the objects that OLM v1 applies to install an operator, and its cluster-wide permissions.
//
//     node docs/examples/see-install.js BUNDLE NAMESPACE
import { openSession, readBundlePermissions, renderBundle } from 'opmate';

const [bundle, installNamespace] = process.argv.slice(2);
const session = await openSession();
try {
  const { objects, findings } = await renderBundle(bundle, session, { installNamespace });
  for (const { problem } of findings) console.log(`not installable: ${problem}`);
  const kinds = new Map();
  for (const { kind } of objects) kinds.set(kind, (kinds.get(kind) ?? 0) + 1);
  for (const [kind, count] of kinds) console.log(`${kind}: ${count}`);
  const { rights } = await readBundlePermissions(bundle, session, { installNamespace });
  const clusterWide = rights.filter(({ namespace }) => namespace === '');
  console.log(`${rights.length} permissions, ${clusterWide.length} cluster-wide`);
} finally {
  await session.close();
}
