// Carries an image set over an air gap: writes an archive from a plan, and mirrors it to a registry without access to the sources.
//
//     node docs/examples/carry-image-set.js imageset.yaml ARCHIVE docker://REGISTRY/PATH [--use-http]
import { archiveImageSet, mirrorArchives, openSession, planMirror } from 'opmate';

const [configFile, archive, destination, ...flags] = process.argv.slice(2);
const session = await openSession({ registry: { useHttp: flags.includes('--use-http') } });
try {
  // On this side: plan, and write exactly the planned content.
  const { bytes, lock } = await planMirror(configFile, `file://${archive}`, session);
  console.log(`${bytes.images} images, ${bytes.bytes - bytes.presentBytes} bytes to write`);
  const { index } = await archiveImageSet(configFile, archive, session, { lock });
  console.log(`archive ${index.id}`);
  // On the other side: mirror the archive and write cluster manifests. Carry the ID separately from the archive.
  const { report } = await mirrorArchives([archive], destination, session, {
    proof: { id: index.id },
    workspace: archive,
  });
  console.log(`mirrored ${report.done.length} images`);
  console.log(`next: kubectl apply -f ${archive}/working-dir/cluster-resources`);
} finally {
  await session.close();
}
