import { text } from 'node:stream/consumers';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { readProxies } from '../../../../src/oci/transport/proxy.js';
import { failureOf, openWorkbench, type Workbench } from '../../../support/connect.js';
import { createAuthority } from '../../../support/certificates.js';
import { basic, type FaultRegistry, startFaultRegistry } from '../../../support/fault-registry.js';
import {
  type ProxyServer,
  type ProxyServerOptions,
  startProxyServer,
} from '../../../support/proxy-server.js';

describe('oci/proxy: choice', () => {
  const proxied = (environment: Record<string, string>, url: string): string | undefined =>
    readProxies(environment)(new URL(url))?.host;
  const all = { HTTPS_PROXY: 'http://s:1', HTTP_PROXY: 'http://p:2', ALL_PROXY: 'http://a:3' };

  it('takes the variable of the scheme, upper case first, then ALL_PROXY', () => {
    expect(proxied(all, 'https://x.io')).toBe('s:1');
    expect(proxied(all, 'http://x.io')).toBe('p:2');
    expect(proxied({ ...all, HTTP_PROXY: '' }, 'http://x.io')).toBe('a:3');
    expect(proxied({ https_proxy: 'l:4' }, 'https://x.io')).toBe('l:4');
    expect(proxied({ HTTPS_PROXY: 'u:5', https_proxy: 'l:4' }, 'https://x.io')).toBe('u:5');
    expect(proxied({ HTTP_PROXY: 'p:2' }, 'https://x.io')).toBeUndefined();
    expect(proxied({}, 'https://x.io')).toBeUndefined();
  });

  it.each(['https://localhost:5000', 'https://127.0.0.1', 'https://127.9.9.9', 'https://[::1]:5000'])(
    'never uses one for %s',
    (url) => {
      expect(proxied(all, url)).toBeUndefined();
    },
  );

  it.each([
    ['*', 'https://x.io', true],
    ['x.io', 'https://x.io', true],
    ['x.io', 'https://a.x.io', true],
    ['x.io', 'https://ax.io', false],
    ['X.IO', 'https://x.io', true],
    ['.x.io', 'https://a.x.io', true],
    ['.x.io', 'https://x.io', false],
    ['*.x.io', 'https://a.b.x.io', true],
    ['*.x.io', 'https://x.io', false],
    ['a.io, x.io', 'https://x.io', true],
    ['a.io x.io', 'https://x.io', true],
    ['x.io:5000', 'https://x.io:5000', true],
    ['x.io:5000', 'https://x.io', false],
    ['x.io:443', 'https://x.io', true],
    ['10.0.0.0/8', 'https://10.1.2.3:5000', true],
    ['10.0.0.0/8', 'https://11.1.2.3', false],
    ['10.0.0.0/8', 'https://x.io', false],
    ['10.1.2.3', 'https://10.1.2.3', true],
    ['10.1.2.3:80', 'https://10.1.2.3', false],
    ['fd00::/8', 'https://[fd12::1]', true],
    ['[fd12::1]:5000', 'https://[fd12:0:0::1]:5000', true],
    ['fd12::1', 'https://[fd12::1]:5000', true],
    ['10.0.0.0/99', 'https://10.1.2.3', false],
    ['', 'https://x.io', false],
  ])('NO_PROXY=%s, %s: direct %s', (value, url, direct) => {
    expect(proxied({ ...all, no_proxy: value }, url) === undefined).toBe(direct);
  });

  it.each(['http://us%er:hunter2@h:1', 'http://h:99999', 'http://h:0', 'http://[::g]:1', 'http://'])(
    'refuses %s',
    (value) => {
      expect(() => proxied({ HTTP_PROXY: value }, 'http://x.io')).toThrow(
        /^HTTP_PROXY: not a valid proxy URL$/,
      );
    },
  );

  it('compares addresses with a zone without failing', () => {
    expect(proxied({ ...all, NO_PROXY: 'fe80::1%eth0' }, 'https://[fe80::1]')).toBeUndefined();
  });

  it('says what it cannot use, without the password', () => {
    const choose = (value: string) => () => proxied({ HTTPS_PROXY: value }, 'https://x.io');
    expect(choose('socks5://u:secret@h:1')).toThrow('HTTPS_PROXY: proxies of type socks5: are not supported');
    expect(choose('http://u:secret@')).toThrow(/^HTTPS_PROXY: not a valid proxy URL$/);
  });
});

describe('oci/proxy: use', () => {
  const authority = createAuthority();
  const server = authority.issue({ names: ['registry.test'] });
  let bench: Workbench;
  let registry: FaultRegistry;
  let proxy: ProxyServer;

  beforeEach(async () => {
    bench = await openWorkbench();
    await bench.file('ca.pem', authority.cert);
  });

  afterEach(async () => {
    await Promise.all([bench.close(), registry.close(), proxy.close()]);
  });

  /** Asks `registry.test`, a name that only the proxy knows. */
  async function ask(
    scheme: 'http' | 'https',
    options: ProxyServerOptions = {},
    login = '',
    more = {},
  ): Promise<string> {
    registry = await startFaultRegistry(scheme === 'https' ? { tls: server } : {});
    registry.on({ path: '/a', respond: { body: 'hello' } });
    proxy = await startProxyServer(options);
    const address = `http://${login}${proxy.host}`;
    const host = `registry.test:${registry.port}`;
    const transport = await bench.transportTo(host, {
      environment: { https_proxy: address, http_proxy: address },
      useHttp: scheme === 'http',
      caFile: `${bench.home}/ca.pem`,
      ...more,
    });
    const answers = [];
    for (let i = 0; i < 2; i++) {
      const response = await transport.send({ method: 'GET', url: `${scheme}://${host}/a` });
      answers.push(await text(response.body));
    }
    return answers.join(' ');
  }

  it('tunnels HTTPS, with TLS to the registry itself, and keeps the tunnel', async () => {
    expect(await ask('https')).toBe('hello hello');
    expect(proxy.requests).toEqual([`CONNECT registry.test:${registry.port}`]);
  });

  it('sends plain HTTP through the proxy', async () => {
    expect(await ask('http')).toBe('hello hello');
    expect(proxy.requests).toEqual(Array(2).fill(`GET http://registry.test:${registry.port}/a`));
  });

  it.each(['http', 'https'] as const)(
    'gives the proxy its credentials, and nobody else: %s',
    async (scheme) => {
      expect(await ask(scheme, { require: 'jo:p@ss' }, 'jo:p%40ss@')).toBe('hello hello');
      expect(proxy.credentials).toContain(basic('jo', 'p@ss'));
      expect(registry.authorizations()).toEqual([]);
      expect(bench.logged.join()).not.toContain('p%40ss');
    },
  );

  it.each(['http', 'https'] as const)('says that the proxy wants credentials: %s', async (scheme) => {
    const failure = await failureOf(ask(scheme, { require: 'jo:right' }, 'jo:wrong-secret@'));
    expect(failure.message).toBe(
      `registry.test:${registry.port}: proxy ${proxy.host} requires authentication (407)`,
    );
    expect(`${failure.message}${failure.hint}`).not.toContain('wrong-secret');
    expect(proxy.requests).toHaveLength(1);
  });

  it('tries again when the proxy cannot reach the registry, and names the proxy', async () => {
    const failure = await failureOf(ask('https', { refuse: { status: 504 } }));
    expect(failure.message).toBe(
      `registry.test:${registry.port}: proxy ${proxy.host} refused the connection (504) (after 5 attempts)`,
    );
    expect(proxy.requests).toHaveLength(5);
  });

  it.each(['SSH-2.0-OpenSSH_9.6\r\n\r\n', 'HTTP/1.1 garbage\r\n\r\n', 'HTTP/1.1 1 x\r\n\r\n'])(
    'says that a proxy returned no HTTP response: %j',
    async (garbage) => {
      const failure = await failureOf(ask('https', { garbage }));
      expect(failure.message).toBe(
        `registry.test:${registry.port}: proxy ${proxy.host} returned no HTTP response`,
      );
      expect(failure.hint).toContain('HTTPS_PROXY');
    },
  );

  it('does not take an answer of the proxy for one of the registry', async () => {
    await bench.file('.docker/config.json', { auths: { '127.0.0.1': { username: 'u', password: 'p' } } });
    const headers = ['WWW-Authenticate: Bearer realm="https://thief.test/token"'];
    const failure = await failureOf(ask('https', { refuse: { status: 401, headers } }));
    expect(failure.message).toContain('refused the connection (401)');
    expect(proxy.requests).toHaveLength(1);
  });

  it('gives up a proxy that never answers', async () => {
    const failure = await failureOf(ask('https', { hang: true }, '', { idleTimeoutMs: 60, maxAttempts: 1 }));
    expect(failure.message).toContain('nothing received for 0.06 s');
  });

  it('verifies the certificate behind the tunnel', async () => {
    const failure = await failureOf(ask('https', {}, '', { caFile: undefined }));
    expect(failure.message).toContain('TLS: the certificate comes from an authority that is not trusted');
  });
});
