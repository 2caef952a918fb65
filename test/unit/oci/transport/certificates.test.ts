import { type AddressInfo, connect, createServer } from 'node:net';
import { chmod, mkdir } from 'node:fs/promises';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import type { ConnectionOptions } from '../../../../src/oci/registry/connection.js';
import { type CertificateFiles, createAuthority, createSelfSigned } from '../../../support/certificates.js';
import { failureOf, openWorkbench, type Workbench } from '../../../support/connect.js';
import { type FaultRegistry, startFaultRegistry } from '../../../support/fault-registry.js';

const authority = createAuthority();
const stranger = createAuthority('some other authority');
const server = authority.issue();

let bench: Workbench;
let registry: FaultRegistry;

beforeEach(async () => {
  bench = await openWorkbench();
});

afterEach(async () => {
  await Promise.all([bench.close(), registry.close()]);
});

async function serve(
  tls: CertificateFiles & { ca?: string; maxVersion?: 'TLSv1.1' } = server,
): Promise<void> {
  registry = await startFaultRegistry({ tls });
  registry.on({ path: '/a', respond: { body: 'hello' } });
}

async function ask(options: Partial<ConnectionOptions> = {}): Promise<string> {
  const transport = await bench.transportTo(registry.host, options);
  return text((await transport.send({ method: 'GET', url: `${registry.origin}/a` })).body);
}

describe('oci/certificates: trust', () => {
  it('trusts no certificate without its authority, and says who issued it and where it looked', async () => {
    await serve();
    const bundle = await bench.file('etc/ssl/certs/ca-certificates.crt', stranger.cert);
    const failure = await failureOf(ask());
    expect(failure.message).toContain(`${registry.host}: TLS: the certificate comes from an authority`);
    expect(failure.message).toContain(
      'issued by opmate test authority for IP Address:127.0.0.1, DNS:localhost',
    );
    expect((failure.cause as Error).message).toContain(
      `authorities taken from ${bundle}, ${bench.home}/.config/containers/certs.d/`,
    );
    expect(failure.hint).toContain('registry.caFile');
    expect(registry.requests).toEqual([]);
  });

  it.each([
    '--ca-file',
    'SSL_CERT_FILE',
    'NODE_EXTRA_CA_CERTS',
    'the system',
    'certs.d',
    'docker certs.d',
    '--cert-dir',
  ])('takes an authority from %s', async (place) => {
    await serve();
    const pem = await bench.file('ca.pem', `# a comment\n${stranger.cert}${authority.cert}`);
    const options: Partial<ConnectionOptions> = {};
    if (place === '--ca-file') options.caFile = pem;
    else if (place === '--cert-dir') {
      await bench.file('certs/ca.crt', authority.cert);
      options.certDir = join(bench.home, 'certs');
    } else if (place === 'the system') await bench.file('etc/pki/tls/certs/ca-bundle.crt', authority.cert);
    else if (place === 'certs.d') {
      await bench.file(`.config/containers/certs.d/${registry.host}/ca.crt`, authority.cert);
    } else if (place === 'docker certs.d') {
      await bench.file(`etc/docker/certs.d/${registry.host}/x.crt`, authority.cert);
    } else options.environment = { [place]: pem };
    expect(await ask(options)).toBe('hello');
  });

  it('takes the directory of the host below --cert-dir', async () => {
    await serve();
    await bench.file(`certs/${registry.host}/ca.crt`, authority.cert);
    await bench.file('certs/wrong.crt', 'not a certificate');
    expect(await ask({ certDir: join(bench.home, 'certs') })).toBe('hello');
  });

  it('does not use the directory of another host', async () => {
    await serve();
    await bench.file('etc/containers/certs.d/127.0.0.1/ca.crt', authority.cert);
    expect((await failureOf(ask())).message).toContain('not trusted');
  });

  it.each<[string, () => CertificateFiles, string]>([
    ['is self-signed', () => createSelfSigned(), 'the certificate is self-signed'],
    ['has expired', () => authority.issue({ notAfter: new Date(Date.now() - 86_400_000) }), 'has expired'],
    [
      'is not valid yet',
      () => authority.issue({ notBefore: new Date(Date.now() + 86_400_000) }),
      'is not valid yet',
    ],
    ['is for another host', () => authority.issue({ names: ['example.com'] }), 'is for another host'],
  ])('refuses a certificate that %s, unless told otherwise', async (_name, make, problem) => {
    await serve(make());
    const caFile = await bench.file('ca.pem', authority.cert);
    const failure = await failureOf(ask({ caFile }));
    expect(failure.message).toContain(problem);
    expect(registry.requests).toEqual([]);
    expect(await ask({ caFile, skipTlsVerify: true })).toBe('hello');
  });

  it('does not try a refused certificate again', async () => {
    await serve();
    await failureOf(ask());
    // One refusal, and one greeting to learn who issued it.
    expect(registry.connections()).toBe(2);
  });

  it.each([
    ['--ca-file', { caFile: 'HOME/missing.pem' }, 'missing.pem: not found'],
    ['--ca-file', { caFile: 'HOME/junk.pem' }, 'junk.pem: not a certificate in PEM'],
    ['--cert-dir', { certDir: 'HOME/missing' }, 'missing: not found'],
    ['--cert-dir', { certDir: 'HOME/broken' }, 'x.crt: not a certificate in PEM'],
    ['--cert-dir', { certDir: 'HOME/lonely' }, 'the key file c.key beside it is missing'],
  ])('names what cannot be used of %s', async (_flag, options, problem) => {
    await serve();
    await bench.file('junk.pem', 'junk');
    await bench.file('broken/x.crt', 'junk');
    await bench.file('lonely/c.cert', authority.cert);
    const resolved = Object.fromEntries(
      Object.entries(options).map(([name, value]) => [name, value.replace('HOME', bench.home)]),
    );
    expect((await failureOf(ask(resolved))).message).toContain(problem);
  });

  it('warns when SSL_CERT_FILE cannot be used, and goes on', async () => {
    await serve();
    await bench.file('etc/ssl/cert.pem', authority.cert);
    const path = join(bench.home, 'missing.pem');
    expect(await ask({ environment: { SSL_CERT_FILE: path } })).toBe('hello');
    expect(bench.logged).toContain(`warn: SSL_CERT_FILE: ${path}: not found`);
  });

  it.runIf(process.getuid?.() !== 0)('names a directory that cannot be read', async () => {
    await serve();
    const directory = join(bench.home, 'etc/containers/certs.d', registry.host);
    await mkdir(directory, { recursive: true });
    await chmod(directory, 0);
    expect((await failureOf(ask())).message).toContain('cannot be read (EACCES)');
    await chmod(directory, 0o700);
  });
});

describe('oci/certificates: client certificates and versions', () => {
  it('shows a client certificate to the host that it is for', async () => {
    await serve({ ...server, ca: stranger.cert });
    const client = stranger.issue({ commonName: 'jo' });
    const directory = `etc/containers/certs.d/${registry.host}`;
    await bench.file(`${directory}/ca.crt`, authority.cert);
    const failure = await failureOf(ask());
    expect(failure.message).toMatch(/TLS: .*certificate/);
    expect(failure.hint).toContain('add the required client certificate');
    await bench.file(`${directory}/client.cert`, client.cert);
    const key = await bench.file(`${directory}/client.key`, stranger.issue().key);
    expect((await failureOf(ask())).message).toBe(
      `${key}: not the key of the certificate ${join(bench.home, directory, 'client.cert')}`,
    );
    await bench.file(`${directory}/client.key`, client.key);
    expect(await ask()).toBe('hello');
  });

  it('speaks no TLS older than 1.2', async () => {
    registry = await startFaultRegistry({
      tls: { ...server, minVersion: 'TLSv1', maxVersion: 'TLSv1.1', ciphers: 'DEFAULT@SECLEVEL=0' },
    });
    const failure = await failureOf(ask({ skipTlsVerify: true }));
    expect(failure).toMatchObject({ code: 'NETWORK', hint: 'enable TLS 1.2 or later on the server' });
  });
});

describe('oci/certificates: HTTP and HTTPS', () => {
  it('says that a registry speaks plain HTTP', async () => {
    registry = await startFaultRegistry();
    const transport = await bench.transportTo(registry.host, { skipTlsVerify: true });
    const failure = await failureOf(transport.send({ method: 'GET', url: `https://${registry.host}/v2/` }));
    expect(failure.message).toBe(`${registry.host}: speaks plain HTTP, not HTTPS`);
    expect(failure.hint).toContain('registry.useHttp');
    expect(registry.requests).toEqual([]);
  });

  it('says that a registry speaks HTTPS when it hangs up', async () => {
    await serve();
    const transport = await bench.transportTo(registry.host, { useHttp: true });
    const failure = await failureOf(transport.send({ method: 'GET', url: `http://${registry.host}/v2/` }));
    expect(failure.message).toBe(`${registry.host}: speaks HTTPS, not plain HTTP`);
    expect(failure.hint).toContain('remove registry.useHttp');
  });

  it.each([
    'Client sent an HTTP request to an HTTPS server.\n',
    '<h1>The plain HTTP request was sent to HTTPS port</h1>',
  ])('says that a registry speaks HTTPS when it answers %j', async (body) => {
    registry = await startFaultRegistry();
    registry.on({ path: '/a', respond: { status: 400, body, headers: { 'content-type': 'text/plain' } } });
    expect((await failureOf(ask({ useHttp: true }))).message).toContain('speaks HTTPS, not plain HTTP');
  });

  it('hands on any other 400 whole', async () => {
    registry = await startFaultRegistry();
    registry.on({
      path: '/a',
      respond: { status: 400, body: 'x'.repeat(5000), headers: { 'content-type': 'text/plain' } },
    });
    expect(await ask({ useHttp: true })).toHaveLength(5000);
  });

  it('follows no redirect from HTTPS to HTTP', async () => {
    await serve();
    const plain = await startFaultRegistry();
    registry.on({ path: '/a', respond: { status: 307, headers: { location: `${plain.origin}/b` } } });
    const failure = await failureOf(ask({ skipTlsVerify: true }));
    expect(failure.message).toContain('redirect from HTTPS to plain HTTP');
    expect(plain.requests).toEqual([]);
    await plain.close();
  });

  it('gives no credentials to a token server on plain HTTP', async () => {
    await serve();
    const plain = await startFaultRegistry();
    await bench.file('.docker/config.json', { auths: { [registry.host]: { username: 'u', password: 'p' } } });
    registry.on({
      path: '/a',
      respond: { status: 401, headers: { 'www-authenticate': `Bearer realm="${plain.origin}/t"` } },
    });
    expect((await failureOf(ask({ skipTlsVerify: true }))).message).toContain('plain HTTP at');
    expect(plain.requests).toEqual([]);
    await plain.close();
  });

  it('tries again after a TLS alert that an overloaded front end sends', async () => {
    await serve();
    let alerts = 0;
    const front = createServer((socket) => {
      socket.on('error', () => undefined);
      if (alerts < 2) {
        alerts++;
        // A record of type alert: fatal, internal error.
        socket.once('data', () => socket.end(Buffer.from([0x15, 3, 3, 0, 2, 2, 80])));
        return;
      }
      const behind = connect(registry.port, '127.0.0.1');
      behind.on('error', () => socket.destroy());
      socket.pipe(behind).pipe(socket);
    });
    await new Promise<void>((resolve) => front.listen(0, '127.0.0.1', resolve));
    try {
      const host = `127.0.0.1:${(front.address() as AddressInfo).port}`;
      const transport = await bench.transportTo(host, { skipTlsVerify: true });
      expect((await transport.send({ method: 'GET', url: `https://${host}/a` })).status).toBe(200);
      expect(alerts).toBe(2);
    } finally {
      front.close();
    }
  });
});
