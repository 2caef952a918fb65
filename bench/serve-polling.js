// Clusters that poll a published catalog: OPMATE_SCALE=10000 for the full form.
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { Agent, get } from 'node:http';
import path from 'node:path';
import { createChecks, inDirectory } from './support/frame.js';
import { opmate } from './support/measure.js';

export const summary =
  '1,000 clients (OPMATE_SCALE=10000: as many) poll a published catalog that does not change, as a ratio to a bare node:http server';

const clients = Number(process.env.OPMATE_SCALE ?? 1000);
const rounds = 3;
/** Connections at once: clusters poll at different times, and the server allows 1,000. */
const atOnce = 500;
const bare = `require('node:http').createServer((request, response) => response.writeHead(304, { etag: '"x"' }).end())
  .listen(0, '127.0.0.1', function () { console.log('http://127.0.0.1:' + this.address().port + '/catalogs/x'); });`;

/** Starts a server; its first line is the URL of a catalog. */
async function start(args) {
  const child = spawn(process.execPath, args, { stdio: ['ignore', 'pipe', 'ignore'] });
  const [line] = await once(child.stdout, 'data');
  return { child, url: `${String(line).trim().split('\n')[0]}/api/v1/all` };
}

/** Processor time of a process, in milliseconds. */
function processorTime({ pid }) {
  const fields = readFileSync(`/proc/${pid}/stat`, 'utf8').split(') ')[1].split(' ');
  return (Number(fields[11]) + Number(fields[12])) * 10;
}

function poll(url, agent, etag) {
  return new Promise((resolve, reject) => {
    const headers = etag === undefined ? {} : { 'If-None-Match': etag };
    get(url, { agent, headers }, (response) => {
      response.resume().once('end', () => resolve([response.statusCode, response.headers.etag]));
    }).once('error', reject);
  });
}

/** Polls with all clients, each over a new connection; returns milliseconds of processor time per request. */
async function measurePolls({ child, url }) {
  const agent = new Agent({ keepAlive: false, maxSockets: atOnce });
  try {
    const [, etag] = await poll(url, agent);
    const round = () => Promise.all(Array.from({ length: clients }, () => poll(url, agent, etag)));
    await round();
    const before = processorTime(child);
    const start = performance.now();
    let failed = 0;
    for (let i = 0; i < rounds; i++) failed += (await round()).filter(([status]) => status !== 304).length;
    const seconds = (performance.now() - start) / 1000;
    const perRequest = (processorTime(child) - before) / (rounds * clients);
    const peak = Number(/VmHWM:\s*(\d+)/.exec(readFileSync(`/proc/${child.pid}/status`, 'utf8'))?.[1]) / 1024;
    return { perRequest, failed, peak, perSecond: (rounds * clients) / seconds };
  } finally {
    agent.destroy();
    child.kill();
    await once(child, 'exit');
  }
}

export async function run() {
  const { check, passed } = createChecks();
  await inDirectory(async (directory) => {
    const catalog = path.join(directory, 'catalog');
    mkdirSync(catalog);
    const blobs = [
      { schema: 'olm.package', name: 'demo', defaultChannel: 'stable' },
      { schema: 'olm.channel', package: 'demo', name: 'stable', entries: [{ name: 'demo.v1.0.0' }] },
      {
        ...{ schema: 'olm.bundle', package: 'demo', name: 'demo.v1.0.0', image: 'example.com/demo:v1' },
        properties: [{ type: 'olm.package', value: { packageName: 'demo', version: '1.0.0' } }],
      },
    ];
    writeFileSync(
      path.join(catalog, 'catalog.json'),
      blobs.map((blob) => `${JSON.stringify(blob)}\n`).join(''),
    );
    const serve = [opmate, 'serve', catalog, '--port', '0', '--http', '127.0.0.1:0'];
    const own = await measurePolls(await start(serve));
    const reference = await measurePolls(await start(['-e', bare]));
    console.log(
      `  ${own.perSecond.toFixed(0)} requests per second, bare server ${reference.perSecond.toFixed(0)}`,
    );
    check('responses other than 304', own.failed, '', { atMost: 0 });
    check('processor time per poll / bare server', own.perRequest / reference.perRequest, '×', { atMost: 3 });
    check('memory, peak', own.peak, 'MB', { atMost: 200 });
  });
  return passed();
}
