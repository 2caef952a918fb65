// Carries an image set over an air gap: writes an archive by a plan, and mirrors it to a registry without the sources.
//
//     node docs/examples/carry-image-set.js imageset.yaml ARCHIVE docker://REGISTRY/PATH [--use-http]
import { archiveImageSet, mirrorArchives, openSession, planMirror } from 'opmate';

const [configFile, archive, destination, ...flags] = process.argv.slice(2);
const session = await openSession({ registry: { useHttp: flags.includes('--use-http') } });
try {
  // Here: plan, and write exactly what was planned.
  const { bytes, lock } = await planMirror(configFile, `file://${archive}`, session);
  console.log(`${bytes.images} images, ${bytes.bytes - bytes.presentBytes} bytes to carry`);
  const { index } = await archiveImageSet(configFile, archive, session, { lock });
  console.log(`archive ${index.id}`);
  // There: mirror the archive, of which the id came another way, and write what the cluster needs.
  const { report } = await mirrorArchives([archive], destination, session, {
    proof: { id: index.id },
    workspace: archive,
  });
  console.log(`mirrored ${report.done.length} images`);
  console.log(`next: kubectl apply -f ${archive}/working-dir/cluster-resources`);
} finally {
  await session.close();
}
