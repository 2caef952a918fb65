import { execFile } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { makeUpImages, serveMadeUp } from './support/made-up-registry.js';

export const summary =
  'processor time of 1,000 small reads of a registry: node-fetch and opmate, beside node:http alone';

const count = 1000;
const runs = 5;
/** What node-fetch does more than node:http, and what opmate does around it. */
const maxRatios = { 'node-fetch': 4, opmate: 6 };
const script = fileURLToPath(new URL('./support/read-manifests.js', import.meta.url));

export async function run() {
  const server = await serveMadeUp(makeUpImages(100));
  try {
    const clients = ['http', ...Object.keys(maxRatios)];
    const times = new Map(clients.map((client) => [client, Infinity]));
    for (let i = 0; i < runs; i++)
      for (const client of clients)
        times.set(client, Math.min(times.get(client), await measureReads(server.host, client)));
    const base = times.get('http');
    console.log(`  node:http alone: ${base.toFixed(3)} ms per response`);
    let isGood = true;
    for (const [client, maxRatio] of Object.entries(maxRatios)) {
      const ratio = times.get(client) / base;
      isGood &&= ratio <= maxRatio;
      console.log(
        `  ${client}: ${times.get(client).toFixed(3)} ms, ratio ${ratio.toFixed(2)} (limit ${maxRatio})${ratio <= maxRatio ? '' : '  EXCEEDED'}`,
      );
    }
    return isGood;
  } finally {
    server.stop();
  }
}

async function measureReads(host, client) {
  const { stdout } = await promisify(execFile)(process.execPath, [script, host, String(count), client]);
  return Number(stdout);
}
