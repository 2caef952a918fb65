// 1,000 catalogs with 10,000 packages in one server: start, memory, start again, and a swap under 2,000 clients.
import { mkdir } from 'node:fs/promises';
import path from 'node:path';
import { fetchText, startCatalogs, writeCatalog, writeManifest } from './support/catalogs-process.js';
import { checkReaders, createChecks, inDirectory, startReaders, until } from './support/frame.js';

export const summary =
  '1,000 catalogs with 10,000 packages in one serve --catalogs, and a swap under 2,000 clients: no failed or torn response';

const [catalogs, packages, clients] = [1000, 10, 2000];
/** Megabytes over those of a server of one catalog; each catalog has an index and an open file. */
const memoryPerCatalog = { atMost: 0.25 };

export function run() {
  return inDirectory(async (root) => {
    const { check, passed } = createChecks();
    const [manifests, single] = [path.join(root, 'manifests'), path.join(root, 'single')];
    for (const directory of [manifests, single]) await mkdir(directory);
    const directoryOf = (i) => path.join(root, 'catalogs', String(i));
    for (let i = 0; i < catalogs; i++) {
      await writeCatalog(directoryOf(i), packages, `1.0.${i}`);
      await writeManifest(manifests, `catalog-${i}`, directoryOf(i));
    }
    await writeManifest(single, 'catalog-0', directoryOf(0));

    const one = await startCatalogs(single, path.join(root, 'single-storage'));
    const base = one.memory();
    await one.stop();

    const storage = path.join(root, 'storage');
    const first = await startCatalogs(manifests, storage);
    console.log(`  first start: ready after ${first.ready.toFixed(1)} s`);
    check('memory per catalog', (first.peak() - base) / catalogs, 'MB', memoryPerCatalog);
    const { text } = await fetchText(`${first.url}/catalogs`);
    check('catalogs', JSON.parse(text).catalogs.length, '', { atLeast: catalogs });
    await first.stop();

    const again = await startCatalogs(manifests, storage, ['--max-connections', String(clients + 100)]);
    try {
      console.log(
        `  second start: listening after ${again.listening.toFixed(2)} s, all served after ${again.ready.toFixed(2)} s`,
      );
      check('memory per catalog after a restart', (again.peak() - base) / catalogs, 'MB', memoryPerCatalog);
      await swapUnderLoad(again, check, {
        swap: async () => {
          await writeCatalog(path.join(root, 'next'), packages, '2.0.0');
          await writeManifest(manifests, 'catalog-7', path.join(root, 'next'));
        },
        before: '1.0.7',
        after: '2.0.0',
      });
    } finally {
      await again.stop();
    }
    return passed();
  });
}

/** Every client reads a catalog again and again, while it is replaced by another state. */
async function swapUnderLoad(server, check, { swap, before, after }) {
  const start = performance.now();
  const readers = startReaders([`${server.url}/catalogs/catalog-7/api/v1/all`], { clients });
  const responsesOf = (version) => readers.versions.get(version) ?? 0;
  await until(() => responsesOf(before) > clients);
  await swap();
  await until(() => responsesOf(after) > 2 * clients);
  await readers.stop();
  const seconds = (performance.now() - start) / 1000;
  console.log(
    `  ${clients} clients: ${readers.responses} responses of 45 KB in ${seconds.toFixed(1)} s, ${responsesOf(before)} ` +
      `of the old state, ${responsesOf(after)} of the new; then ${server.memory().toFixed(0)} MB, ` +
      `at most ${server.peak().toFixed(0)} MB`,
  );
  checkReaders(readers, check);
}
