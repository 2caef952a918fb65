/**
 * A registry that can be told to misbehave: a real HTTP(S) server on loopback whose answers come from a
 * list of rules. The rule that was added last wins, so a test overrides what a helper set up.
 */
import { createHash } from 'node:crypto';
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import { createServer as createTlsServer } from 'node:https';
import type { AddressInfo, Socket } from 'node:net';

/** What the server saw. `path` includes the query. */
export interface RecordedRequest {
  method: string;
  path: string;
  headers: Record<string, string | string[] | undefined>;
  authorization: string | undefined;
  body: Buffer;
}

/** One answer. Without any field: 200, no body. */
export interface FaultResponse {
  status?: number;
  headers?: Record<string, string | string[]>;
  body?: string | Buffer;
  /** Announces the whole body, sends this many bytes of it, and cuts the connection. */
  truncateAfter?: number;
  /** No Content-Length: the body goes out chunked. */
  chunked?: boolean;
  /** Sends `bytes` of the body every `everyMs`; the header goes out at once. */
  drip?: { bytes: number; everyMs: number };
  /** Repeats the body until the client goes away. */
  endless?: boolean;
  /** Resets the connection instead of answering. */
  reset?: boolean;
  /** Closes the connection (no reset) instead of answering. */
  hangUp?: boolean;
  /** Takes the request and never answers. */
  hang?: boolean;
}

type Respond =
  FaultResponse | ((request: RecordedRequest, count: number) => FaultResponse | Promise<FaultResponse>);

export interface FaultRule {
  /** All methods when left out; GET also answers HEAD. */
  method?: string;
  /** Compared with the path without query when a string, matched against path and query when a RegExp. */
  path: string | RegExp;
  /** How often this rule applies; afterwards the rules below it do. */
  times?: number;
  /** A list is gone through one by one; its last element is repeated. `count` starts at 1. */
  respond: Respond | readonly Respond[];
}

export interface FaultRegistryOptions {
  /** A free one when left out. */
  port?: number;
  /** Serves HTTPS. `ca` asks clients for a certificate of that authority and refuses those without. */
  tls?: {
    cert: string;
    key: string;
    ca?: string;
    ciphers?: string;
    minVersion?: 'TLSv1' | 'TLSv1.1' | 'TLSv1.2';
    maxVersion?: 'TLSv1.1';
  };
}

/** How an answer is damaged: in its content, or on its way. */
export type Damage =
  | 'flipped bit'
  | 'wrong length'
  | 'portal page'
  | 'cut body'
  | 'reset'
  | 'status 503'
  | '1 B/s'
  | 'hanging body';

/** Damages that need nothing of the answer but its body. */
const brokenWays: Partial<Record<Damage, (body: Buffer) => FaultResponse>> = {
  'cut body': (body) => ({ truncateAfter: body.length >> 1 }),
  reset: () => ({ reset: true }),
  'status 503': () => ({ status: 503 }),
  '1 B/s': () => ({ drip: { bytes: 1, everyMs: 1000 } }),
  'hanging body': () => ({ drip: { bytes: 1, everyMs: 3_600_000 } }),
};

export interface FaultRegistry {
  /** `127.0.0.1:PORT` */
  host: string;
  port: number;
  /** `http://127.0.0.1:PORT` or https */
  origin: string;
  /** All requests, oldest first. */
  requests: RecordedRequest[];
  /** Every `Authorization` value that came in. */
  authorizations(): string[];
  on(rule: FaultRule): void;
  /** Runs before the rules; an answer ends the request. Used for challenges. */
  gate(check: (request: RecordedRequest) => FaultResponse | undefined): void;
  /** Serves a blob, ranges included; returns its digest. */
  serveBlob(repository: string, content: string | Buffer): string;
  /** Serves a manifest under `tag` (if given) and its digest; returns the digest. */
  serveManifest(
    repository: string,
    tag: string | undefined,
    content: string | Buffer,
    mediaType?: string,
  ): string;
  /** Answers 401 with a Bearer challenge unless the request carries `Bearer TOKEN`. */
  requireBearer(challenge: { realm: string; service?: string; scope?: string }, token: string): void;
  /** Answers 401 with a Basic challenge unless the request carries these credentials. */
  requireBasic(username: string, password: string): void;
  /** Is away from now on, for `ms`: resets every connection and every request that comes meanwhile. */
  goAway(ms: number): void;
  /** Damages the next answers, `times` each, to GETs of a path that the rules answer with 200. */
  damage(path: RegExp, how: Damage, times?: number): void;
  /** Ends all damage. */
  repair(): void;
  /** How many connections have been accepted. */
  connections(): number;
  /** Connections that are open now. */
  openConnections(): number;
  close(): Promise<void>;
}

export function sha256(content: string | Buffer): string {
  return `sha256:${createHash('sha256').update(content).digest('hex')}`;
}

export function basic(username: string, password: string): string {
  return `Basic ${Buffer.from(`${username}:${password}`).toString('base64')}`;
}

/** Starts a registry on a free port of 127.0.0.1. Unknown paths answer 404, `/v2/` answers 200. */
export async function startFaultRegistry(options: FaultRegistryOptions = {}): Promise<FaultRegistry> {
  const rules: { rule: FaultRule; count: number }[] = [];
  const gates: ((request: RecordedRequest) => FaultResponse | undefined)[] = [];
  const requests: RecordedRequest[] = [];
  const sockets = new Set<Socket>();
  let connections = 0;
  let awayUntil = 0;
  const damages: { path: RegExp; how: Damage; left: Map<string, number>; times: number }[] = [];

  /** The answer as a broken network delivers it. */
  function damaged(request: RecordedRequest, answer: FaultResponse): FaultResponse {
    const { status = 200, body = '' } = answer;
    if (request.method !== 'GET' || (status !== 200 && status !== 206)) return answer;
    for (const { path, how, left, times } of damages) {
      const count = left.get(request.path) ?? times;
      if (!path.test(request.path) || count === 0) continue;
      left.set(request.path, count - 1);
      const bytes = Buffer.from(body);
      const broken = brokenWays[how];
      if (broken !== undefined) return { ...answer, ...broken(bytes) };
      if (how === 'portal page') {
        return { headers: { 'content-type': 'text/html' }, body: '<html>Please log in to the Wi-Fi</html>' };
      }
      if (how === 'wrong length') return { ...answer, body: bytes.subarray(0, bytes.length - 1) };
      bytes[bytes.length >> 1] = (bytes[bytes.length >> 1] ?? 0) ^ 1;
      return { ...answer, body: bytes };
    }
    return answer;
  }

  async function handle(message: IncomingMessage, response: ServerResponse): Promise<void> {
    const chunks: Buffer[] = [];
    for await (const chunk of message) chunks.push(chunk as Buffer);
    const request: RecordedRequest = {
      method: message.method ?? '',
      path: message.url ?? '',
      headers: message.headers,
      authorization: message.headers.authorization,
      body: Buffer.concat(chunks),
    };
    requests.push(request);
    if (performance.now() < awayUntil) return send(request, message, response, { reset: true });
    for (const check of gates) {
      const answer = check(request);
      if (answer) return send(request, message, response, answer);
    }
    const found = rules.find(({ rule, count }) => matches(rule, request) && count < (rule.times ?? Infinity));
    if (!found) {
      const body = '{"errors":[{"code":"NAME_UNKNOWN","message":"not served here"}]}';
      const answer = request.path === '/v2/' ? { body: '{}' } : { status: 404, body };
      return send(request, message, response, answer);
    }
    found.count++;
    const steps = Array.isArray(found.rule.respond)
      ? (found.rule.respond as Respond[])
      : [found.rule.respond as Respond];
    const step = steps[Math.min(found.count, steps.length) - 1] as Respond;
    const answer = typeof step === 'function' ? await step(request, found.count) : step;
    return send(request, message, response, damaged(request, answer));
  }

  const listener = (message: IncomingMessage, response: ServerResponse): void => {
    handle(message, response).catch(() => message.socket.destroy());
  };
  const server: Server = options.tls
    ? createTlsServer(
        {
          ...options.tls,
          requestCert: options.tls.ca !== undefined,
          rejectUnauthorized: options.tls.ca !== undefined,
        },
        listener,
      )
    : createServer(listener);
  server.on('connection', (socket: Socket) => {
    connections++;
    sockets.add(socket);
    socket.on('close', () => sockets.delete(socket));
    socket.on('error', () => undefined);
  });
  server.on('tlsClientError', () => undefined);
  await new Promise<void>((resolve) => server.listen(options.port ?? 0, '127.0.0.1', resolve));
  const { port } = server.address() as AddressInfo;
  const host = `127.0.0.1:${port}`;

  const registry: FaultRegistry = {
    host,
    port,
    origin: `${options.tls ? 'https' : 'http'}://${host}`,
    requests,
    authorizations: () => requests.flatMap((request) => request.authorization ?? []),
    on: (rule) => void rules.unshift({ rule, count: 0 }),
    gate: (check) => void gates.push(check),
    serveBlob(repository, content) {
      const digest = sha256(content);
      registry.on({
        method: 'GET',
        path: `/v2/${repository}/blobs/${digest}`,
        respond: (request) => withRange(request, Buffer.from(content), digest),
      });
      return digest;
    },
    serveManifest(repository, tag, content, mediaType = 'application/vnd.oci.image.manifest.v1+json') {
      const digest = sha256(content);
      const headers = { 'content-type': mediaType, 'docker-content-digest': digest };
      for (const reference of tag === undefined ? [digest] : [digest, tag]) {
        registry.on({
          method: 'GET',
          path: `/v2/${repository}/manifests/${reference}`,
          respond: { headers, body: content },
        });
      }
      return digest;
    },
    requireBearer({ realm, service, scope }, token) {
      const parts = [`realm="${realm}"`];
      if (service !== undefined) parts.push(`service="${service}"`);
      if (scope !== undefined) parts.push(`scope="${scope}"`);
      registry.gate((request) =>
        !request.path.startsWith('/v2/') || request.authorization === `Bearer ${token}`
          ? undefined
          : { status: 401, headers: { 'www-authenticate': `Bearer ${parts.join(',')}` } },
      );
    },
    requireBasic(username, password) {
      registry.gate((request) =>
        request.authorization === basic(username, password)
          ? undefined
          : { status: 401, headers: { 'www-authenticate': 'Basic realm="test"' } },
      );
    },
    goAway(ms) {
      awayUntil = performance.now() + ms;
      for (const socket of sockets) socket.resetAndDestroy();
    },
    damage: (path, how, times = 1) => void damages.push({ path, how, left: new Map(), times }),
    repair: () => void damages.splice(0),
    connections: () => connections,
    openConnections: () => sockets.size,
    async close() {
      for (const socket of sockets) socket.destroy();
      await new Promise<void>((resolve) => server.close(() => resolve()));
    },
  };
  return registry;
}

function matches(rule: FaultRule, request: RecordedRequest): boolean {
  const method = request.method === 'HEAD' && rule.method === 'GET' ? 'GET' : request.method;
  if (rule.method !== undefined && rule.method !== method) return false;
  return typeof rule.path === 'string'
    ? request.path.split('?')[0] === rule.path
    : rule.path.test(request.path);
}

function withRange(request: RecordedRequest, content: Buffer, digest: string): FaultResponse {
  const headers = { 'content-type': 'application/octet-stream', 'docker-content-digest': digest };
  const range = /^bytes=(\d+)-(\d*)$/.exec(String(request.headers.range ?? ''));
  if (!range) return { headers: { ...headers, 'accept-ranges': 'bytes' }, body: content };
  const start = Number(range[1]);
  const end = range[2] ? Math.min(Number(range[2]), content.length - 1) : content.length - 1;
  if (start >= content.length)
    return { status: 416, headers: { 'content-range': `bytes */${content.length}` } };
  return {
    status: 206,
    headers: { ...headers, 'content-range': `bytes ${start}-${end}/${content.length}` },
    body: content.subarray(start, end + 1),
  };
}

async function send(
  request: RecordedRequest,
  message: IncomingMessage,
  response: ServerResponse,
  answer: FaultResponse,
): Promise<void> {
  const socket = message.socket;
  response.on('error', () => undefined);
  if (answer.hang) return;
  if (answer.reset) return void socket.resetAndDestroy();
  if (answer.hangUp) return void socket.destroy();
  const body = Buffer.from(answer.body ?? '');
  const streamed = answer.chunked === true || answer.endless === true;
  const length: Record<string, string> = streamed ? {} : { 'content-length': String(body.length) };
  response.writeHead(answer.status ?? 200, { ...length, ...answer.headers });
  if (request.method === 'HEAD') return void response.end();
  if (answer.truncateAfter !== undefined) {
    const part = body.subarray(0, answer.truncateAfter);
    response.flushHeaders();
    if (part.length > 0) await new Promise<void>((resolve) => response.write(part, () => resolve()));
    // Let the bytes leave before the connection goes.
    return void setImmediate(() => socket.destroy());
  }
  if (answer.drip) {
    response.flushHeaders();
    let offset = 0;
    const { bytes, everyMs } = answer.drip;
    const timer = setInterval(() => {
      if (socket.destroyed) return clearInterval(timer);
      if (offset >= body.length) {
        if (!answer.endless) {
          clearInterval(timer);
          return void response.end();
        }
        offset = 0;
      }
      response.write(body.subarray(offset, offset + bytes));
      offset += bytes;
    }, everyMs);
    timer.unref();
    return;
  }
  if (answer.endless) {
    while (!socket.destroyed) {
      const drained = response.write(body);
      if (drained) await new Promise((resolve) => setImmediate(resolve));
      else
        await new Promise<void>((resolve) => {
          const done = (): void => {
            response.off('drain', done).off('close', done);
            resolve();
          };
          response.once('drain', done);
          response.once('close', done);
        });
    }
    return;
  }
  response.end(body);
}
