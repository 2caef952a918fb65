// Renders bundle directories into a catalog, validates it and lists its content.
//
//     node docs/examples/render-and-validate.js fixtures/bundles/skupper-operator
//
// The directory contains one bundle per folder, named by version.
import { mkdir, mkdtemp, readdir, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { listCatalog, loadCatalog, openSession, render, validate } from 'opmate';

const bundles = path.resolve(process.argv[2] ?? 'fixtures/bundles/skupper-operator');
const entries = await readdir(bundles, { withFileTypes: true });
// Operator repositories contain files next to the versions, such as ci.yaml.
const versions = entries.flatMap((entry) => (entry.isDirectory() ? [entry.name] : [])).sort();
const work = await mkdtemp(path.join(tmpdir(), 'opmate-example-'));

// Aborting the signal ends the current call and leaves nothing behind.
const cancel = new AbortController();
process.once('SIGINT', () => cancel.abort());

// Registry connections are opened when the first image is read.
const session = await openSession({ signal: cancel.signal });

try {
  // Rendering streams blobs, with the same bytes as `opm render`.
  let rendered = '';
  const options = { migrateLevel: 'all', imageTemplate: 'quay.io/example/{{.Package}}:v{{.Version}}' };
  const references = versions.map((version) => path.join(bundles, version));
  for await (const piece of render(references, session, options)) rendered += piece;

  // A catalog also needs a package and a channel.
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

  // Returns every problem. Throws OpmateError only for an unreadable catalog.
  const { passed, problems } = await validate(catalog, session);
  console.log(passed ? 'the catalog is valid' : problems.map(({ message }) => message).join('\n'));

  for (const row of await listCatalog(catalog, 'bundles', session)) {
    console.log(`${row.package} ${row.channel} ${row.bundle} replaces ${row.replaces || 'nothing'}`);
  }

  // Blobs are read from disk on demand.
  const loaded = await loadCatalog(catalog, session);
  for await (const meta of loaded.metas()) console.log(`${meta.schema} ${meta.name}`);
  await loaded.close();
} finally {
  await session.close();
  await rm(work, { recursive: true, force: true });
}
