import { createServer } from 'node:http';
import { createServer as createTcpServer } from 'node:net';
import { Readable } from 'node:stream';
import { text } from 'node:stream/consumers';
import { setTimeout as sleep } from 'node:timers/promises';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { LimitError } from '../../../../src/core/errors.js';
import { withRetry } from '../../../../src/oci/transport/transport-retry.js';
import {
  describeUrl,
  resolveUploadLocation,
  type Transport,
  type TransportResponse,
} from '../../../../src/oci/transport/transport.js';
import { readLimited } from '../../../../src/oci/image/read-limited.js';
import { failureOf, openWorkbench, type Workbench } from '../../../support/connect.js';
import {
  type FaultRegistry,
  type FaultResponse,
  startFaultRegistry,
} from '../../../support/fault-registry.js';

let bench: Workbench;
let registry: FaultRegistry;
let other: FaultRegistry;

beforeEach(async () => {
  bench = await openWorkbench();
  registry = await startFaultRegistry();
  other = await startFaultRegistry();
});

afterEach(async () => {
  await Promise.all([bench.close(), registry.close(), other.close()]);
});

const http = { useHttp: true };
const scope = { repository: 'ns/name', actions: ['pull' as const] };

describe('oci/transport', () => {
  it('hands out the raw bytes of a body and where they came from', async () => {
    registry.on({
      path: '/a',
      respond: { body: 'hello', headers: { 'content-encoding': 'gzip', 'x-a': 'b' } },
    });
    const transport = await bench.transportTo(registry.host, http);
    const url = `${registry.origin}/a`;
    const response = await transport.send({ method: 'GET', url });
    expect([response.status, response.url, response.headers.get('X-A')]).toEqual([200, url, 'b']);
    expect(await text(response.body)).toBe('hello');
    expect(registry.requests[0]?.headers['accept-encoding']).toBe('identity');
  });

  it('keeps one connection for requests that follow each other', async () => {
    registry.on({ path: '/a', respond: { body: 'hello' } });
    const transport = await bench.transportTo(registry.host, http);
    for (let i = 0; i < 5; i++) {
      await text((await transport.send({ method: 'GET', url: `${registry.origin}/a` })).body);
    }
    expect(registry.connections()).toBe(1);
  });

  it('sends buffers and streams, and holds a stream to the size that was announced', async () => {
    registry.on({ path: '/up', respond: { status: 201 } });
    const transport = await bench.transportTo(registry.host, http);
    const url = `${registry.origin}/up`;
    const body = (): Readable => Readable.from([Buffer.from('abc'), Buffer.from('def')]);
    await transport.send({ method: 'PUT', url, body: Buffer.from('xyz') });
    await transport.send({ method: 'PUT', url, body, bodySize: 6 });
    await transport.send({ method: 'PATCH', url, body });
    expect(registry.requests.map((request) => request.body.toString())).toEqual(['xyz', 'abcdef', 'abcdef']);
    expect(registry.requests.map((request) => request.headers['content-length'])).toEqual([
      '3',
      '6',
      undefined,
    ]);
    const short = await failureOf(transport.send({ method: 'PUT', url, body, bodySize: 7 }));
    expect(short.message).toContain('only 6 bytes');
    const long = await failureOf(transport.send({ method: 'PUT', url, body, bodySize: 5 }));
    expect(long.message).toContain('more bytes');
  });

  it('fails with the error of the body that cannot be read', async () => {
    const transport = await bench.transportTo(registry.host, http);
    const body = (): Readable => Readable.from(failing());
    async function* failing(): AsyncGenerator<Buffer> {
      yield Buffer.from('abc');
      throw new Error('disk gone');
    }
    const failure = await failureOf(
      transport.send({ method: 'PUT', url: `${registry.origin}/up`, body, bodySize: 10 }),
    );
    expect(failure.message).toContain('disk gone');
  });

  it('names the host and the bytes when a body is cut', async () => {
    registry.on({ path: '/cut', respond: { body: 'x'.repeat(1000), truncateAfter: 300 } });
    registry.on({ path: '/chunked', respond: { body: 'x'.repeat(1000), truncateAfter: 300, chunked: true } });
    const transport = await bench.transportTo(registry.host, http);
    const cut = await transport.send({ method: 'GET', url: `${registry.origin}/cut` });
    expect((await failureOf(text(cut.body))).message).toBe(
      `${registry.host}: connection cut after 300 of 1000 bytes`,
    );
    const chunked = await transport.send({ method: 'GET', url: `${registry.origin}/chunked` });
    expect(await failureOf(text(chunked.body))).toMatchObject({
      code: 'NETWORK',
      temporary: true,
      message: `${registry.host}: connection cut after 300 bytes`,
    });
  });

  it('gives up an answer that never comes and a body that stands still', async () => {
    registry.on({ path: '/hang', respond: { hang: true } });
    registry.on({
      path: '/still',
      respond: { body: 'x'.repeat(1000), drip: { bytes: 10, everyMs: 60_000 } },
    });
    const transport = await bench.transportTo(registry.host, { ...http, idleTimeoutMs: 80, maxAttempts: 1 });
    const hang = await failureOf(transport.send({ method: 'GET', url: `${registry.origin}/hang` }));
    expect(hang.message).toContain('nothing received for 0.08 s');
    const still = await transport.send({ method: 'GET', url: `${registry.origin}/still` });
    expect((await failureOf(text(still.body))).message).toContain('nothing received for');
  });

  it('gives up an upload that the registry does not read', async () => {
    const server = createTcpServer((socket) => void socket.pause());
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
    const host = `127.0.0.1:${(server.address() as { port: number }).port}`;
    const transport = await bench.transportTo(host, { ...http, idleTimeoutMs: 80, maxAttempts: 1 });
    const sources: Readable[] = [];
    const body = (): Readable => {
      sources.push(Readable.from(Array.from({ length: 1000 }, () => Buffer.alloc(65_536))));
      return sources[0] as Readable;
    };
    const url = `http://${host}/up`;
    const streamed = await failureOf(transport.send({ method: 'PUT', url, body, bodySize: 65_536_000 }));
    expect(streamed.message).toContain('nothing received for 0.08 s');
    expect(sources[0]?.destroyed).toBe(true);
    const buffered = await failureOf(transport.send({ method: 'PUT', url, body: Buffer.alloc(65_536_000) }));
    expect(buffered.message).toContain('nothing received for 0.08 s');
    server.close();
  });

  it('gives up the rest of an upload that was answered early', async () => {
    const server = createTcpServer((socket) => {
      socket.on('error', () => undefined);
      socket.once('data', () => socket.write('HTTP/1.1 413 Too Large\r\nContent-Length: 2\r\n\r\nno'));
    });
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
    const host = `127.0.0.1:${(server.address() as { port: number }).port}`;
    const transport = await bench.transportTo(host, http);
    let given = 0;
    async function* slow(): AsyncGenerator<Buffer> {
      for (; given < 1000; given++) {
        yield Buffer.alloc(1000);
        await new Promise((resolve) => setTimeout(resolve, 5));
      }
    }
    const source = Readable.from(slow());
    const url = `http://${host}/up`;
    const response = await transport.send({ method: 'PUT', url, body: () => source, bodySize: 1_000_000 });
    expect([response.status, await text(response.body)]).toEqual([413, 'no']);
    await new Promise((resolve) => source.once('close', resolve));
    expect(given).toBeLessThan(1000);
    server.close();
  });

  it('gives up a body that comes a byte at a time', async () => {
    const drip = { bytes: 1, everyMs: 20 };
    registry.on({ path: '/slow', respond: { body: 'x'.repeat(1000), drip } });
    const transport = await bench.transportTo(registry.host, { ...http, idleTimeoutMs: 100 });
    const slow = await transport.send({ method: 'GET', url: `${registry.origin}/slow` });
    expect((await failureOf(text(slow.body))).message).toMatch(/too slow: \d+ bytes in 0\.4 s/);
  });

  it('does not take a slow reader for a slow server', async () => {
    const size = 4_000_000;
    registry.on({ path: '/big', respond: { body: Buffer.alloc(size) } });
    const transport = await bench.transportTo(registry.host, { ...http, idleTimeoutMs: 40 });
    const { body } = await transport.send({ method: 'GET', url: `${registry.origin}/big` });
    await new Promise((resolve) => setTimeout(resolve, 300));
    expect((await readLimited(body, size, 'body')).length).toBe(size);
  });

  it('stops reading an endless body at the limit of the reader', async () => {
    registry.on({ path: '/endless', respond: { body: 'x'.repeat(65_536), endless: true } });
    const transport = await bench.transportTo(registry.host, http);
    const { body } = await transport.send({ method: 'GET', url: `${registry.origin}/endless` });
    await expect(readLimited(body, 1_000_000, 'body')).rejects.toThrow(LimitError);
    expect(body.destroyed).toBe(true);
  });

  it('stops when cancelled: before, while waiting, and in the body', async () => {
    registry.on({ path: '/hang', respond: { hang: true } });
    registry.on({ path: '/endless', respond: { body: 'x'.repeat(65_536), endless: true } });
    const transport = await bench.transportTo(registry.host, http);
    const before = AbortSignal.abort();
    const url = `${registry.origin}/hang`;
    expect(await failureOf(transport.send({ method: 'GET', url, signal: before }))).toMatchObject({
      code: 'CANCELLED',
    });
    const waiting = new AbortController();
    setTimeout(() => waiting.abort(), 20);
    expect(await failureOf(transport.send({ method: 'GET', url, signal: waiting.signal }))).toMatchObject({
      code: 'CANCELLED',
    });
    const reading = new AbortController();
    const { body } = await transport.send({
      method: 'GET',
      url: `${registry.origin}/endless`,
      signal: reading.signal,
    });
    setTimeout(() => reading.abort(), 20);
    expect(await failureOf(readLimited(body, 1e12, 'body'))).toMatchObject({ code: 'CANCELLED' });
  });

  it('fails what is under way when it is closed', async () => {
    registry.on({ path: '/endless', respond: { body: 'x'.repeat(65_536), endless: true } });
    const connection = bench.connect(http);
    const [endpoint] = await connection.endpoints(registry.host, 'ns/name');
    const response = await endpoint?.transport.send({ method: 'GET', url: `${registry.origin}/endless` });
    connection.close();
    await expect(readLimited(response?.body as Readable, 1e12, 'body')).rejects.toThrow('connection cut');
  });
});

describe('oci/transport: redirects', () => {
  it('drops credentials and cookies at another origin, and never takes them up again', async () => {
    registry.on({ path: '/a', respond: { status: 307, headers: { location: `${other.origin}/b` } } });
    other.on({ path: '/b', respond: { status: 302, headers: { location: `${registry.origin}/c` } } });
    registry.on({ path: '/c', respond: { body: 'c' } });
    const transport = await bench.transportTo(registry.host, http);
    const headers = { Authorization: 'Bearer secret', Cookie: 'a=b', range: 'bytes=1-' };
    const response = await transport.send({ method: 'GET', url: `${registry.origin}/a`, headers });
    expect(await text(response.body)).toBe('c');
    expect(response.url).toBe(`${registry.origin}/c`);
    expect(other.authorizations()).toEqual([]);
    expect(other.requests[0]?.headers).not.toHaveProperty('cookie');
    expect(other.requests[0]?.headers.range).toBe('bytes=1-');
    expect(registry.authorizations()).toEqual(['Bearer secret']);
  });

  it('keeps credentials within the origin, and begins a streamed body again', async () => {
    registry.on({ path: '/a', respond: { status: 308, headers: { location: 'b?c=d' } } });
    registry.on({ path: '/b', respond: { status: 201 } });
    const transport = await bench.transportTo(registry.host, http);
    const body = (): Readable => Readable.from([Buffer.from('abc')]);
    const headers = { authorization: 'Bearer secret' };
    const url = `${registry.origin}/a`;
    const response = await transport.send({ method: 'PUT', url, headers, body, bodySize: 3 });
    expect([response.status, response.url]).toEqual([201, `${registry.origin}/b?c=d`]);
    expect(registry.requests[1]).toMatchObject({ method: 'PUT', authorization: 'Bearer secret' });
    expect(registry.requests[1]?.body.toString()).toBe('abc');
  });

  it('turns 303 into a GET without a body', async () => {
    registry.on({ path: '/a', respond: { status: 303, headers: { location: '/b' } } });
    registry.on({ path: '/b', respond: { body: 'b' } });
    const transport = await bench.transportTo(registry.host, http);
    await transport.send({ method: 'POST', url: `${registry.origin}/a`, body: Buffer.from('abc') });
    expect(registry.requests[1]).toMatchObject({ method: 'GET', body: Buffer.alloc(0) });
  });

  it('ends after ten redirects', async () => {
    registry.on({ path: '/loop', respond: { status: 302, headers: { location: '/loop' } } });
    const transport = await bench.transportTo(registry.host, http);
    const failure = await failureOf(transport.send({ method: 'GET', url: `${registry.origin}/loop` }));
    expect(failure.message).toBe(`${registry.host}: more than 10 redirects`);
    expect(registry.requests).toHaveLength(11);
  });

  it.each([
    ['file:///etc/passwd', 'redirect to file:'],
    ['http://user:secret@example.com/', 'user information'],
    ['http://', 'invalid URL'],
  ])('refuses a redirect to %s', async (location, problem) => {
    registry.on({ path: '/a', respond: { status: 302, headers: { location } } });
    const transport = await bench.transportTo(registry.host, http);
    const failure = await failureOf(transport.send({ method: 'GET', url: `${registry.origin}/a` }));
    expect(failure.message).toContain(problem);
    expect(failure.message).not.toContain('secret');
  });
});

describe('oci/transport: retry', () => {
  const ok: FaultResponse = { body: 'ok' };

  it.each<[string, FaultResponse]>([
    ['408', { status: 408 }],
    ['429 without a body', { status: 429 }],
    ['429 with an error body', { status: 429, body: '{"errors":[{"code":"TOOMANYREQUESTS"}]}' }],
    ['429 with Retry-After: 0', { status: 429, headers: { 'retry-after': '0' } }],
    ['429 with a date that is now', { status: 429, headers: { 'retry-after': new Date().toUTCString() } }],
    ['429 with a Retry-After that makes no sense', { status: 429, headers: { 'retry-after': '-5 parsecs' } }],
    ['500', { status: 500 }],
    ['502', { status: 502, body: '<html>' }],
    ['503', { status: 503 }],
    ['504', { status: 504, truncateAfter: 0, body: 'x' }],
    ['a reset connection', { reset: true }],
    ['a connection closed without an answer', { hangUp: true }],
  ])('tries again after %s', async (_name, fault) => {
    registry.on({ path: '/a', respond: [fault, ok] });
    const transport = await bench.transportTo(registry.host, http);
    const response = await transport.send({ method: 'GET', url: `${registry.origin}/a` });
    expect(await text(response.body)).toBe('ok');
    expect(registry.requests).toHaveLength(2);
  });

  it.each([400, 401, 403, 404, 405, 409, 413, 416, 501, 505])('does not try %i again', async (status) => {
    registry.on({ path: '/a', respond: { status } });
    const transport = await bench.transportTo(registry.host, http);
    await transport.send({ method: 'GET', url: `${registry.origin}/a` }).catch(() => undefined);
    expect(registry.requests).toHaveLength(1);
  });

  it('sends a streamed body from its beginning again', async () => {
    registry.on({ path: '/up', respond: [{ status: 503 }, { reset: true }, { status: 201 }] });
    const transport = await bench.transportTo(registry.host, http);
    const body = (): Readable => Readable.from([Buffer.from('abc'), Buffer.from('def')]);
    const url = `${registry.origin}/up`;
    expect((await transport.send({ method: 'PUT', url, body, bodySize: 6 })).status).toBe(201);
    expect(registry.requests.map((request) => request.body.toString())).toEqual([
      'abcdef',
      'abcdef',
      'abcdef',
    ]);
  });

  it('ends after five attempts with what the registry said', async () => {
    const body = '{"errors":[{"code":"UNAVAILABLE","message":"back soon"}]}';
    registry.on({ path: '/a', respond: { status: 503, body } });
    const transport = await bench.transportTo(registry.host, http);
    const failure = await failureOf(transport.send({ method: 'GET', url: `${registry.origin}/a`, scope }));
    expect(failure).toMatchObject({ status: 503, registryCodes: ['UNAVAILABLE'], code: 'REGISTRY' });
    expect(failure.message).toBe(
      `${registry.host}/ns/name: registry returned 503 Service Unavailable: back soon (after 5 attempts)`,
    );
    expect(registry.requests).toHaveLength(5);
  });

  it.each([
    ['seconds', '3600'],
    ['a date', new Date(Date.now() + 3_600_000).toUTCString()],
    ['more seconds than there will be', '99999999999999999999'],
  ])('fails at once when Retry-After lies beyond the deadline: %s', async (_name, retryAfter) => {
    registry.on({ path: '/a', respond: { status: 429, headers: { 'retry-after': retryAfter } } });
    const transport = await bench.transportTo(registry.host, http);
    const failure = await failureOf(transport.send({ method: 'GET', url: `${registry.origin}/a` }));
    expect(failure.message).toMatch(
      /registry returned 429 Too Many Requests \(asks to wait \d+ s, but only \S+ s of registry.retryTimeoutMs is left\)/,
    );
    expect(failure.hint).toBe('raise registry.retryTimeoutMs, or try again later');
    expect(registry.requests).toHaveLength(1);
  });

  it('ends when the time is used up, though attempts are left', async () => {
    registry.on({ path: '/a', respond: { status: 503 } });
    let time = 0;
    const options = { ...http, retryTimeoutMs: 60_000, maxAttempts: 50, now: () => (time += 10_000) };
    const transport = await bench.transportTo(registry.host, options);
    const failure = await failureOf(transport.send({ method: 'GET', url: `${registry.origin}/a` }));
    expect(failure).toMatchObject({ status: 503 });
    expect(registry.requests.length).toBeLessThan(5);
  });

  it('shares one retry time among all requests to a server that fails every one', async () => {
    let time = 0;
    registry.on({ path: '/a', respond: { status: 500 } });
    registry.on({ path: '/b', respond: [{ status: 500 }, { status: 500 }, ok, { status: 500 }, ok] });
    const options = { ...http, retryTimeoutMs: 60_000, maxAttempts: undefined, now: () => (time += 10_000) };
    const transport = await bench.transportTo(registry.host, options);
    const send = (path: string) => transport.send({ method: 'GET', url: `${registry.origin}${path}` });
    expect((await failureOf(send('/a'))).message).toMatch(
      /500 Internal Server Error \(after \d attempts in /,
    );
    const attempts = registry.requests.length;
    expect(attempts).toBeGreaterThan(1);
    for (const path of ['/b', '/b'])
      expect((await failureOf(send(path))).message).toMatch(/500 Internal Server Error$/);
    expect(registry.requests.length).toBe(attempts + 2);
    // A response ends the outage.
    await send('/b');
    await send('/b');
    expect(registry.requests.length).toBe(attempts + 5);
    await failureOf(send('/a'));
    // So does a pause: each request of a poll has the whole time.
    const before = registry.requests.length;
    time += 60_000;
    await failureOf(send('/a'));
    expect(registry.requests.length).toBe(before + attempts);
  });

  it('fails requests at once while a server stays out of reach, and tries again seconds later', async () => {
    let time = 0;
    registry.on({
      path: /^\/[ab]$/,
      respond: () => {
        time += 2_000;
        return { hang: true };
      },
    });
    // On a busy machine, a request may arrive late.
    const options = { ...http, retryTimeoutMs: 2_000, now: () => time };
    const transport = await bench.transportTo(registry.host, options);
    const send = (path: string) => transport.send({ method: 'GET', url: `${registry.origin}${path}`, scope });
    const first = await failureOf(send('/a'));
    expect(first.message).toBe(`${registry.host}/ns/name: no response within the retry time`);
    for (let i = 0; i < 100; i++) expect((await failureOf(send('/b'))).message).toBe(first.message);
    expect(registry.requests).toHaveLength(1);
    time += 5_000;
    registry.on({ path: '/b', respond: ok });
    await send('/b');
    await send('/b');
    expect(registry.requests).toHaveLength(3);
  });

  it('goes on for the whole time, however many attempts that takes', async () => {
    const away = Array.from({ length: 7 }, () => ({ reset: true }));
    registry.on({ path: '/a', respond: [...away, { body: 'hello' }] });
    const options = { ...http, retryTimeoutMs: 20_000, retryBaseDelayMs: 5, maxAttempts: undefined };
    const transport = await bench.transportTo(registry.host, options);
    const response = await transport.send({ method: 'GET', url: `${registry.origin}/a` });
    expect(await text(response.body)).toBe('hello');
    expect(registry.requests).toHaveLength(8);
  });

  it('tells the user, once, what keeps it waiting', async () => {
    let time = 0;
    registry.on({ path: '/a', respond: { status: 503 } });
    const options = { ...http, retryTimeoutMs: 60_000, maxAttempts: undefined, now: () => (time += 1_000) };
    const transport = await bench.transportTo(registry.host, options);
    await failureOf(transport.send({ method: 'GET', url: `${registry.origin}/a` }));
    const warnings = bench.logged.filter((line) => line.startsWith('warn:'));
    expect(warnings.length).toBeLessThan(4);
    expect(warnings[0]).toMatch(/503 Service Unavailable; retrying for up to \d+ s$/);
  });

  it('holds a single attempt to the time as well', async () => {
    registry.on({ path: '/a', respond: { hang: true } });
    const transport = await bench.transportTo(registry.host, { ...http, retryTimeoutMs: 60 });
    const failure = await failureOf(transport.send({ method: 'GET', url: `${registry.origin}/a`, scope }));
    expect(failure).toMatchObject({ code: 'NETWORK', hint: 'raise it with registry.retryTimeoutMs' });
  });

  it('reports the failure before the attempt that ran out of time', async () => {
    registry.on({ path: '/a', respond: [{ status: 503 }, { hang: true }] });
    const options = { ...http, retryTimeoutMs: 300, retryBaseDelayMs: 1, idleTimeoutMs: 60_000 };
    const transport = await bench.transportTo(registry.host, options);
    const failure = await failureOf(transport.send({ method: 'GET', url: `${registry.origin}/a`, scope }));
    expect(failure.message).toMatch(/503 Service Unavailable \(after 2 attempts in \S+ s\)$/);
    expect(failure.hint).toBeUndefined();
  });

  it('sends fewer requests at a time to a registry that has too many', async () => {
    let [running, refused] = [0, 0];
    const server = createServer((_request, response) => {
      const isTooMany = running >= 3;
      if (isTooMany) refused++;
      running++;
      setTimeout(() => {
        running--;
        response.writeHead(isTooMany ? 429 : 200).end();
      }, 5);
    });
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
    const host = `127.0.0.1:${(server.address() as { port: number }).port}`;
    const transport = await bench.transportTo(host, { ...http, maxAttempts: undefined });
    const send = () => transport.send({ method: 'GET', url: `http://${host}/a` });
    const sent = await Promise.all(Array.from({ length: 60 }, send));
    for (const { body } of sent) body.resume();
    expect(sent.map(({ status }) => status)).toEqual(sent.map(() => 200));
    // About a hundred; without a limit more than four hundred.
    expect(refused).toBeLessThan(200);
    server.close();
    server.closeAllConnections();
  });

  it('does not count the time in the queue of a throttled registry as time of retries', async () => {
    let [time, requests] = [0, 0];
    const respond = (status: number, url: string): TransportResponse => ({
      ...{ status, url, headers: new Headers({ 'retry-after': '0' }), body: Readable.from([]) },
      read: () => Promise.resolve(Buffer.alloc(0)),
      discard: () => undefined,
    });
    const next: Transport = {
      async send(request) {
        requests++;
        const number = requests;
        await sleep(5);
        // The first request that is admitted after throttling takes an hour.
        if (number === 3) time += 3_600_000;
        return respond([1, 2, 4].includes(number) ? 429 : 200, request.url);
      },
    };
    const budget = { timeoutMs: 1_000, baseDelayMs: 1, random: () => 0.5, now: () => time };
    const transport = withRetry(next, budget);
    const send = (path: string) => transport.send({ method: 'GET', url: `http://registry.example/${path}` });
    const responses = await Promise.all(['a', 'b'].map(send));
    expect(responses.map(({ status }) => status)).toEqual([200, 200]);
  });

  it('stops waiting when cancelled', async () => {
    registry.on({ path: '/a', respond: { status: 503 } });
    const transport = await bench.transportTo(registry.host, { ...http, retryBaseDelayMs: 30_000 });
    const controller = new AbortController();
    setTimeout(() => controller.abort(), 50);
    const url = `${registry.origin}/a`;
    expect(await failureOf(transport.send({ method: 'GET', url, signal: controller.signal }))).toMatchObject({
      code: 'CANCELLED',
    });
  });

  it('does not try a host again that does not exist', async () => {
    const transport = await bench.transportTo('no-such-host.invalid', http);
    const failure = await failureOf(
      transport.send({ method: 'GET', url: 'http://no-such-host.invalid/v2/' }),
    );
    expect(failure).toMatchObject({ code: 'NETWORK' });
    expect(failure.message).toMatch(/^no-such-host\.invalid: host /);
  });

  it('tries a refused connection again, and says so', async () => {
    const server = createTcpServer();
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
    const { port } = server.address() as { port: number };
    await new Promise((resolve) => server.close(resolve));
    const transport = await bench.transportTo(`127.0.0.1:${port}`, http);
    const failure = await failureOf(transport.send({ method: 'GET', url: `http://127.0.0.1:${port}/` }));
    expect(failure.message).toBe(`127.0.0.1:${port}: connection refused (after 5 attempts)`);
  });
});

describe('oci/transport: resolveUploadLocation', () => {
  const base = 'https://reg.example:5000/v2/ns/name/blobs/uploads/';
  it.each([
    ['/v2/ns/name/blobs/uploads/1?_state=x', 'https://reg.example:5000/v2/ns/name/blobs/uploads/1?_state=x'],
    ['1', 'https://reg.example:5000/v2/ns/name/blobs/uploads/1'],
    ['https://REG.example:5000/u/1', 'https://reg.example:5000/u/1'],
    ['?digest=a', 'https://reg.example:5000/v2/ns/name/blobs/uploads/?digest=a'],
  ])('resolves %s', (location, url) => {
    expect(resolveUploadLocation(base, location)).toBe(url);
  });
  it.each([
    'https://evil.example/u/1',
    'https://reg.example/u/1',
    'https://reg.example:5001/u/1',
    'http://reg.example:5000/u/1',
    '//evil.example/u/1',
    '\\\\evil.example/u/1',
    'https://user@reg.example:5000/u/1',
    'https://reg.example:5000@evil.example/',
    'ftp://reg.example:5000/',
  ])('refuses %s', (location) => {
    expect(() => resolveUploadLocation(base, location)).toThrow(/refused|not a valid URL/);
  });
  it('hints at a proxy that hides HTTPS from the registry', () => {
    const call = (): string => resolveUploadLocation('https://reg.example/v2/', 'http://reg.example/v2/u');
    expect(call).toThrow(expect.objectContaining({ hint: expect.stringContaining('X-Forwarded-Proto') }));
  });
});

describe('oci/transport: log', () => {
  it('shows no secret of a URL', () => {
    expect(
      describeUrl('https://u:secret@cdn.example/a?X-Amz-Signature=secret&digest=sha256:1&_state=secret'),
    ).toBe('https://cdn.example/a?digest=sha256:1&…');
  });

  it('tells each request and answer at debug level', async () => {
    registry.on({
      path: '/a',
      respond: { status: 307, headers: { location: `${other.origin}/b?sig=secret` } },
    });
    other.on({ path: '/b', respond: { body: 'b' } });
    const transport = await bench.transportTo(registry.host, http);
    await transport.send({
      method: 'GET',
      url: `${registry.origin}/a`,
      headers: { authorization: 'Basic secret' },
    });
    expect(bench.logged).toContain(`debug: GET ${registry.origin}/a: 307`);
    expect(bench.logged).toContain(`debug: GET ${other.origin}/b?…: 200`);
    expect(bench.logged.join('\n')).not.toContain('secret');
  });
});
