// Renders bundle directories into a catalog, validates it and lists its content.
//
//     node docs/examples/render-and-validate.js fixtures/bundles/skupper-operator
//
// The directory has one bundle per folder, named by version.
import { mkdir, mkdtemp, readdir, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { listBundles, loadCatalog, openSession, render, validate } from 'opmate';

const bundles = path.resolve(process.argv[2] ?? 'fixtures/bundles/skupper-operator');
const entries = await readdir(bundles, { withFileTypes: true });
// Repositories of operators have files next to the versions, such as ci.yaml.
const versions = entries.flatMap((entry) => (entry.isDirectory() ? [entry.name] : [])).sort();
const work = await mkdtemp(path.join(tmpdir(), 'opmate-example-'));

// Aborting the signal ends the call under way, and leaves nothing behind.
const cancel = new AbortController();
process.once('SIGINT', () => cancel.abort());

// Connections to registries are opened with the first image.
const session = await openSession({ signal: cancel.signal });

try {
  // Rendering streams: one blob at a time, in the bytes of `opm render`.
  let rendered = '';
  const options = { migrateLevel: 'all', imageTemplate: 'quay.io/example/{{.Package}}:v{{.Version}}' };
  const references = versions.map((version) => path.join(bundles, version));
  for await (const piece of render(references, session, options)) rendered += piece;

  // A catalog needs a package and a channel in addition to its bundles.
  const names = [...rendered.matchAll(/^ {4}"name": "(.+)",$/gm)].map(([, name]) => name);
  const packageName = /^ {4}"package": "(.+)",$/m.exec(rendered)[1];
  const channelEntries = names.map((name, i) => (i === 0 ? { name } : { name, replaces: names[i - 1] }));
  const catalog = path.join(work, 'catalog');
  await mkdir(catalog);
  await writeFile(
    path.join(catalog, 'catalog.json'),
    JSON.stringify({ schema: 'olm.package', name: packageName, defaultChannel: 'stable' }) +
      JSON.stringify({
        schema: 'olm.channel',
        package: packageName,
        name: 'stable',
        entries: channelEntries,
      }) +
      rendered,
  );

  // Every problem at once; an OpmateError is thrown only for a catalog that cannot be read.
  const { passed, problems } = await validate(catalog, session);
  console.log(passed ? 'the catalog is valid' : problems.map(({ message }) => message).join('\n'));

  // Facts are names, edges and versions; blobs stay on disk until they are read.
  const loaded = await loadCatalog(catalog, session);
  for (const row of listBundles(await loaded.facts())) {
    console.log(`${row.package} ${row.channel} ${row.bundle} replaces ${row.replaces || 'nothing'}`);
  }
  for await (const meta of loaded.metas()) console.log(`${meta.schema} ${meta.name}`);
  await loaded.close();
} finally {
  await session.close();
  await rm(work, { recursive: true, force: true });
}
