// Keeps a sqlite index alive: adds bundles, lists the images of one, and removes the package.
//
//     node docs/examples/edit-index.js fixtures/bundles/skupper-operator
//
// The directory has one bundle per folder; images such as quay.io/example/bundle:v1 work as well.
import { mkdtemp, readdir, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { addBundles, editDatabase, openIndex, openSession, removePackages, stageBundles } from 'opmate';

const bundles = path.resolve(process.argv[2] ?? 'fixtures/bundles/skupper-operator');
const work = await mkdtemp(path.join(tmpdir(), 'opmate-example-'));
const file = path.join(work, 'index.db');
const session = await openSession();

try {
  // Repositories of operators have files next to the versions, such as ci.yaml.
  const entries = await readdir(bundles, { withFileTypes: true });
  const references = entries.flatMap((entry) =>
    entry.isDirectory() ? [path.join(bundles, entry.name)] : [],
  );
  // Bundles are read first; their manifests wait outside of memory.
  const stage = await stageBundles(references, session);
  try {
    // One transaction: if it throws, the database is unchanged.
    const { added } = await editDatabase(file, { create: true }, (database) =>
      addBundles(database, stage.bundles, { mode: 'semver' }),
    );
    console.log(`added ${added.join(', ')}`);
  } finally {
    await stage.close();
  }

  const index = await openIndex(file, session);
  for (const image of index.getImagesForBundle('skupper-operator.v1.9.0')) console.log(image);
  await index.close();

  await editDatabase(file, { vacuum: true }, (database) => removePackages(database, ['skupper-operator']));
} finally {
  await session.close();
  await rm(work, { recursive: true, force: true });
}
