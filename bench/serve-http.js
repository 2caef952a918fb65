// The HTTP catalog API: storing, starting again, a whole catalog with curl, and small answers with a client of our own.
import { spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { rm } from 'node:fs/promises';
import path from 'node:path';
import { fileURLToPath } from 'node:url';
import { catalogOf } from './support/catalog.js';
import { createChecks, inDirectory } from './support/frame.js';
import { measure, median, reference } from './support/measure.js';

export const summary =
  'storing and serving a JSON catalog of 350 MB over HTTP, beside reading it and a bare node:http server';

const server = fileURLToPath(new URL('./support/catalog-server.js', import.meta.url));
const client = fileURLToPath(new URL('./support/http-client.js', import.meta.url));
const rounds = 3;

export async function run() {
  const catalog = await catalogOf(350, 'json');
  return await inDirectory((directory) => runIn(catalog, path.join(directory, 'cache')));
}

async function runIn(catalog, cache) {
  const { check, passed } = createChecks();
  const cold = [];
  const baseline = [];
  for (let i = 0; i < rounds; i++) {
    await rm(cache, { recursive: true, force: true });
    baseline.push((await measure(reference, [catalog])).seconds);
    cold.push(await startAndStop(catalog, cache));
  }
  const parse = median(baseline);
  check('store', median(cold.map(({ seconds }) => seconds)), 's', {
    atMost: 3,
    note: `, reading and JSON.parse alone ${parse.toFixed(2)} s, ratio ${(median(cold.map(({ seconds }) => seconds)) / parse).toFixed(2)}`,
  });
  check('store, peak', Math.max(...cold.map(({ peak }) => peak)), 'MB', { atMost: 250 });
  const warm = [];
  for (let i = 0; i < rounds; i++) warm.push(await startAndStop(catalog, cache));
  check('start again', median(warm.map(({ seconds }) => seconds)), 's', { atMost: 0.5 });

  const running = await start([catalog, cache]);
  const bare = await start(['bare']);
  try {
    const url = `http://127.0.0.1:${running.port}/catalogs/big/api/v1`;
    const speeds = [];
    for (let i = 0; i <= rounds; i++) speeds.push(await download(`${url}/all`));
    check('all, curl', median(speeds.slice(1)), 'GB/s', { atLeast: 1 });
    const packages = running.packages.join(',');
    for (const clients of [1, 8]) {
      const rates = [];
      const bareRates = [];
      for (let i = 0; i < rounds; i++) {
        bareRates.push(await load(`http://127.0.0.1:${bare.port}/`, clients, packages));
        rates.push(await load(`${url}/metas?schema=olm.package&name=`, clients, packages));
      }
      const rate = median(rates.map((one) => one.rate));
      const share = rate / median(bareRates.map((one) => one.rate));
      check(`metas, ${clients} keep-alive connections of one node:http client process`, rate, 'requests/s', {
        ...(clients === 8 ? { atLeast: 3000 } : { atLeast: 0 }),
        note: `, ${(100 * share).toFixed(0)} % of a bare node:http server's with answers of 1 KB`,
      });
    }
    check('steady', running.rss(), 'MB', { atMost: 250 });
  } finally {
    await Promise.all([running.stop(), bare.stop()]);
  }
  return passed();
}

async function startAndStop(catalog, cache) {
  const running = await start([catalog, cache]);
  await running.stop();
  return running;
}

/** The server as a process of its own; it prints a line of JSON once it is ready. */
async function start(args) {
  const child = spawn(process.execPath, [server, ...args], { stdio: ['ignore', 'pipe', 'inherit'] });
  let printed = '';
  for await (const chunk of child.stdout.iterator({ destroyOnReturn: false })) {
    printed += chunk;
    if (printed.includes('\n')) break;
  }
  const ready = JSON.parse(printed);
  return {
    ...ready,
    rss: () => Number(/VmRSS:\s*(\d+)/.exec(readFileSync(`/proc/${child.pid}/status`, 'utf8'))?.[1]) / 1024,
    stop: async () => {
      child.kill('SIGTERM');
      if (child.exitCode === null) await once(child, 'exit');
    },
  };
}

async function download(url) {
  const args = ['-s', '-o', '/dev/null', '-w', '%{speed_download}', url];
  const { stdout } = spawnSync('curl', args);
  return Number(stdout) / 1e9;
}

async function load(url, clients, names) {
  const child = spawn(process.execPath, [client, url, String(clients), names], {
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  let printed = '';
  for await (const chunk of child.stdout) printed += chunk;
  return JSON.parse(printed);
}
