// Builds the image of a bundle as a file, then pushes that file byte for byte.
//
//     node docs/examples/push-bundle.js BUNDLE ARCHIVE REGISTRY/NAME:TAG [--use-http]
import { buildBundle, formatDiagnostic, openSession, parseReference, pushBundle } from 'opmate';

const [directory, archive, target, ...flags] = process.argv.slice(2);
const session = await openSession({ registry: { useHttp: flags.includes('--use-http') } });
try {
  const saved = `oci-archive:${archive}:v1`;
  const { findings } = await buildBundle({ directory }, [{ to: parseReference(saved) }], session);
  for (const finding of findings) console.log(formatDiagnostic(finding));
  if (findings.length > 0) process.exitCode = 3;
  else console.log(`pushed ${(await pushBundle(saved, target, session)).name}`);
} finally {
  await session.close();
}
