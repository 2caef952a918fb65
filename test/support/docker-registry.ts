/** Debian's `docker-registry` (distribution 2.8), a registry that is not ours. */
import { type ChildProcess, spawn, spawnSync } from 'node:child_process';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { createServer, type AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

/** Whether the binary is installed here. */
export const hasDockerRegistry = spawnSync('docker-registry', ['--version']).status === 0;

export interface DockerRegistry {
  /** `127.0.0.1:PORT` */
  host: string;
  close(): Promise<void>;
}

/**
 * Starts one on a free port with empty storage, which allows deletion unless told. Throws when it does not listen
 * within ten seconds.
 */
export async function startDockerRegistry({ allowsDeletion = true } = {}): Promise<DockerRegistry> {
  const directory = await mkdtemp(join(tmpdir(), 'opmate-registry-'));
  const port = await freePort();
  const host = `127.0.0.1:${port}`;
  const config = {
    version: 0.1,
    log: { level: 'error' },
    storage: {
      filesystem: { rootdirectory: join(directory, 'data') },
      delete: { enabled: allowsDeletion },
    },
    http: { addr: host },
  };
  await writeFile(join(directory, 'config.yml'), JSON.stringify(config));
  const child = spawn('docker-registry', ['serve', join(directory, 'config.yml')], { stdio: 'ignore' });
  const registry: DockerRegistry = {
    host,
    async close() {
      await stop(child);
      await rm(directory, { recursive: true, force: true });
    },
  };
  for (let i = 0; i < 200; i++) {
    const isReady = await fetch(`http://${host}/v2/`).then(
      (answer) => answer.ok,
      () => false,
    );
    if (isReady) return registry;
    if (child.exitCode !== null) break;
    await new Promise((resolve) => setTimeout(resolve, 50));
  }
  await registry.close();
  throw new Error('docker-registry does not listen');
}

function freePort(): Promise<number> {
  return new Promise((resolve, reject) => {
    const server = createServer();
    server.on('error', reject);
    server.listen(0, '127.0.0.1', () => {
      const { port } = server.address() as AddressInfo;
      server.close(() => resolve(port));
    });
  });
}

async function stop(child: ChildProcess): Promise<void> {
  if (child.exitCode !== null) return;
  await new Promise<void>((resolve) => {
    child.once('exit', () => resolve());
    child.kill('SIGKILL');
  });
}
