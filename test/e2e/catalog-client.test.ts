import { execFile } from 'node:child_process';
import path from 'node:path';
import { promisify } from 'node:util';
import { describe, expect, it } from 'vitest';
import { projectRoot, readGrpcPort, useSandbox } from '../support/command-line.js';
import { widgetCatalog } from './catalogs.js';

const sandbox = useSandbox();

describe('the client library', () => {
  it('queries a served catalog over both APIs as in the example', async () => {
    await sandbox.write({
      'catalog/a.json': widgetCatalog,
      'catalog/b.json': { schema: 'example.notes', package: 'widget', text: 'x' },
    });
    const args = ['serve', 'catalog', '-p', '0', '--host', '127.0.0.1', '--http', '127.0.0.1:0'];
    const server = sandbox.start([...args, '--name', 'operators']);
    const { origin: url } = new URL(await server.firstLine());
    const port = await readGrpcPort(server);
    const run = () => {
      const example = path.join(projectRoot, 'docs/examples/catalog-client.js');
      const env = sandbox.environment({ PATH: process.env['PATH'] }) as NodeJS.ProcessEnv;
      const cache = path.join(sandbox.work, 'cache');
      return promisify(execFile)(process.execPath, [example, url, `127.0.0.1:${port}`, cache], {
        cwd: projectRoot,
        env,
      });
    };
    const lines = (changed: string): string[] => [
      'catalog operators: 8 blobs',
      changed,
      ...[0, 1, 2, 3].map((minor) => `widget.v1.${minor}.0 is quay.io/example/widget-bundle:v1.${minor}.0`),
      'example.notes has package, schema, text',
      'widget: stable leads to widget.v1.3.0, 8 entries',
      'widget: stable leads to widget.v1.3.0, 8 entries',
      `not found: 127.0.0.1:${port}: package "no-such-package" not found`,
      '',
    ];
    const first = await run();
    expect(first.stderr).toBe('');
    expect(first.stdout.split('\n')).toEqual(lines('changed'));
    expect((await run()).stdout.split('\n')).toEqual(lines('not changed'));
    expect((await server.stop()).code).toBe(0);
    expect(await sandbox.leftovers()).toEqual([]);
  });
});
