import { chmod } from 'node:fs/promises';
import { dirname } from 'node:path';
import fc from 'fast-check';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { checkRealm, parseChallenges, tokenKey } from '../../../../src/oci/registry/auth.js';
import type { ConnectionOptions, Endpoint } from '../../../../src/oci/registry/connection.js';
import type { TransportRequest, TransportResponse } from '../../../../src/oci/transport/transport.js';
import { failureOf, openWorkbench, type Workbench } from '../../../support/connect.js';
import {
  basic,
  type FaultRegistry,
  type FaultResponse,
  type RecordedRequest,
  startFaultRegistry,
} from '../../../support/fault-registry.js';

let bench: Workbench;
let registry: FaultRegistry;
let other: FaultRegistry;

beforeEach(async () => {
  bench = await openWorkbench();
  registry = await startFaultRegistry();
  other = await startFaultRegistry();
  registry.on({ path: '/v2/ns/name/tags/list', respond: { body: '{}' } });
});

afterEach(async () => {
  await Promise.all([bench.close(), registry.close(), other.close()]);
});

const scope = { repository: 'ns/name', actions: ['pull' as const] };
const login = { username: 'jo', password: 'hunter2-secret' };

/** Reads the tag list of ns/name, `times` in parallel. */
async function ask(options: Partial<ConnectionOptions> = {}, times = 1): Promise<TransportResponse> {
  const transport = await bench.transportTo(registry.host, { useHttp: true, ...options });
  const url = `${registry.origin}/v2/ns/name/tags/list`;
  const answers = await Promise.all(
    Array.from({ length: times }, () => transport.send({ method: 'GET', url, scope })),
  );
  return answers[0] as TransportResponse;
}

async function logIn(host = registry.host): Promise<void> {
  await bench.file('.docker/config.json', { auths: { [host]: login } });
}

function serveToken(respond: FaultResponse | ((request: RecordedRequest) => FaultResponse)): string {
  other.on({ path: '/token', respond });
  return `${other.origin}/token`;
}

describe('oci/auth: Basic', () => {
  it('answers a challenge, and afterwards does not wait for one', async () => {
    await logIn();
    registry.requireBasic(login.username, login.password);
    const transport = await bench.transportTo(registry.host, { useHttp: true });
    const url = `${registry.origin}/v2/ns/name/tags/list`;
    expect((await transport.send({ method: 'GET', url, scope })).status).toBe(200);
    expect((await transport.send({ method: 'GET', url, scope })).status).toBe(200);
    const sent = basic(login.username, login.password);
    expect(registry.requests.map((request) => request.authorization)).toEqual([undefined, sent, sent]);
  });

  it('sends nothing before it is asked', async () => {
    await logIn();
    await ask();
    expect(registry.authorizations()).toEqual([]);
  });

  it('names file and key when the credentials are refused, and does not try them again', async () => {
    await logIn();
    registry.requireBasic('jo', 'changed');
    const failure = await failureOf(ask());
    expect(failure).toMatchObject({ code: 'AUTH', status: 401 });
    expect(failure.message).toBe(`${registry.host}: credentials refused (401)`);
    expect(failure.hint).toContain(
      `check the user name and password from ${bench.home}/.docker/config.json, key "${registry.host}"`,
    );
    expect(registry.requests).toHaveLength(2);
  });

  it('says where it looked when there are none', async () => {
    registry.requireBasic('jo', 'x');
    const failure = await failureOf(ask());
    expect(failure.message).toMatch(
      new RegExp(`^${registry.host}/ns/name: authentication required \\(401\\): no credentials in `),
    );
    expect(failure.message).toContain(`${bench.home}/.docker/config.json`);
    expect(failure.hint).toBe('log in, or specify a credentials file with registry.authFile');
    expect(registry.requests).toHaveLength(1);
  });
});

describe('oci/auth: Bearer', () => {
  it('fetches a token for the scope of the challenge, with the credentials of the registry', async () => {
    await logIn();
    const realm = serveToken({ body: '{"token":"t1"}' });
    registry.requireBearer(
      { realm, service: 'reg', scope: 'repository:ns/name:pull repository:x:pull' },
      't1',
    );
    expect((await ask()).status).toBe(200);
    const asked = new URL(other.requests[0]?.path ?? '', other.origin);
    expect(asked.searchParams.getAll('scope')).toEqual(['repository:ns/name:pull', 'repository:x:pull']);
    expect(asked.searchParams.get('service')).toBe('reg');
    expect(other.authorizations()).toEqual([basic(login.username, login.password)]);
    expect(registry.authorizations()).toEqual(['Bearer t1']);
  });

  it('asks anonymously without credentials, for its own scope where the challenge names none', async () => {
    const realm = serveToken({ body: '{"access_token":"t1"}' });
    registry.requireBearer({ realm }, 't1');
    expect((await ask()).status).toBe(200);
    expect(other.authorizations()).toEqual([]);
    expect(other.requests[0]?.path).toBe('/token?scope=repository%3Ans%2Fname%3Apull');
  });

  it('answers a challenge of the repository although /v2/ asks for nothing', async () => {
    const realm = serveToken({ body: '{"token":"t1"}' });
    registry.gate((request) =>
      request.path === '/v2/' || request.authorization
        ? undefined
        : { status: 401, headers: { 'www-authenticate': `Bearer realm="${realm}"` } },
    );
    expect((await ask()).status).toBe(200);
  });

  it('shares one token between requests that come together', async () => {
    const realm = serveToken({ body: '{"token":"t1"}' });
    registry.requireBearer({ realm, service: 's' }, 't1');
    await ask({}, 8);
    expect(other.requests).toHaveLength(1);
  });

  it('prefers Bearer when Basic is offered too', async () => {
    await logIn();
    const realm = serveToken({ body: '{"token":"t1"}' });
    const challenges = ['Basic realm="x"', `Bearer realm="${realm}",service="s"`];
    registry.gate(({ authorization }) =>
      authorization === 'Bearer t1'
        ? undefined
        : { status: 401, headers: { 'www-authenticate': challenges } },
    );
    expect((await ask()).status).toBe(200);
  });

  it('takes a new token, once, when the one in use is refused', async () => {
    let count = 0;
    const realm = serveToken(() => ({ body: JSON.stringify({ token: `t${++count}`, expires_in: 3600 }) }));
    let valid = 't1';
    registry.gate(({ authorization }) =>
      authorization === `Bearer ${valid}`
        ? undefined
        : { status: 401, headers: { 'www-authenticate': `Bearer realm="${realm}"` } },
    );
    const transport = await bench.transportTo(registry.host, { useHttp: true });
    const send = (): Promise<TransportResponse> =>
      transport.send({ method: 'GET', url: `${registry.origin}/v2/ns/name/tags/list`, scope });
    expect((await send()).status).toBe(200);
    valid = 't2';
    expect((await send()).status).toBe(200);
    valid = 'none';
    expect(await failureOf(send())).toMatchObject({ code: 'AUTH' });
    expect(other.requests).toHaveLength(3);
    expect(registry.requests).toHaveLength(2 + 2 + 2);
  });

  it('renews a cached token that a request of another kind finds refused, once', async () => {
    let count = 0;
    const realm = serveToken(() => ({ body: JSON.stringify({ token: `t${++count}`, expires_in: 300 }) }));
    let valid = 't1';
    const challenge = `Bearer realm="${realm}",scope="repository:ns/name:pull,push"`;
    registry.gate(({ authorization }) =>
      authorization === `Bearer ${valid}`
        ? undefined
        : { status: 401, headers: { 'www-authenticate': challenge } },
    );
    registry.on({ path: '/v2/ns/name/blobs/uploads/', respond: { status: 202 } });
    const transport = await bench.transportTo(registry.host, { useHttp: true });
    const url = `${registry.origin}/v2/ns/name/`;
    await transport.send({ method: 'GET', url: `${url}tags/list`, scope });
    valid = 't2';
    const push = { repository: 'ns/name', actions: ['pull' as const, 'push' as const] };
    const upload = () => transport.send({ method: 'POST', url: `${url}blobs/uploads/`, scope: push });
    expect((await upload()).status).toBe(202);
    expect(other.requests).toHaveLength(2);
    valid = 'none';
    expect(await failureOf(upload())).toMatchObject({ code: 'AUTH' });
    expect(other.requests).toHaveLength(3);
  });

  it.each<[string, FaultResponse]>([
    ['403', { status: 403, body: '{"errors":[{"code":"DENIED"}]}' }],
    ['401 without a challenge', { status: 401 }],
    [
      '401 with a challenge for passwords',
      { status: 401, headers: { 'www-authenticate': 'Basic realm="x"' } },
    ],
  ])('asks for all access of a push, once, if a token to pull is answered by %s', async (_name, refusal) => {
    const realm = serveToken(({ path }) => ({
      body: JSON.stringify({ token: new URL(path, other.origin).searchParams.get('scope') }),
    }));
    const wide = 'Bearer repository:ns/name:pull,push';
    registry.gate(({ method, authorization }) => {
      const challenge = `Bearer realm="${realm}",service="s",scope="repository:ns/name:pull"`;
      if (authorization === undefined) return { status: 401, headers: { 'www-authenticate': challenge } };
      return method === 'GET' || authorization === wide ? undefined : refusal;
    });
    registry.on({ method: 'POST', path: '/v2/ns/name/blobs/uploads/', respond: { status: 202 } });
    registry.on({ method: 'PUT', path: '/v2/ns/name/manifests/v1', respond: { status: 403 } });
    const transport = await bench.transportTo(registry.host, { useHttp: true });
    const push = { repository: 'ns/name', actions: ['pull' as const, 'push' as const] };
    const send = (method: string, path: string, access: NonNullable<TransportRequest['scope']>) =>
      transport.send({ method, url: `${registry.origin}/v2/ns/name/${path}`, scope: access });
    expect((await send('GET', 'tags/list', scope)).status).toBe(200);
    expect((await send('POST', 'blobs/uploads/', push)).status).toBe(202);
    expect((await send('POST', 'blobs/uploads/', push)).status).toBe(202);
    expect(registry.authorizations().filter((value) => value === wide)).toHaveLength(2);
    // More access than all cannot be asked for.
    expect((await send('PUT', 'manifests/v1', push)).status).toBe(403);
    expect(other.requests).toHaveLength(2);
  });

  it.each([
    [{ token: 't1' }, 60],
    [{ token: 't1', expires_in: 1 }, 1],
    [{ token: 't1', expires_in: 0 }, 60],
    [{ token: 't1', expires_in: '300' }, 60],
    [{ token: 't1', expires_in: 300, issued_at: '1999-01-01T00:00:00Z' }, 300],
  ])('keeps a token as long as it says: %j', async (answer, seconds) => {
    const realm = serveToken({ body: JSON.stringify(answer) });
    registry.requireBearer({ realm }, 't1');
    let time = 0;
    const transport = await bench.transportTo(registry.host, { useHttp: true, now: () => time });
    const send = (): Promise<TransportResponse> =>
      transport.send({ method: 'GET', url: `${registry.origin}/v2/ns/name/tags/list`, scope });
    await send();
    time = seconds * 700;
    await send();
    expect(other.requests).toHaveLength(1);
    time = seconds * 1000;
    await send();
    expect(other.requests).toHaveLength(2);
  });

  it('exchanges an identity token by POST', async () => {
    await bench.file('.docker/config.json', {
      auths: { [registry.host]: { identitytoken: 'refresh-secret' } },
    });
    const realm = serveToken({ body: '{"access_token":"t1"}' });
    registry.requireBearer({ realm, service: 's', scope: 'a b' }, 't1');
    expect((await ask()).status).toBe(200);
    expect(other.requests[0]).toMatchObject({ method: 'POST', authorization: undefined });
    expect(Object.fromEntries(new URLSearchParams(other.requests[0]?.body.toString()))).toEqual({
      grant_type: 'refresh_token',
      refresh_token: 'refresh-secret',
      client_id: 'opmate',
      service: 's',
      scope: 'a b',
    });
  });

  it.each<[string, FaultResponse, string]>([
    ['no JSON', { body: '<html>token</html>' }, 'invalid JSON'],
    ['an array', { body: '[]' }, 'expected an object, got a list'],
    ['no token', { body: '{"tokn":"x"}' }, 'response has no usable token'],
    ['a token with a line break', { body: '{"token":"a\\r\\nX: y"}' }, 'response has no usable token'],
    ['2 MiB', { body: `{"token":"${'x'.repeat(2_097_152)}"}` }, 'response is larger than 1048576 bytes'],
    ['an endless body', { body: 'x'.repeat(65_536), endless: true }, 'response is larger than 1048576 bytes'],
    ['401', { status: 401, body: '{"details":"incorrect username or password"}' }, 'returned 401'],
    ['403', { status: 403 }, 'returned 403'],
    ['404', { status: 404 }, 'returned 404'],
  ])('fails once with the name of the token server if that returns %s', async (_name, answer, problem) => {
    await logIn();
    registry.requireBearer({ realm: serveToken(answer) }, 't1');
    const failure = await failureOf(ask());
    expect(failure.message).toContain(`${registry.host}/ns/name: token server ${other.host}`);
    expect(failure.message).toContain(problem);
    expect(`${failure.message} ${failure.hint}`).not.toContain(login.password);
    expect(other.requests).toHaveLength(1);
  });

  it('does not turn round when the token is never accepted', async () => {
    registry.requireBearer({ realm: serveToken({ body: '{"token":"narrow"}' }) }, 'wide');
    expect(await failureOf(ask())).toMatchObject({ code: 'AUTH' });
    expect([registry.requests.length, other.requests.length]).toEqual([2, 1]);
  });

  it('tries again when the token server is busy', async () => {
    const realm = `${other.origin}/token`;
    const busy = { status: 429, headers: { 'retry-after': '0' } };
    other.on({
      path: '/token',
      respond: [busy, { status: 503 }, { reset: true }, { body: '{"token":"t1"}' }],
    });
    registry.requireBearer({ realm }, 't1');
    expect((await ask()).status).toBe(200);
  });

  it('gives a waiting request its own token when the one that fetched was cancelled', async () => {
    let release: () => void = () => undefined;
    const held = new Promise<FaultResponse>((resolve) => {
      release = () => resolve({ body: '{"token":"t1"}' });
    });
    other.on({ path: '/token', respond: [() => held, { body: '{"token":"t1"}' }] });
    registry.requireBearer({ realm: `${other.origin}/token` }, 't1');
    const transport = await bench.transportTo(registry.host, { useHttp: true });
    const url = `${registry.origin}/v2/ns/name/tags/list`;
    const controller = new AbortController();
    const first = failureOf(transport.send({ method: 'GET', url, scope, signal: controller.signal }));
    while (other.requests.length === 0) await new Promise((resolve) => setTimeout(resolve, 5));
    const second = transport.send({ method: 'GET', url, scope });
    while (registry.requests.length < 2) await new Promise((resolve) => setTimeout(resolve, 5));
    controller.abort();
    expect(await first).toMatchObject({ code: 'CANCELLED' });
    expect((await second).status).toBe(200);
    release();
  });
});

describe('oci/auth: where credentials must not go', () => {
  it.each([['pull' as const], ['push' as const]])(
    'gives the %s token of one registry to no other that repeats its challenge',
    async (access) => {
      const helper = await bench.file(
        'bin/docker-credential-store',
        `#!/bin/sh\necho '{"Username":"jo","Secret":"${login.password}"}'\n`,
      );
      await chmod(helper, 0o755);
      const environment = { PATH: `${dirname(helper)}:/usr/bin:/bin` };
      await bench.file('.docker/config.json', { credsStore: 'store' });
      const tokens = await startFaultRegistry();
      tokens.on({ path: '/token', respond: (_request, count) => ({ body: `{"token":"t${count}"}` }) });
      const challenge = {
        realm: `${tokens.origin}/token`,
        service: 'good',
        scope: `repository:ns/name:pull,${access}`,
      };
      registry.requireBearer(challenge, 't1');
      other.requireBearer(challenge, 'never');
      const connection = bench.connect({ useHttp: true, environment });
      const actions = access === 'pull' ? [access] : ['pull' as const, access];
      async function sendTo(host: string): Promise<TransportResponse> {
        const [endpoint] = await connection.endpoints(host, 'ns/name');
        const { baseUrl, transport } = endpoint as Endpoint;
        const url = `${baseUrl}/v2/ns/name/tags/list`;
        return transport.send({ method: 'GET', url, scope: { repository: 'ns/name', actions } });
      }
      expect((await sendTo(registry.host)).status).toBe(200);
      expect(await failureOf(sendTo(other.host))).toMatchObject({ code: 'AUTH' });
      expect(registry.authorizations()).toEqual(['Bearer t1']);
      expect(other.authorizations()).toEqual(['Bearer t2']);
      expect((await sendTo(registry.host)).status).toBe(200);
      expect(registry.authorizations()).toEqual(['Bearer t1', 'Bearer t1']);
      await tokens.close();
    },
  );

  const token = {
    registry: 'a.example',
    origin: 'https://a.example',
    realm: 'https://t.example/token',
    service: 's',
    scopes: ['repository:ns/name:pull'],
    credentials: { source: 'config.json, credsStore', username: 'jo' },
  };
  it.each([
    { registry: 'b.example' },
    { origin: 'http://a.example' },
    { realm: 'https://t.example/other' },
    { service: undefined },
    { scopes: ['repository:ns/name:pull,push'] },
    { credentials: undefined },
    { credentials: { source: 'config.json, key "a.example"', username: 'jo' } },
    { credentials: { source: 'config.json, credsStore', username: 'eve' } },
    { realm: 'https://t.example/token\ns', service: '' },
  ])('keeps a token of its own for %j', (change) => {
    expect(tokenKey({ ...token, ...change })).not.toBe(tokenKey(token));
    expect(tokenKey({ ...token })).toBe(tokenKey(token));
  });

  it('follows no redirect of the token server to another origin', async () => {
    await logIn();
    const thief = await startFaultRegistry();
    const realm = serveToken({ status: 307, headers: { location: `${thief.origin}/steal` } });
    registry.requireBearer({ realm }, 't1');
    const failure = await failureOf(ask());
    expect(failure).toMatchObject({ code: 'UNSAFE' });
    expect(thief.requests).toEqual([]);
    await thief.close();
  });

  it('follows a redirect within the token server', async () => {
    await logIn();
    const realm = serveToken({ status: 302, headers: { location: '/v2token' } });
    other.on({ path: '/v2token', respond: { body: '{"token":"t1"}' } });
    registry.requireBearer({ realm }, 't1');
    expect((await ask()).status).toBe(200);
  });

  it.each(['Basic realm="x"', 'Bearer realm="REALM",service="s"'])(
    'answers no challenge of the host of a redirect: %s',
    async (challenge) => {
      await bench.file('.docker/config.json', { auths: { [registry.host]: login, [other.host]: login } });
      const location = `${other.origin}/blob`;
      registry.on({ path: '/v2/ns/name/tags/list', respond: { status: 307, headers: { location } } });
      const header = challenge.replace('REALM', `${other.origin}/token`);
      other.on({ path: '/blob', respond: { status: 401, headers: { 'www-authenticate': header } } });
      const failure = await failureOf(ask());
      expect(failure.message).toContain(`redirected to ${other.host}, which requires authentication`);
      expect(other.authorizations()).toEqual([]);
      expect(other.requests.map((request) => request.path)).toEqual(['/blob']);
    },
  );

  it('uses the token for the registry, not for the host of its redirect', async () => {
    await logIn();
    const realm = `${registry.origin}/token`;
    registry.on({ path: '/token', respond: { body: '{"token":"t1"}' } });
    registry.requireBearer({ realm }, 't1');
    const location = `${other.origin}/blob`;
    registry.on({ path: '/v2/ns/name/tags/list', respond: { status: 307, headers: { location } } });
    other.on({ path: '/blob', respond: { body: 'b' } });
    expect((await ask()).status).toBe(200);
    expect(registry.authorizations()).toEqual([basic(login.username, login.password), 'Bearer t1']);
    expect(other.authorizations()).toEqual([]);
  });

  it.each([
    'http://169.254.169.254/latest/meta-data',
    'http://10.1.2.3/token',
    'http://[fd00::1]/token',
    'file:///etc/passwd',
    'http://user:pw-secret@127.0.0.1/token',
    'not a url',
  ])('asks no token server at %s', async (realm) => {
    await logIn();
    registry.requireBearer({ realm }, 't1');
    const failure = await failureOf(ask());
    expect(failure).toMatchObject({ code: 'UNSAFE' });
    expect(failure.message).toContain('token server refused');
    expect(failure.message).not.toContain('pw-secret');
  });

  it('gives Basic credentials to the registry itself when its realm is refused', async () => {
    await logIn();
    const challenges = 'Bearer realm="http://169.254.169.254/", Basic realm="x"';
    registry.gate(({ authorization }) =>
      authorization === basic(login.username, login.password)
        ? undefined
        : { status: 401, headers: { 'www-authenticate': challenges } },
    );
    expect((await ask()).status).toBe(200);
  });

  const https = 'https://registry.example.com';
  it.each([
    ['https://auth.docker.io/token', https],
    ['https://auth.corp:8443/token', https],
    ['http://auth.example.com/token', 'http://registry.example.com'],
    ['https://127.0.0.1:5001/t', 'https://127.0.0.1:5000'],
    ['https://localhost/t', 'https://[::1]:5000'],
    ['https://10.0.0.5/t', 'https://192.168.0.1'],
    ['https://93.184.216.34/t', https],
  ])('allows realm %s for %s', (realm, origin) => {
    expect(checkRealm(realm, new URL(origin), []).href).toBe(realm);
  });
  it.each([
    ['http://registry.example.com/token', https],
    ['http://auth.example.com/token', https],
    ['https://127.0.0.1/t', https],
    ['https://localhost/t', https],
    ['https://localhost./t', https],
    ['https://x.localhost/t', https],
    ['https://[::1]/t', https],
    ['https://[::ffff:127.0.0.1]/t', https],
    ['https://[::ffff:a9fe:a9fe]/t', https],
    ['https://0.0.0.0/t', https],
    ['https://2130706433/t', https],
    ['https://0x7f.1/t', https],
    ['https://169.254.169.254/t', 'https://127.0.0.1:5000'],
    ['https://[fe80::1]/t', https],
    ['https://[fc00::1]/t', https],
    ['https://172.31.0.1/t', https],
    ['https://100.64.0.1/t', https],
    ['https://user@auth.example.com/t', https],
    ['ftp://auth.example.com/t', https],
    ['/token', https],
  ])('refuses realm %s for %s', (realm, origin) => {
    expect(() => checkRealm(realm, new URL(origin), [])).toThrow('token server refused');
  });
  it('allows a realm that was named as trusted', () => {
    expect(checkRealm('https://10.0.0.5/t', new URL(https), ['10.0.0.5']).host).toBe('10.0.0.5');
    expect(() => checkRealm('https://10.0.0.5/t', new URL(https), ['10.0.0.50'])).toThrow('refused');
  });
});

describe('oci/auth: parseChallenges', () => {
  it.each<[string, ReturnType<typeof parseChallenges>]>([
    ['', []],
    ['Basic', [{ scheme: 'basic', parameters: {} }]],
    ['basic realm=x', [{ scheme: 'basic', parameters: { realm: 'x' } }]],
    [
      'Bearer realm="https://a/t",service="s, t",scope="repository:a:pull,push"',
      [
        {
          scheme: 'bearer',
          parameters: { realm: 'https://a/t', service: 's, t', scope: 'repository:a:pull,push' },
        },
      ],
    ],
    [
      'Negotiate, Basic realm="a \\"b\\"" , BEARER Realm = "r",error="invalid_token"',
      [
        { scheme: 'negotiate', parameters: {} },
        { scheme: 'basic', parameters: { realm: 'a "b"' } },
        { scheme: 'bearer', parameters: { realm: 'r', error: 'invalid_token' } },
      ],
    ],
    ['Bearer realm="first",realm="second"', [{ scheme: 'bearer', parameters: { realm: 'first' } }]],
  ])('%s', (header, challenges) => {
    expect(
      parseChallenges(header).map(({ scheme, parameters }) => ({ scheme, parameters: { ...parameters } })),
    ).toEqual(challenges);
  });
  it('never fails and never hangs', () => {
    fc.assert(
      fc.property(fc.string({ unit: fc.constantFrom(...'Basic ="\\,\t~Ü') }), (header) => {
        for (const { scheme } of parseChallenges(header)) expect(scheme).not.toBe('');
      }),
    );
    expect(parseChallenges(`Bearer ${'a="'.repeat(20_000)}`).length).toBeLessThan(30_000);
    // Each of these is read once; a quadratic reader takes minutes.
    for (const piece of ['a', ' ', 'a(', 'a="\\"', ',', 'a=b(', '(', 'a ='])
      expect(parseChallenges(`Bearer ${piece.repeat(500_000)}`).length).toBeLessThan(1_000_000);
  });
});
