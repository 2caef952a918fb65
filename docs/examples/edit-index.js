// Maintains a sqlite index: builds an index image from bundles, lists the images of a bundle, and removes the package.
//
//     node docs/examples/edit-index.js fixtures/bundles/skupper-operator
//
// The directory contains one bundle per folder. Images such as quay.io/example/bundle:v1 also work.
import { mkdtemp, readdir, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { addToIndexImage, editIndexImage, openIndex, openSession, parseReference } from 'opmate';

const bundles = path.resolve(process.argv[2] ?? 'fixtures/bundles/skupper-operator');
const work = await mkdtemp(path.join(tmpdir(), 'opmate-example-'));
const session = await openSession();

/** Returns an image in a layout directory. A registry reference such as `registry.example.com/ns/index:v1` is pushed. */
const imageOf = (tag) => `oci:${path.join(work, 'images')}:${tag}`;

try {
  // Operator repositories contain files next to the versions, such as ci.yaml.
  const entries = await readdir(bundles, { withFileTypes: true });
  const references = entries.flatMap((entry) =>
    entry.isDirectory() ? [path.join(bundles, entry.name)] : [],
  );
  // Adds all bundles or none. An image that serves the index needs a base image with opm.
  const { result } = await addToIndexImage(references, session, {
    mode: 'semver',
    output: { to: parseReference(imageOf('v1')) },
    binaryImage: 'scratch',
  });
  console.log(`added ${[...result.added.values()].flat().join(', ')}`);

  const index = await openIndex(imageOf('v1'), session);
  for (const image of index.getImagesForBundle('skupper-operator.v1.9.0')) console.log(image);
  await index.close();

  // The old image is kept. If the change throws, nothing is written.
  const edited = { fromIndex: imageOf('v1'), output: { to: parseReference(imageOf('v2')) } };
  const change = { kind: 'remove', packages: ['skupper-operator'] };
  await editIndexImage(change, session, { ...edited, binaryImage: 'scratch' });
} finally {
  await session.close();
  await rm(work, { recursive: true, force: true });
}
