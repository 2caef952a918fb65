import type { LookupFunction } from 'node:net';
import { text } from 'node:stream/consumers';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import type { ConnectionOptions } from '../../../../src/oci/registry/connection.js';
import { addressKind } from '../../../../src/oci/transport/network-policy.js';
import { createAuthority, createSelfSigned } from '../../../support/certificates.js';
import { failureOf, openWorkbench, type Workbench } from '../../../support/connect.js';
import {
  type FaultRegistry,
  type FaultRegistryOptions,
  startFaultRegistry,
} from '../../../support/fault-registry.js';
import { startProxyServer } from '../../../support/proxy-server.js';

let bench: Workbench;
let registry: FaultRegistry;
let other: FaultRegistry;

async function start(options: FaultRegistryOptions = {}, otherOptions = options): Promise<void> {
  registry = await startFaultRegistry(options);
  other = await startFaultRegistry(otherOptions);
  other.on({ path: '/blob', respond: { body: 'blob' } });
}

beforeEach(async () => {
  bench = await openWorkbench();
});

afterEach(async () => {
  await Promise.all([bench.close(), registry?.close(), other?.close()]);
});

/** Reads a path of a registry, which is reached as `host`. */
async function ask(host: string, options: Partial<ConnectionOptions> = {}): Promise<string> {
  const endpoint = await bench.endpointOf(host, options);
  const scope = { repository: 'ns/name', actions: ['pull' as const] };
  const url = `${endpoint.baseUrl}/v2/a`;
  return text((await endpoint.transport.send({ method: 'GET', url, scope })).body);
}

function redirectTo(location: string): void {
  registry.on({ path: '/v2/a', respond: { status: 307, headers: { location } } });
}

/** Every name is at the addresses of its list, one after the other; the last one stays. */
function names(addresses: Record<string, string[][]>, asked: string[] = []): LookupFunction {
  const left = structuredClone(addresses);
  return (name, options, done) => {
    asked.push(name);
    const list = left[name] ?? [['127.0.0.1']];
    const found = (list.length > 1 ? list.shift() : list[0]) as string[];
    const entries = found.map((address) => ({ address, family: address.includes(':') ? 6 : 4 }));
    if (options.all === true) return done(null, entries);
    done(null, entries[0]?.address ?? '', entries[0]?.family);
  };
}

describe('oci/network-policy: kinds of addresses', () => {
  it.each([
    ['93.184.216.34', 'public'],
    ['172.32.0.1', 'public'],
    ['2606:4700::1', 'public'],
    ['127.0.0.53', 'loopback'],
    ['0.0.0.0', 'loopback'],
    ['::1', 'loopback'],
    ['::', 'loopback'],
    ['::ffff:127.0.0.1', 'loopback'],
    ['::ffff:7f00:1', 'loopback'],
    ['::127.0.0.1', 'loopback'],
    ['10.1.2.3', 'private'],
    ['172.31.255.255', 'private'],
    ['192.168.0.1', 'private'],
    ['100.64.0.1', 'private'],
    ['fd00:ec2::254', 'private'],
    ['64:ff9b::10.0.0.1', 'private'],
    ['64:ff9b:1::10.0.0.1', 'private'],
    ['64:ff9b:1:ffff::8.8.8.8', 'private'],
    ['64:ff9b:2::8.8.8.8', 'public'],
    ['2002:a00:1::', 'private'],
    ['64:ff9b::93.184.216.34', 'public'],
    ['169.254.169.254', 'link-local'],
    ['fe80::1%eth0', 'link-local'],
    ['[fe80::1]', 'link-local'],
    ['::ffff:a9fe:a9fe', 'link-local'],
    ['224.0.0.1', 'reserved'],
    ['255.255.255.255', 'reserved'],
    ['ff02::1', 'reserved'],
    ['no address', 'reserved'],
  ])('%s is %s', (address, kind) => {
    expect(addressKind(address)).toBe(kind);
  });
});

describe('oci/network-policy: where answers may lead', () => {
  const http = { useHttp: true };

  it.each([['10.1.2.3'], ['169.254.169.254'], ['::ffff:10.1.2.3'], ['fd00:ec2::254']])(
    'connects to no redirect whose name means %s',
    async (address) => {
      await start();
      redirectTo(`http://inside.test:${other.port}/blob`);
      const lookup = names({ 'inside.test': [[address]] });
      const failure = await failureOf(ask(registry.host, { ...http, lookup }));
      expect(failure).toMatchObject({
        code: 'UNSAFE',
        hint: 'allow the host with registry.allowedPrivateHosts inside.test',
      });
      expect(failure.message).toContain(
        `${registry.host}: redirect to inside.test:${other.port} refused: ${address} is a `,
      );
      expect(registry.requests).toHaveLength(1);
    },
  );

  it('connects to no redirect that names such an address itself', async () => {
    await start();
    redirectTo('http://169.254.169.254/latest/meta-data');
    const failure = await failureOf(ask(registry.host, http));
    expect(failure).toMatchObject({ code: 'UNSAFE' });
    expect(failure.message).toContain('redirect to 169.254.169.254 refused: it is a link-local address');
  });

  it('asks no token server whose name means such an address, and sends it no credentials', async () => {
    await start();
    const login = { username: 'jo', password: 'hunter2' };
    await bench.file('.docker/config.json', { auths: { [registry.host]: login } });
    registry.requireBearer({ realm: `http://auth.test:${other.port}/token` }, 't1');
    const lookup = names({ 'auth.test': [['192.168.1.1']] });
    const failure = await failureOf(ask(registry.host, { ...http, lookup }));
    expect(failure).toMatchObject({ code: 'UNSAFE' });
    expect(failure.message).toContain(
      `token server auth.test:${other.port} refused: 192.168.1.1 is a private`,
    );
    expect(other.requests).toEqual([]);
  });

  it('takes the address that it checked, so that a name cannot change its meaning in between', async () => {
    await start();
    redirectTo(`http://inside.test:${other.port}/blob`);
    const asked: string[] = [];
    const lookup = names({ 'inside.test': [['10.1.2.3', '127.0.0.1'], ['10.1.2.3']] }, asked);
    expect(await ask(registry.host, { ...http, lookup })).toBe('blob');
    expect(asked).toEqual(['inside.test']);
  });

  it('lets a registry at such an address lead to its like: an internal blob store and token server', async () => {
    await start();
    other.on({ path: '/token', respond: { body: '{"token":"t1"}' } });
    registry.requireBearer({ realm: `http://auth.test:${other.port}/token` }, 't1');
    redirectTo(`http://blobs.test:${other.port}/blob`);
    const lookup = names({});
    expect(await ask(`registry.test:${registry.port}`, { ...http, lookup })).toBe('blob');
  });

  it('leads from a public registry to a host inside only where that is allowed', async () => {
    await start();
    const proxy = await startProxyServer();
    const environment = { HTTP_PROXY: `http://${proxy.host}`, NO_PROXY: 'inside.test' };
    redirectTo(`http://inside.test:${other.port}/blob`);
    const host = `registry.test:${registry.port}`;
    const options = { ...http, environment, lookup: names({}) };
    const failure = await failureOf(ask(host, options));
    expect(failure.message).toContain('127.0.0.1 is a loopback address');
    expect(other.requests).toEqual([]);
    for (const allowed of ['inside.test', `inside.test:${other.port}`]) {
      expect(await ask(host, { ...options, allowedPrivateHosts: [allowed] })).toBe('blob');
    }
    const wrong = ask(host, { ...options, allowedPrivateHosts: ['inside.test:1', 'test'] });
    expect(await failureOf(wrong)).toMatchObject({ code: 'UNSAFE' });
    await proxy.close();
  });

  it('allows nothing more to what a public host in between leads to', async () => {
    await start();
    const proxy = await startProxyServer();
    const environment = { HTTP_PROXY: `http://${proxy.host}`, NO_PROXY: 'inside.test' };
    redirectTo(`http://cdn.test:${other.port}/onward`);
    const location = `http://inside.test:${other.port}/blob`;
    other.on({ path: '/onward', respond: { status: 307, headers: { location } } });
    const failure = await failureOf(ask(registry.host, { ...http, environment, lookup: names({}) }));
    expect(failure.message).toContain(`${registry.host}: redirect to inside.test:${other.port} refused`);
    expect(other.requests.map(({ path }) => path)).toEqual(['/onward']);
    await proxy.close();
  });
});

describe('oci/network-policy: whose certificates are verified', () => {
  const insecure = (...hosts: string[]): string =>
    hosts.map((host) => `[[registry]]\nlocation = "${host}"\ninsecure = true\n`).join('');

  it('verifies what an insecure registry redirects to, unless that is insecure itself', async () => {
    await start({ tls: createSelfSigned() });
    redirectTo(`${other.origin}/blob`);
    await bench.file('etc/containers/registries.conf', insecure(registry.host));
    const failure = await failureOf(ask(registry.host));
    expect(failure.message).toContain(`${other.host}: TLS: the certificate is self-signed`);
    expect(other.requests).toEqual([]);
    await bench.file('etc/containers/registries.conf', insecure(registry.host, `${other.host}/ns`));
    expect((await failureOf(ask(registry.host))).message).toContain('the certificate is self-signed');
    await bench.file('etc/containers/registries.conf', insecure(registry.host, other.host));
    expect(await ask(registry.host)).toBe('blob');
  });

  it('verifies the token server of an insecure registry', async () => {
    await start({ tls: createSelfSigned() });
    const login = { username: 'jo', password: 'hunter2' };
    await bench.file('.docker/config.json', { auths: { [registry.host]: login } });
    other.on({ path: '/token', respond: { body: '{"token":"t1"}' } });
    registry.requireBearer({ realm: `${other.origin}/token` }, 't1');
    await bench.file('etc/containers/registries.conf', insecure(registry.host));
    expect((await failureOf(ask(registry.host))).message).toContain('the certificate is self-signed');
    expect(other.requests).toEqual([]);
  });

  it.each<[string, Partial<ConnectionOptions>]>([
    ['--skip-tls-verify', { skipTlsVerify: true }],
    ['--insecure', { insecure: true }],
    ['a flag for one side, which both hosts are on', { insecure: () => true }],
  ])('verifies nothing with %s', async (_name, options) => {
    await start({ tls: createSelfSigned() });
    redirectTo(`${other.origin}/blob`);
    expect(await ask(registry.host, options)).toBe('blob');
  });

  it('verifies the other side with a flag for one side', async () => {
    await start({ tls: createSelfSigned() });
    redirectTo(`${other.origin}/blob`);
    const failure = await failureOf(ask(registry.host, { insecure: (host) => host === registry.host }));
    expect(failure.message).toContain('the certificate is self-signed');
  });

  it('shows a client certificate for all registries to no host that an answer leads to', async () => {
    const authority = createAuthority();
    const client = authority.issue();
    const tls = { ...authority.issue(), ca: authority.cert };
    await start({ tls });
    redirectTo(`${other.origin}/blob`);
    const files = { 'ca.crt': authority.cert, 'c.cert': client.cert, 'c.key': client.key };
    for (const [name, content] of Object.entries(files)) await bench.file(`certs/${name}`, content);
    const options = { certDir: `${bench.home}/certs`, maxAttempts: 1 };
    expect(await failureOf(ask(registry.host, options))).toMatchObject({ code: 'NETWORK' });
    expect([registry.requests.length, other.requests.length]).toEqual([1, 0]);
    for (const [name, content] of Object.entries(files))
      await bench.file(`certs/${other.host}/${name}`, content);
    expect(await ask(registry.host, options)).toBe('blob');
  });
});
