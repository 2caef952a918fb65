import path from 'node:path';
import { describe, expect, it } from 'vitest';
import { isExecutable, readGrpcPort, useSandbox } from '../support/command-line.js';
import { registryClient } from '../support/registry-client.js';
import { widgetCatalog } from './catalogs.js';

const sandbox = useSandbox();
const callsPerFlood = 1200;
const concurrency = 50;

/** Prints what is held after a collection, on a signal. */
const hook = `process.on('SIGUSR2', () => {
  require('node:v8').setFlagsFromString('--expose-gc');
  const collect = require('node:vm').runInNewContext('gc');
  collect();
  setImmediate(() => {
    collect();
    const { heapUsed, external } = process.memoryUsage();
    process.stderr.write('held=' + (heapUsed + external) + '\\n');
  });
});
`;

describe.skipIf(isExecutable)('opmate serve', () => {
  it('holds no more memory after further floods of calls than after the first', async () => {
    await sandbox.write({ 'catalog/catalog.json': widgetCatalog });
    await sandbox.write({ 'hook.cjs': hook });
    const env = { NODE_OPTIONS: `--require ${path.join(sandbox.work, 'hook.cjs')}` };
    const running = sandbox.start(['serve', 'catalog', '-p', '0'], { env });
    const port = await readGrpcPort(running);
    /** Bytes that are held after a collection. */
    const readHeld = async (): Promise<number> => {
      const before = running.stderr().length;
      running.child.kill('SIGUSR2');
      for (;;) {
        const [, held] = /held=(\d+)\n/.exec(running.stderr().slice(before)) ?? [];
        if (held !== undefined) return Number(held);
        await new Promise((resolve) => setTimeout(resolve, 10));
      }
    };
    const flood = async (): Promise<number> => {
      const client = registryClient(port);
      let left = callsPerFlood;
      const callAll = async (): Promise<void> => {
        while (left-- > 0) expect((await client.call('ListBundles')).length).toBeGreaterThan(0);
      };
      await Promise.all(Array.from({ length: concurrency }, callAll));
      client.close();
      return readHeld();
    };
    const first = await flood();
    let last = first;
    for (let i = 0; i < 4; i++) last = await flood();
    // A kilobyte held per call would be 4.8 MB.
    expect(last - first).toBeLessThan(1_000_000);
    expect((await running.stop()).code).toBe(0);
  });
});
