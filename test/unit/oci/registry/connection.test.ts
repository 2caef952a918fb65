import { text } from 'node:stream/consumers';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { createSelfSigned } from '../../../support/certificates.js';
import { failureOf, openWorkbench, until, type Workbench } from '../../../support/connect.js';
import { basic, type FaultRegistry, startFaultRegistry } from '../../../support/fault-registry.js';

let bench: Workbench;
let plain: FaultRegistry;
let secure: FaultRegistry;

beforeEach(async () => {
  bench = await openWorkbench();
  plain = await startFaultRegistry();
  secure = await startFaultRegistry({ tls: createSelfSigned() });
});

afterEach(async () => {
  await Promise.all([bench.close(), plain.close(), secure.close()]);
});

const insecure = (host: string): string => `[[registry]]\nlocation = "${host}"\ninsecure = true\n`;

describe('oci/connection: endpoints', () => {
  it('asks by HTTPS unless told otherwise', async () => {
    expect(await bench.endpointOf('quay.io')).toMatchObject({
      registry: 'quay.io',
      repository: 'ns/name',
      baseUrl: 'https://quay.io',
      isMirror: false,
    });
    expect(await bench.endpointOf('localhost:5000')).toMatchObject({ baseUrl: 'https://localhost:5000' });
    expect(await bench.endpointOf('[::1]:5000')).toMatchObject({ baseUrl: 'https://[::1]:5000' });
    expect(await bench.endpointOf('quay.io', { useHttp: true })).toMatchObject({ baseUrl: 'http://quay.io' });
    expect(await bench.endpointOf('quay.io', { skipTlsVerify: true })).toMatchObject({
      baseUrl: 'https://quay.io',
    });
  });

  it('reaches Docker Hub by its other name', async () => {
    expect(await bench.endpointOf('docker.io')).toMatchObject({
      registry: 'docker.io',
      baseUrl: 'https://registry-1.docker.io',
    });
  });

  it('lists mirrors before the registry, and the registry alone for writing', async () => {
    await bench.file(
      'etc/containers/registries.conf',
      '[[registry]]\nlocation = "quay.io"\n[[registry.mirror]]\nlocation = "m.corp/quay"\n',
    );
    const connection = bench.connect();
    const shown = async (options?: { withoutMirrors: boolean }): Promise<string[]> =>
      (await connection.endpoints('quay.io', 'ns/name', options)).map(
        (endpoint) => `${endpoint.baseUrl}/${endpoint.repository} ${endpoint.isMirror}`,
      );
    expect(await shown()).toEqual(['https://m.corp/quay/ns/name true', 'https://quay.io/ns/name false']);
    expect(await shown({ withoutMirrors: true })).toEqual(['https://quay.io/ns/name false']);
  });

  it('gives up a mirror after two attempts', async () => {
    await bench.file(
      'etc/containers/registries.conf',
      `[[registry]]\nlocation = "quay.io"\n${insecure(plain.host).replace(']]', '.mirror]]')}`,
    );
    plain.on({ path: '/a', respond: { status: 503 } });
    const [mirror] = await bench.connect().endpoints('quay.io', 'ns/name');
    expect(mirror?.baseUrl).toBe(plain.origin);
    const failure = await failureOf(
      mirror?.transport.send({ method: 'GET', url: `${plain.origin}/a` }) as Promise<unknown>,
    );
    expect(failure.message).toContain('(after 2 attempts)');
  });

  it('fails with the error of registries.conf', async () => {
    await bench.file('etc/containers/registries.conf', 'registry = ');
    expect(await failureOf(bench.endpointOf('quay.io'))).toMatchObject({ code: 'SYNTAX', line: 1 });
  });
});

describe('oci/connection: insecure registries', () => {
  it('uses plain HTTP where only that is spoken, found out without credentials', async () => {
    await bench.file('etc/containers/registries.conf', insecure(plain.host));
    await bench.file('.docker/config.json', { auths: { [plain.host]: { username: 'u', password: 'p' } } });
    plain.requireBasic('u', 'p');
    plain.on({ path: '/a', respond: { body: 'hello' } });
    const endpoint = await bench.endpointOf(plain.host);
    expect(endpoint).toMatchObject({ baseUrl: plain.origin });
    expect(plain.authorizations()).toEqual([]);
    const response = await endpoint.transport.send({ method: 'GET', url: `${endpoint.baseUrl}/a` });
    expect(await text(response.body)).toBe('hello');
    expect(plain.authorizations()).toEqual([basic('u', 'p')]);
  });

  it.each([['plain HTTP'], ['HTTPS with any certificate']])(
    'stays insecure where the registry comes up late, and then speaks %s',
    async (spoken) => {
      const gone = await startFaultRegistry();
      await gone.close();
      await bench.file('etc/containers/registries.conf', insecure(gone.host));
      const endpoint = await bench.endpointOf(gone.host, { maxAttempts: 1000, retryBaseDelayMs: 10 });
      expect(endpoint.baseUrl).toBe(`https://${gone.host}`);
      const sent = endpoint.transport.send({ method: 'GET', url: `${endpoint.baseUrl}/v2/a` });
      await until(() => bench.logged.some((line) => line.includes('trying again')));
      const tls = spoken === 'plain HTTP' ? {} : { tls: createSelfSigned() };
      const late = await startFaultRegistry({ ...tls, port: gone.port });
      late.on({ path: '/v2/a', respond: { body: 'hello' } });
      expect(await text((await sent).body)).toBe('hello');
      expect(endpoint.baseUrl).toBe(late.origin);
      await late.close();
    },
  );

  it('says what is wrong where neither scheme is answered', async () => {
    const gone = await startFaultRegistry();
    await gone.close();
    await bench.file('etc/containers/registries.conf', insecure(gone.host));
    const endpoint = await bench.endpointOf(gone.host);
    const failure = await failureOf(endpoint.transport.send({ method: 'GET', url: `${endpoint.baseUrl}/a` }));
    expect(failure.message).toBe(`${gone.host}: connection refused (after 5 attempts)`);
  });

  it('prefers HTTPS, with any certificate', async () => {
    await bench.file('etc/containers/registries.conf', insecure(secure.host));
    secure.on({ path: '/a', respond: { body: 'hello' } });
    const endpoint = await bench.endpointOf(secure.host);
    expect(endpoint.baseUrl).toBe(secure.origin);
    const response = await endpoint.transport.send({ method: 'GET', url: `${endpoint.baseUrl}/a` });
    expect(await text(response.body)).toBe('hello');
  });

  it('is insecure for that registry only', async () => {
    await bench.file('etc/containers/registries.conf', insecure('other.corp'));
    const endpoint = await bench.endpointOf(secure.host);
    const failure = await failureOf(endpoint.transport.send({ method: 'GET', url: `${secure.origin}/a` }));
    expect(failure.message).toContain('the certificate is self-signed');
  });

  it('never falls back to plain HTTP with --skip-tls-verify, whose secrets would go in clear', async () => {
    await bench.file('.docker/config.json', { auths: { [plain.host]: { username: 'u', password: 'p' } } });
    const endpoint = await bench.endpointOf(plain.host, { skipTlsVerify: true });
    const failure = await failureOf(
      endpoint.transport.send({ method: 'GET', url: `${endpoint.baseUrl}/v2/` }),
    );
    expect(failure.message).toBe(`${plain.host}: speaks plain HTTP, not HTTPS`);
    expect(plain.requests).toEqual([]);
  });
});

describe('oci/connection: secrets', () => {
  it('leaves no secret in the log or in errors', async () => {
    const secret = 'hunter2-secret';
    await bench.file('.docker/config.json', {
      auths: { [plain.host]: { auth: Buffer.from(`jo:${secret}`).toString('base64') } },
    });
    plain.on({ path: '/token', respond: { body: `{"token":"token-${secret}"}` } });
    plain.requireBearer({ realm: `${plain.origin}/token?password=${secret}` }, 'never');
    plain.on({ path: '/a', respond: { status: 500 } });
    const endpoint = await bench.endpointOf(plain.host, { useHttp: true });
    const url = `${plain.origin}/v2/?token=${secret}`;
    const failure = await failureOf(endpoint.transport.send({ method: 'GET', url }));
    const everything = [...bench.logged, failure.message, failure.hint, String(failure.cause)].join('\n');
    expect(everything).toContain('/token?');
    expect(everything).not.toContain(secret);
    expect(everything).not.toContain(Buffer.from(`jo:${secret}`).toString('base64'));
  });
});
