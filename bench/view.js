// The page: how long it takes until the first view of a large catalog is there, in the browser of the system.
import { spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, mkdirSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { fileURLToPath } from 'node:url';
import { chromium } from 'playwright-core';
import { createChecks } from './support/frame.js';
import { median } from './support/measure.js';

export const summary =
  'the page of a catalog of 300 packages and 7,000 bundles, 350 MB: first view, graph, search, memory';

const command = fileURLToPath(new URL('../bin/opmate.cjs', import.meta.url));
const rounds = 5;

export async function run() {
  const browserFile = ['chromium', 'chromium-browser', 'google-chrome']
    .map((name) => spawnSync('which', [name], { encoding: 'utf8' }).stdout.trim())
    .find((file) => file !== '');
  if (browserFile === undefined) {
    console.log('  no Chromium here: nothing is measured');
    return true;
  }
  const { check, passed } = createChecks();
  const started = performance.now();
  const server = spawn(process.execPath, [command, 'view', largeCatalog()], {
    stdio: ['ignore', 'pipe', 'ignore'],
  });
  const browser = await chromium.launch({ executablePath: browserFile, args: ['--no-sandbox'] });
  try {
    const [line] = await once(server.stdout, 'data');
    const url = String(line).trim();
    console.log(`  ready after ${((performance.now() - started) / 1000).toFixed(2)} s`);
    const firsts = [];
    const graphs = [];
    const searches = [];
    for (let i = 0; i < rounds; i++) {
      // A context of its own keeps nothing of the round before.
      const context = await browser.newContext();
      const page = await context.newPage();
      let from = performance.now();
      await page.goto(url);
      await page.locator('.card').nth(299).waitFor({ state: 'attached' });
      firsts.push((performance.now() - from) / 1000);
      from = performance.now();
      await page.goto(`${url}#/package/operator-0${10 + i}`);
      await page.locator('.panel').waitFor();
      graphs.push((performance.now() - from) / 1000);
      from = performance.now();
      await page.locator('input[type=search]').fill(`v1.${i}.0`);
      await page.locator('.rows a').first().waitFor();
      searches.push((performance.now() - from) / 1000);
      await context.close();
    }
    check('first view, the very first', firsts[0], 's', { atMost: 1 });
    check('first view', median(firsts), 's', { atMost: 1 });
    // The first page opens while the catalog is being checked; the load of the machine cancels out.
    check('the very first / median', firsts[0] / median(firsts), '×', { atMost: 2 });
    check('graph and details', median(graphs), 's', { atMost: 1 });
    check('search through all bundles', median(searches), 's', { atMost: 1 });
    const peak =
      Number(/VmHWM:\s*(\d+)/.exec(readFileSync(`/proc/${server.pid}/status`, 'utf8'))?.[1]) / 1024;
    check('memory of the server, peak', peak, 'MB', { atMost: 250 });
  } finally {
    await browser.close();
    server.kill('SIGTERM');
    if (server.exitCode === null) await once(server, 'exit');
  }
  return passed();
}

/** A catalog of 300 packages and 7,080 bundles with their manifests, made once and kept. */
function largeCatalog() {
  const directory = path.join(tmpdir(), 'opmate-bench-view');
  if (existsSync(directory)) return directory;
  const staging = `${directory}.new`;
  rmSync(staging, { recursive: true, force: true });
  const description = 'A long description of what this operator does. '.repeat(787);
  for (let number = 0; number < 300; number++) {
    const name = `operator-${String(number).padStart(3, '0')}`;
    const versions = Array.from(
      { length: number < 290 ? 24 : 12 },
      (_, at) => `${1 + Math.floor(at / 10)}.${at % 10}.0`,
    );
    const entries = versions.map((version, at) => ({
      name: `${name}.v${version}`,
      ...(at > 0 && { replaces: `${name}.v${versions[at - 1]}` }),
    }));
    const circle =
      '<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 2 2"><circle cx="1" cy="1" r="1"/></svg>';
    const icon = { base64data: Buffer.from(circle).toString('base64'), mediatype: 'image/svg+xml' };
    const blobs = [
      { schema: 'olm.package', name, defaultChannel: 'stable', description: `Does **${number}**.`, icon },
      { schema: 'olm.channel', package: name, name: 'stable', entries },
      ...versions.map((version) => bundleOf(name, version, description)),
    ];
    mkdirSync(path.join(staging, name), { recursive: true });
    const text = blobs.map((blob) => `${JSON.stringify(blob, null, 2)}\n`).join('');
    writeFileSync(path.join(staging, name, 'catalog.json'), text);
  }
  renameSync(staging, directory);
  return directory;
}

function bundleOf(name, version, description) {
  const csv = {
    apiVersion: 'operators.coreos.com/v1alpha1',
    kind: 'ClusterServiceVersion',
    metadata: { name: `${name}.v${version}` },
    spec: { displayName: `The ${name}`, description, provider: { name: 'Example' } },
  };
  return {
    schema: 'olm.bundle',
    package: name,
    name: `${name}.v${version}`,
    image: `registry.test/${name}:v${version}`,
    properties: [
      { type: 'olm.package', value: { packageName: name, version } },
      {
        type: 'olm.bundle.object',
        value: { data: Buffer.from(JSON.stringify(csv)).toString('base64') },
      },
    ],
    relatedImages: [{ name: '', image: `registry.test/${name}:v${version}` }],
  };
}
