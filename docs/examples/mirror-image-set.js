// Mirrors an image set to a registry: plans, copies missing images, and writes cluster manifests.
//
//     node docs/examples/mirror-image-set.js imageset.yaml docker://REGISTRY/PATH DIRECTORY [--use-http]
import { mkdir, writeFile } from 'node:fs/promises';
import path from 'node:path';
import { mirrorImageSet, openSession, planMirror } from 'opmate';

const [configFile, destination, directory, ...flags] = process.argv.slice(2);
const session = await openSession({ registry: { useHttp: flags.includes('--use-http') } });
try {
  const { bytes } = await planMirror(configFile, destination, session);
  console.log(`${bytes.images} images, ${bytes.blobs - bytes.presentBlobs} blobs to copy`);
  const { report, resources } = await mirrorImageSet(configFile, destination, session);
  console.log(`mirrored ${report.done.length} images`);
  await mkdir(directory, { recursive: true });
  for (const [name, text] of resources) await writeFile(path.join(directory, name), text);
  console.log(`next: kubectl apply -f ${directory}`);
} finally {
  await session.close();
}
