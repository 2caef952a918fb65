import { execFileSync, spawn } from 'node:child_process';
import { mkdir, symlink } from 'node:fs/promises';
import { type AddressInfo, type Server as NetServer, createServer } from 'node:net';
import path from 'node:path';
import { Server, ServerCredentials, status } from '@grpc/grpc-js';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { createAuthority } from '../support/certificates.js';
import { commandFile, projectRoot, useSandbox } from '../support/command-line.js';
import { widgetCatalog } from './catalogs.js';

const sandbox = useSandbox();
const asIs = (bytes: Buffer): Buffer => bytes;

/** A gRPC server with a health service that answers by the name of the service that it is asked for. */
async function startHealth(credentials = ServerCredentials.createInsecure()) {
  const answers: Record<string, string> = { '': '0801', bad: '0802', gone: '0803', odd: '0863', none: '' };
  const server = new Server();
  server.addService(
    {
      Check: {
        path: '/grpc.health.v1.Health/Check',
        requestStream: false,
        responseStream: false,
        requestSerialize: asIs,
        requestDeserialize: asIs,
        responseSerialize: asIs,
        responseDeserialize: asIs,
      },
    },
    {
      Check: (call: { request: Buffer }, done: (error: object | null, answer?: Buffer) => void): void => {
        const name = call.request.subarray(2).toString();
        if (name === 'slow') return;
        const answer = answers[name];
        if (answer === undefined) done({ code: status.NOT_FOUND, details: 'unknown service' });
        else done(null, Buffer.from(answer, 'hex'));
      },
    },
  );
  const port = await new Promise<number>((resolve, reject) => {
    server.bindAsync('127.0.0.1:0', credentials, (error, bound) => (error ? reject(error) : resolve(bound)));
  });
  return { port, stop: () => server.forceShutdown() };
}

let health: Awaited<ReturnType<typeof startHealth>>;
/** Accepts connections, and says nothing. */
let silent: NetServer;
beforeAll(async () => {
  health = await startHealth();
  silent = createServer();
  await new Promise<void>((resolve) => silent.listen(0, '127.0.0.1', resolve));
});
afterAll(() => {
  health.stop();
  silent.close();
});

const probe = (...args: string[]) => sandbox.run(['probe', ...args]);
const here = (): string[] => ['--addr', `127.0.0.1:${health.port}`];

describe('opmate probe', () => {
  it.each<[string[], number, string]>([
    [[], 0, 'status: SERVING\n'],
    [['--service', 'bad'], 4, 'status: NOT_SERVING\n'],
    [['--service', 'gone'], 4, 'status: SERVICE_UNKNOWN\n'],
    [['--service', 'odd'], 4, 'status: UNKNOWN\n'],
    [['--service', 'none'], 4, 'status: UNKNOWN\n'],
    [['--service', 'other'], 3, ''],
    [['--service', 'slow', '--rpc-timeout', '100ms'], 3, ''],
  ])('asks with %j', async (args, code, stdout) => {
    expect(await probe(...here(), ...args)).toMatchObject({ code, stdout });
  });

  it('reports a missing server', async () => {
    const { port } = silent.address() as AddressInfo;
    for (const [addr, problem] of [
      [`127.0.0.1:${port}`, 'no connection within 0.2 s'],
      ['127.0.0.1:1', 'connection refused (no connection within 0.2 s)'],
      ['no-such-host.invalid:1', 'host not found (no connection within 0.2 s)'],
    ] as const) {
      expect(await probe('--addr', addr, '--connect-timeout', '200ms')).toEqual({
        code: 2,
        stdout: '',
        stderr: `error: ${addr}: ${problem}\n`,
      });
    }
  });

  it.each<[string[], RegExp]>([
    [['--addr', 'x'], /--addr "x": not the address of a server\nhint: /],
    [['--addr', ':99999'], /not the address/],
    [['--unknown'], /unknown option "--unknown"/],
    [['--tls-ca-cert', 'ca.pem'], /--tls-ca-cert: needs --tls/],
    [['--tls', '--tls-ca-cert', 'nowhere.pem'], /nowhere\.pem: no such file/],
    [['--tls', '--tls-ca-cert', import.meta.filename], /probe\.test\.ts: not a certificate in PEM\n$/],
    [['--rpc-timeout', 'x'], /expected a duration/],
  ])('refuses %j', async (args, message) => {
    expect(await probe(...args)).toMatchObject({
      code: 1,
      stdout: '',
      stderr: expect.stringMatching(message),
    });
  });

  it('trusts the given CA', async () => {
    const authority = createAuthority();
    const certificate = authority.issue();
    const pair = { private_key: Buffer.from(certificate.key), cert_chain: Buffer.from(certificate.cert) };
    const secure = await startHealth(ServerCredentials.createSsl(null, [pair]));
    try {
      await sandbox.write({ 'ca.pem': authority.cert });
      const at = ['--addr', `127.0.0.1:${secure.port}`, '--connect-timeout', '5s'];
      expect(await probe(...at, '--tls', '--tls-ca-cert', 'ca.pem')).toMatchObject({ code: 0 });
      expect((await probe(...at.slice(0, 2), '--tls', '--connect-timeout', '300ms')).code).toBe(2);
    } finally {
      secure.stop();
    }
  });
});

/** What the Dockerfile in docs/container makes of it. */
describe('opmate under the names of its image', () => {
  let environment: Record<string, string | undefined>;
  beforeAll(async () => {
    const bin = path.join(sandbox.work, 'bin');
    await mkdir(bin);
    for (const name of ['opmate', 'opm']) await symlink(commandFile, path.join(bin, name));
    const wrapper = path.join(projectRoot, 'docs', 'container', 'grpc_health_probe');
    await symlink(wrapper, path.join(bin, 'grpc_health_probe'));
    environment = sandbox.environment({ PATH: `${bin}:${process.env['PATH']}` });
    await sandbox.write({ 'configs/catalog.json': widgetCatalog });
  });

  it('serves as opm, and is healthy for grpc_health_probe', async () => {
    const server = spawn(
      'opm',
      ['serve', 'configs', '-p', '0', '--host', '127.0.0.1', '--log-format', 'json'],
      {
        cwd: sandbox.work,
        env: environment,
        stdio: ['ignore', 'ignore', 'pipe'],
      },
    );
    try {
      const port = await new Promise<string>((resolve, reject) => {
        let said = '';
        server.stderr.on('data', (chunk: Buffer) => {
          said += String(chunk);
          const [, found] = /"port":(\d+)/.exec(said) ?? [];
          if (found !== undefined) resolve(found);
        });
        server.on('close', () => reject(new Error(said)));
      });
      const run = (...args: string[]): string =>
        execFileSync('grpc_health_probe', args, { env: environment, encoding: 'utf8', stdio: 'pipe' });
      expect(run(`-addr=127.0.0.1:${port}`)).toBe('status: SERVING\n');
      expect(run('-addr', `127.0.0.1:${port}`, '-rpc-timeout=5s', '--connect-timeout', '5s')).toContain(
        'SERVING',
      );
      expect(() => run('-addr=127.0.0.1:1', '-connect-timeout=100ms')).toThrow(
        expect.objectContaining({ status: 2 }),
      );
    } finally {
      server.kill();
    }
  });

  it('behaves the same as opm and as opmate', () => {
    const rendered = ['opm', 'opmate'].map((name) =>
      execFileSync(name, ['render', 'configs'], { cwd: sandbox.work, env: environment, encoding: 'utf8' }),
    );
    expect(rendered[0]).toBe(rendered[1]);
  });
});
