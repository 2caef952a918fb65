// Asks one server as often as it can over keep-alive connections: http-client.js URL CONNECTIONS NAMES. Each name is
// appended to the URL in turn. Prints requests a second and bytes an answer.
import { Agent, get } from 'node:http';
import { setTimeout } from 'node:timers';

const [url, connections, list] = process.argv.slice(2);
const names = list.split(',');
const agent = new Agent({ keepAlive: true, maxSockets: Number(connections) });
const measuredMs = 3000;
let asked = 0;
let answers = 0;
let bytes = 0;
let counting = false;
let done = false;

function ask() {
  return new Promise((resolve, reject) => {
    const name = url.endsWith('=') ? names[asked++ % names.length] : '';
    const sent = get(url + name, { agent }, (response) => {
      if (response.statusCode !== 200) reject(new Error(`status ${response.statusCode}`));
      response.on('data', (chunk) => (bytes += counting ? chunk.length : 0));
      response.on('end', () => {
        if (counting) answers++;
        resolve();
      });
    });
    sent.on('error', reject);
  });
}

async function askOn() {
  while (!done) await ask();
}

const running = Array.from({ length: Number(connections) }, askOn);
setTimeout(() => (counting = true), 500);
setTimeout(() => (done = true), 500 + measuredMs);
await Promise.all(running);
agent.destroy();
console.log(
  JSON.stringify({ rate: answers / (measuredMs / 1000), bytes: answers === 0 ? 0 : bytes / answers }),
);
