// Debian's docker-registry, a registry that is not ours, as a process of its own.
import { spawn, spawnSync } from 'node:child_process';
import { closeSync, mkdirSync, openSync, readFileSync, writeFileSync } from 'node:fs';
import { get } from 'node:http';
import { createServer } from 'node:net';
import path from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';

/** Whether the binary is installed here. */
export const hasDockerRegistry = spawnSync('docker-registry', ['--version']).status === 0;

/**
 * A registry with its storage in `directory`: its URL and host, and how to stop it; with `accessLog` also how many
 * requests it has had since the last time.
 */
export async function serveDockerRegistry(directory, { accessLog = false } = {}) {
  const port = await freePort();
  const host = `127.0.0.1:${port}`;
  const config = {
    version: 0.1,
    log: { level: 'error', accesslog: { disabled: !accessLog } },
    storage: { filesystem: { rootdirectory: path.join(directory, 'data') }, delete: { enabled: true } },
    http: { addr: host },
  };
  mkdirSync(directory, { recursive: true });
  writeFileSync(path.join(directory, 'config.yml'), JSON.stringify(config));
  const logFile = path.join(directory, 'access.log');
  const log = openSync(logFile, 'w');
  const server = spawn('docker-registry', ['serve', path.join(directory, 'config.yml')], {
    stdio: ['ignore', log, 'ignore'],
  });
  closeSync(log);
  let taken = 0;
  const takeRequests = () => {
    const lines = readFileSync(logFile, 'latin1').match(/"[A-Z]+ \/v2\//g)?.length ?? 0;
    const fresh = lines - taken;
    taken = lines;
    return fresh;
  };
  const url = `http://${host}`;
  for (let i = 0; i < 200; i++) {
    const isReady = await answers(`${url}/v2/`);
    if (isReady) return { url, host, takeRequests, stop: () => stop(server) };
    if (server.exitCode !== null) break;
    await sleep(50);
  }
  await stop(server);
  throw new Error('docker-registry does not listen');
}

function answers(url) {
  return new Promise((resolve) => {
    get(url, (answer) => {
      answer.resume();
      resolve(answer.statusCode === 200);
    }).on('error', () => resolve(false));
  });
}

function freePort() {
  return new Promise((resolve, reject) => {
    const server = createServer();
    server.on('error', reject);
    server.listen(0, '127.0.0.1', () => {
      const { port } = server.address();
      server.close(() => resolve(port));
    });
  });
}

async function stop(server) {
  if (server.exitCode !== null) return;
  await new Promise((resolve) => {
    server.once('exit', resolve);
    server.kill('SIGKILL');
  });
}
