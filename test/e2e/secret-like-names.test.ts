import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { useSandbox } from '../support/command-line.js';
import { type DockerRegistry, hasDockerRegistry, startDockerRegistry } from '../support/docker-registry.js';

const sandbox = useSandbox();
const names = [
  'dex-auth',
  'my-secret',
  'token',
  'db-credentials',
  'reset-password',
  'cookie',
  'authorization',
];
let registry: DockerRegistry;

const catalog = (name: string): string =>
  [
    { schema: 'olm.package', name, defaultChannel: 'stable' },
    { schema: 'olm.channel', package: name, name: 'stable', entries: [{ name: `${name}.v1.0.0` }] },
    {
      ...{
        schema: 'olm.bundle',
        package: name,
        name: `${name}.v1.0.0`,
        image: `${registry.host}/ns/${name}:v1`,
      },
      properties: [{ type: 'olm.package', value: { packageName: name, version: '1.0.0' } }],
    },
  ]
    .map((blob) => JSON.stringify(blob))
    .join('\n');

beforeAll(async () => {
  if (hasDockerRegistry) registry = await startDockerRegistry();
});
afterAll(() => registry?.close());

describe.skipIf(!hasDockerRegistry).each(names)('a package and image named %s', (name) => {
  it('keeps its name in every message of building, pushing, copying and mirroring', async () => {
    const image = `${registry.host}/ns/${name}:v1`;
    await sandbox.write({
      [`${name}/catalog.json`]: catalog(name),
      [`${name}.txt`]: `${image}=${registry.host}/to/${name}:v1\n`,
    });
    const built = await sandbox.run(['catalog', 'build', name, '-i', 'scratch', '-t', image, '--use-http']);
    expect(built).toMatchObject({ code: 0 });
    expect(built.stderr).toContain(image);
    expect(built.stderr).toContain(`opmate serve ${image} --use-http`);
    const commands = [
      ['oci', 'copy', image, `${registry.host}/copied/${name}:v1`],
      ['oci', 'copy', `${registry.host}/ns/${name}:missing`, `${registry.host}/copied/${name}:v2`],
      ['mirror', '-f', `${name}.txt`],
      ['validate', name],
      ['catalog', 'doctor', name],
      ['render', `${registry.host}/ns/${name}:missing`],
    ];
    for (const format of ['text', 'json']) {
      for (const command of commands) {
        const { stdout, stderr } = await sandbox.run([
          ...command,
          '--use-http',
          '--debug',
          '--log-format',
          format,
        ]);
        expect(stdout + stderr).not.toContain('***');
      }
    }
  });
});

describe('credentials in what a server replies', () => {
  let server: Server;
  let host: string;
  beforeAll(async () => {
    const message =
      'denied: password=hunter2 {"identitytoken":"hunter2"} Authorization: Bearer hunter2hunter2';
    server = createServer((_, response) => {
      response.writeHead(403, { 'content-type': 'application/json' });
      response.end(JSON.stringify({ errors: [{ code: 'DENIED', message: `${message} of ns/dex-auth:v1` }] }));
    });
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
    host = `127.0.0.1:${(server.address() as AddressInfo).port}`;
  });
  afterAll(() => void server.close());

  it.each(['text', 'json'])(
    'never show in messages, as %s, where the name of the image does',
    async (format) => {
      const flags = ['--use-http', '--debug', '--log-format', format, '--retry-timeout', '0'];
      for (const command of [['render'], ['oci', 'inspect'], ['validate']]) {
        const { code, stdout, stderr } = await sandbox.run([...command, `${host}/ns/dex-auth:v1`, ...flags]);
        expect(code).toBe(1);
        expect(stdout + stderr).toContain(`${host}/ns/dex-auth:v1`);
        expect(stdout + stderr).not.toContain('hunter2');
      }
    },
  );
});

describe('credentials in arguments', () => {
  it.each([
    ['render', '--password=hunter2', 'x'],
    ['render', 'docker://jo:hunter2@quay.io/ns/x:v1'],
    ['render', 'git+https://jo:hunter2@git.example/x#main'],
    ['bundle', 'show', 'https://jo:hunter2@files.example/x.tar?token=hunter2'],
    ['catalogs', 'list', '--url', 'https://jo:hunter2@catalogs.example'],
    ['mirror', '-c', 'https://jo:hunter2@files.example/x.yaml', 'file://x'],
  ])('never show: %s %s %s', async (...args) => {
    for (const format of ['text', 'json']) {
      const { code, stdout, stderr } = await sandbox.run([...args, '--debug', '--log-format', format]);
      expect(code).not.toBe(0);
      expect(stdout + stderr).not.toContain('hunter2');
    }
  });
});
