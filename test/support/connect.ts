/** Connections for tests: nothing of this machine's configuration, and hardly any waiting. */
import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import type { LogLevel } from '../../src/core/log.js';
import {
  type Connection,
  type ConnectionOptions,
  createConnection,
  type Endpoint,
} from '../../src/oci/registry/connection.js';
import type { Transport } from '../../src/oci/transport/transport.js';

export interface Workbench {
  /** An empty home directory. */
  home: string;
  /** Everything that was logged, one line each. */
  logged: string[];
  /** Writes a file under the home directory, directories included; returns its path. */
  file(path: string, content: string | object): Promise<string>;
  connect(options?: Partial<ConnectionOptions>): Connection;
  /** The last endpoint of `HOST/ns/name`. */
  endpointOf(host: string, options?: Partial<ConnectionOptions>): Promise<Endpoint>;
  transportTo(host: string, options?: Partial<ConnectionOptions>): Promise<Transport>;
  /** Closes all connections and removes the home directory. */
  close(): Promise<void>;
}

export async function openWorkbench(): Promise<Workbench> {
  const home = await mkdtemp(join(tmpdir(), 'opmate-test-'));
  const connections: Connection[] = [];
  const logged: string[] = [];
  const logger = {
    log: (level: LogLevel, message: string) => void logged.push(`${level}: ${message}`),
    progress: () => undefined,
  };
  const bench: Workbench = {
    home,
    logged,
    async file(path, content) {
      const whole = join(home, path);
      await mkdir(dirname(whole), { recursive: true });
      await writeFile(whole, typeof content === 'string' ? content : JSON.stringify(content));
      return whole;
    },
    connect(options = {}) {
      const connection = createConnection({
        environment: {},
        homeDirectory: home,
        systemDirectory: join(home, 'etc'),
        retryBaseDelayMs: 1,
        maxAttempts: 5,
        logger,
        ...options,
      });
      connections.push(connection);
      return connection;
    },
    async endpointOf(host, options) {
      const endpoints = await bench.connect(options).endpoints(host, 'ns/name');
      return endpoints.at(-1) as Endpoint;
    },
    transportTo: async (host, options) => (await bench.endpointOf(host, options)).transport,
    async close() {
      for (const connection of connections) connection.close();
      await rm(home, { recursive: true });
    },
  };
  return bench;
}

/** The error that a promise rejects with. */
export async function failureOf(
  promise: Promise<unknown>,
): Promise<Error & { code?: string; hint?: string }> {
  try {
    await promise;
  } catch (error) {
    return error as Error & { code?: string; hint?: string };
  }
  throw new Error('expected a failure');
}

/** Waits until something is so. */
export async function until(isSo: () => boolean): Promise<void> {
  while (!isSo()) await new Promise((resolve) => setTimeout(resolve, 5));
}
