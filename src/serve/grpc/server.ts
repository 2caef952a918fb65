import { randomUUID } from 'node:crypto';
import { createServer } from 'node:net';
import { createSecureContext } from 'node:tls';
import {
  type Metadata,
  type MethodDefinition,
  Server,
  ServerCredentials,
  type ServerDuplexStream,
  type ServerWritableStream,
  type ServiceDefinition,
  type UntypedServiceImplementation,
  experimental,
  logVerbosity,
  setLogVerbosity,
  status,
} from '@grpc/grpc-js';
import { OpmateError, messageOf, redact } from '../../core/errors.js';
import { quoteGo } from '../../document/go-json.js';
import { type Logger, silentLogger } from '../../core/log.js';
import type { ServerKeyPair } from '../server/certificate-files.js';
import { defaultMaxConnections } from '../server/http-server.js';
import { listenOn } from '../server/listening.js';
import { GrpcConnections } from './connections.js';
import { channelEntryType, encodeStruct, packageNameType, packageType, requestTypes } from './messages.js';
import { type Encodable, type MessageType, messageType } from './protobuf.js';
import type { AnswersSet } from './named-answers.js';
import { Reflection } from './reflection.js';
import type { RegistryAnswers } from './registry-answers.js';

/** Largest request; also gRPC's default. */
const maxRequestBytes = 4 * 1024 * 1024;
/** Calls that a connection may have at once; clients wait with the others. Each may hold one large answer. */
const maxStreamsPerConnection = 100;
/** What a stream may have handed over before its reader has taken it. */
const maxUnreadBytes = 256 * 1024;
/** Answers of calls with one that a connection may have unread; one where those of all connections are too large. */
const maxUnreadAnswers = 16;
const maxUnreadAnswerBytes = 64 * 1024 * 1024;
/** Streams that a connection may have at work; others wait. One where the unread of all connections is too large. */
const maxStreamsAtWork = 16;
/** A connection on which nothing comes for this long is asked whether it is alive, and dropped without an answer. */
const keepaliveMs = 60_000;
const keepaliveTimeoutMs = 20_000;
/** Longest text of an error: it becomes a header. */
const maxErrorLength = 2048;
/** How long `close` waits for calls that are under way, and then for what they have answered to be read. */
const closeGraceMs = 10_000;
const flushGraceMs = 5_000;
const pollMs = 10;

export interface RegistryServerOptions {
  /** Of one catalog, or of several by the `:authority` of calls. */
  answers: RegistryAnswers | AnswersSet;
  /** Address to listen on; all of them, IPv6 included where there is any, when left out. */
  host?: string | undefined;
  /** 0 takes a free port. */
  port: number;
  /** Plain text when left out. */
  certificate?: ServerKeyPair | undefined;
  /** Beyond it the longest idle connection makes room, or the new one is refused; 1000 when left out. */
  maxConnections?: number | undefined;
  /** Gets one line a call: method, code, duration and an id, never what was asked or answered. */
  logger?: Logger | undefined;
}

export interface RegistryServer {
  readonly port: number;
  /** What new connections are shown from now on. Throws for what is no certificate with its key. */
  replaceCertificate(certificate: ServerKeyPair): void;
  /** Takes no more calls, finishes those under way for some seconds, and ends. The answers stay open. */
  close(): Promise<void>;
}

/**
 * Serves `api.Registry`, `api.ExperimentalRegistry` where the answers have blobs, health and reflection.
 * Throws OpmateError IO where the port cannot be listened on.
 */
export async function startRegistryServer(options: RegistryServerOptions): Promise<RegistryServer> {
  const { answers, logger = silentLogger } = options;
  // What fails is thrown or told to callers; the library would print it.
  setLogVerbosity(logVerbosity.NONE);
  const server = new Server({
    'grpc.max_receive_message_length': maxRequestBytes,
    'grpc.max_send_message_length': -1,
    'grpc.max_concurrent_streams': maxStreamsPerConnection,
    'grpc.keepalive_time_ms': keepaliveMs,
    'grpc.keepalive_timeout_ms': keepaliveTimeoutMs,
    'grpc.keepalive_permit_without_calls': 1,
  });
  const open = new GrpcConnections({ max: options.maxConnections ?? defaultMaxConnections, logger });
  const calls = new Calls(open, logger);
  const find = finderOf(answers);
  const services = [registryService(find, calls), healthService(calls)];
  if ('lease' in answers || answers.listCustomSchemas !== undefined) {
    services.push(experimentalService(find, calls));
  }
  const versions = ['grpc.reflection.v1.ServerReflection', 'grpc.reflection.v1alpha.ServerReflection'];
  const reflection = new Reflection([...services.map(({ name }) => name), ...versions]);
  services.push(...versions.map((name) => reflectionService(name, reflection)));
  for (const { definition, handlers } of services) server.addService(definition, handlers);

  const identity = new Identity(options.certificate);
  const connections = server.createConnectionInjector(
    options.certificate === undefined
      ? ServerCredentials.createInsecure()
      : experimental.createCertificateProviderServerCredentials(identity, null, false),
  );
  // A socket server of our own, since that of the library does not let go of connections that say nothing.
  const listener = createServer({ noDelay: true }, (socket) => {
    socket.on('error', () => undefined);
    if (open.accept(socket)) connections.injectConnection(socket);
  });
  const port = await listenOn(listener, options);
  let closed: Promise<void> | undefined;
  const close = async (): Promise<void> => {
    listener.close();
    connections.drain(closeGraceMs);
    await within(closeGraceMs, () => calls.areOver());
    // What was answered is read to its end; who has never said anything waits for nothing.
    await within(flushGraceMs, () => open.sockets.every(({ bytesRead }) => bytesRead === 0));
    server.forceShutdown();
    for (const socket of open.sockets) socket.destroy();
  };
  return {
    port,
    replaceCertificate: (certificate) => identity.replace(certificate),
    close: () => (closed ??= close()),
  };
}

/** Waits until something holds, for no longer than this time. */
async function within(limitMs: number, holds: () => boolean): Promise<void> {
  const end = performance.now() + limitMs;
  while (!holds() && performance.now() < end) await new Promise((resolve) => setTimeout(resolve, pollMs));
}

type IdentityListener = (update: { certificate: Buffer; privateKey: Buffer } | null) => void;

/** Tells the server which certificate to show; the library's interface asks for more than it then uses. */
class Identity {
  readonly #listeners = new Set<IdentityListener>();
  #current: ServerKeyPair | undefined;

  constructor(current: ServerKeyPair | undefined) {
    this.#current = current;
  }

  replace(current: ServerKeyPair): void {
    // Of what does not fit the library would make a server that answers nobody.
    createSecureContext(current);
    this.#current = current;
    for (const listener of this.#listeners) listener({ certificate: current.cert, privateKey: current.key });
  }

  addIdentityCertificateListener(listener: IdentityListener): void {
    this.#listeners.add(listener);
    const current = this.#current;
    // The library hears only what it is told after this call.
    if (current !== undefined) {
      queueMicrotask(() => listener({ certificate: current.cert, privateKey: current.key }));
    }
  }

  removeIdentityCertificateListener(listener: IdentityListener): void {
    this.#listeners.delete(listener);
  }

  addCaCertificateListener(): void {
    // Clients show no certificates.
  }

  removeCaCertificateListener(): void {
    // Clients show no certificates.
  }
}

// Services. All messages are bytes for the library: what is sent is encoded already.

interface Service {
  name: string;
  definition: ServiceDefinition;
  handlers: UntypedServiceImplementation;
}

const asIs = (bytes: Buffer): Buffer => bytes;

function method(
  path: string,
  { streamsIn = false, streamsOut = false } = {},
): MethodDefinition<Buffer, Buffer> {
  return {
    path,
    requestStream: streamsIn,
    responseStream: streamsOut,
    requestSerialize: asIs,
    requestDeserialize: asIs,
    responseSerialize: asIs,
    responseDeserialize: asIs,
  };
}

type Unary = (request: Buffer, authority: string) => Uint8Array | Promise<Uint8Array>;
interface StreamCall {
  metadata: Metadata;
  authority: string;
}
type Stream = (request: Buffer, call: StreamCall) => Iterable<Uint8Array> | AsyncIterable<Uint8Array>;

class ServiceBuilder implements Service {
  readonly definition: Record<string, MethodDefinition<Buffer, Buffer>> = {};
  readonly handlers: UntypedServiceImplementation = {};
  readonly name: string;
  readonly #calls: Calls;
  readonly #level: 'info' | 'debug';

  constructor(name: string, calls: Calls, level: 'info' | 'debug' = 'info') {
    this.name = name;
    this.#calls = calls;
    this.#level = level;
  }

  unary(name: string, answer: Unary): this {
    const path = `/${this.name}/${name}`;
    // On the wire it is the same as a stream of one message, and only of streams the library tells what was taken.
    this.definition[name] = method(path, { streamsOut: true });
    this.handlers[name] = (call: ServerWritableStream<Buffer, Uint8Array>): void => {
      const end = this.#calls.begin(path, call.getPeer(), this.#level);
      call.once('cancelled', () => end(status.CANCELLED));
      const leave = this.#calls.unread.enter(call.getPeer(), (answered) => {
        if (call.cancelled) return answered.taken();
        call.once('cancelled', () => answered.taken());
        const fail = (error: unknown): void => {
          const told = statusOf(error);
          end(told.code, error);
          answered.taken();
          if (!call.cancelled) call.emit('error', told);
        };
        const succeed = (bytes: Uint8Array): void => {
          if (call.cancelled) return;
          end(status.OK);
          answered.with(bytes.length);
          call.write(bytes, () => answered.taken());
          call.end();
        };
        try {
          const bytes = answer(call.request, call.getHost());
          if (bytes instanceof Promise) bytes.then(succeed, fail);
          else succeed(bytes);
        } catch (error) {
          fail(error);
        }
      });
      call.once('cancelled', leave);
    };
    return this;
  }

  stream(name: string, answer: Stream): this {
    const path = `/${this.name}/${name}`;
    this.definition[name] = method(path, { streamsOut: true });
    this.handlers[name] = (call: ServerWritableStream<Buffer, Uint8Array>): void => {
      const end = this.#calls.begin(path, call.getPeer(), this.#level);
      call.once('cancelled', () => end(status.CANCELLED));
      const leave = this.#calls.streams.enter(call.getPeer(), (answered) => {
        // A call that is taken back at once, as many together may be, has been by then.
        setImmediate(() => {
          if (call.cancelled) return answered.taken();
          const messages = () => answer(call.request, { metadata: call.metadata, authority: call.getHost() });
          sendAll(call, messages, answered, () => end(status.OK))
            .catch((error: unknown) => {
              const told = statusOf(error);
              end(told.code, error);
              if (!call.cancelled) call.emit('error', told);
            })
            .finally(() => answered.taken());
        });
      });
      call.once('cancelled', leave);
    };
    return this;
  }
}

/** Sends messages as fast as they are read at the other end, and waits until all are, or the call is cancelled. */
async function sendAll(
  call: ServerWritableStream<Buffer, Uint8Array>,
  messages: () => Iterable<Uint8Array> | AsyncIterable<Uint8Array>,
  answered: Answered,
  sent: () => void,
): Promise<void> {
  let unread = 0;
  let wake: (() => void) | undefined;
  let wakeAtEnd: (() => void) | undefined;
  const awaken = (): void => {
    wake?.();
    wake = undefined;
    if (unread === 0 || call.cancelled) wakeAtEnd?.();
  };
  call.once('cancelled', awaken);
  for await (const message of messages()) {
    if (call.cancelled) return;
    unread += message.length;
    answered.with(message.length);
    call.write(message, () => {
      unread -= message.length;
      answered.with(-message.length);
      if (unread <= maxUnreadBytes) awaken();
    });
    while (unread > maxUnreadBytes && !call.cancelled) {
      await new Promise<void>((resolve) => (wake = resolve));
    }
  }
  if (call.cancelled) return;
  call.end();
  sent();
  // What is not read yet still counts.
  while (unread > 0 && !call.cancelled) await new Promise<void>((resolve) => (wakeAtEnd = resolve));
}

/** What a caller is told of a failure. All that upstream does not find is UNKNOWN. */
function statusOf(error: unknown): { code: number; details: string } {
  // What is cut off below need not be looked through: a name in a request may have megabytes.
  const details = redact(messageOf(error).slice(0, 4 * maxErrorLength));
  const shown =
    details.length > maxErrorLength
      ? `${details.slice(0, maxErrorLength).replace(/[\ud800-\udbff]$/, '')}…`
      : details;
  return { code: codeOf(error), details: shown };
}

function codeOf(error: unknown): number {
  if (!(error instanceof OpmateError)) return status.INTERNAL;
  switch (error.code) {
    case 'NOT_FOUND':
      return status.UNKNOWN;
    case 'USAGE':
      return status.INVALID_ARGUMENT;
    case 'UNSUPPORTED':
      return status.UNIMPLEMENTED;
    default:
      return status.INTERNAL;
  }
}

interface Answered {
  /** So many more bytes are unread. */
  with(bytes: number): void;
  /** Read at the other end, or not wanted any more. Only the first time counts. */
  taken(): void;
}

/** Answers of calls with one that are in the making or not read yet: a connection that does not read gets few. */
class UnreadAnswers {
  readonly #max: number;
  #bytes = 0;
  readonly #connections = new Map<string, { answers: number; waiting: (() => void)[] }>();

  constructor(max: number) {
    this.#max = max;
  }

  /** Calls `work`, at once or when earlier answers on the connection have been taken; what it returns gives up waiting. */
  enter(peer: string, work: (answered: Answered) => void): () => void {
    const connection = this.#connections.get(peer) ?? { answers: 0, waiting: [] };
    this.#connections.set(peer, connection);
    const hasRoom = (): boolean =>
      connection.answers === 0 || (connection.answers < this.#max && this.#bytes < maxUnreadAnswerBytes);
    // Later: of a connection that has gone the other calls are cancelled first.
    const startWaiting = (): void => {
      while (connection.waiting.length > 0 && hasRoom()) connection.waiting.shift()?.();
    };
    const start = (): void => {
      connection.answers++;
      let [held, isTaken] = [0, false];
      work({
        with: (bytes) => {
          if (isTaken) return;
          held += bytes;
          this.#bytes += bytes;
        },
        taken: () => {
          if (isTaken) return;
          isTaken = true;
          this.#bytes -= held;
          connection.answers--;
          if (connection.waiting.length > 0) setImmediate(startWaiting);
          else if (connection.answers === 0) this.#connections.delete(peer);
        },
      });
    };
    if (connection.waiting.length === 0 && hasRoom()) start();
    else connection.waiting.push(start);
    return () => {
      const place = connection.waiting.indexOf(start);
      if (place >= 0) connection.waiting.splice(place, 1);
    };
  }
}

/** Knows which calls are under way, and logs them when they end. */
class Calls {
  readonly unread = new UnreadAnswers(maxUnreadAnswers);
  readonly streams = new UnreadAnswers(maxStreamsAtWork);
  readonly #connections: GrpcConnections;
  readonly #logger: Logger;
  #underWay = 0;

  constructor(connections: GrpcConnections, logger: Logger) {
    this.#connections = connections;
    this.#logger = logger;
  }

  areOver(): boolean {
    return this.#underWay === 0;
  }

  /** Returns what is to be told the end; only the first one counts. */
  begin(path: string, peer: string, level: 'info' | 'debug'): (code: number, error?: unknown) => void {
    const start = performance.now();
    const endOfCall = this.#connections.begin(peer);
    let isOver = false;
    this.#underWay++;
    return (code, error) => {
      if (isOver) return;
      isOver = true;
      this.#underWay--;
      endOfCall(code === status.CANCELLED);
      const fault = code === status.INTERNAL ? { error: messageOf(error) } : {};
      this.#logger.log(code === status.INTERNAL ? 'error' : level, 'finished call', {
        id: randomUUID(),
        method: path,
        code: status[code],
        durationMs: Math.round((performance.now() - start) * 100) / 100,
        ...fault,
      });
    };
  }
}

function* encoded<T extends object>(
  items: Iterable<Encodable<T>>,
  type: MessageType<T>,
): Generator<Uint8Array> {
  for (const item of items) yield type.encode(item);
}

/** Passes the answers for an authority to work, and keeps them open until that is done. */
interface Finder {
  unary(authority: string, work: (answers: RegistryAnswers) => Awaitable<Uint8Array>): Awaitable<Uint8Array>;
  stream(authority: string, work: (answers: RegistryAnswers) => Messages): Messages;
}

type Awaitable<T> = T | Promise<T>;
type Messages = Iterable<Uint8Array> | AsyncIterable<Uint8Array>;

function finderOf(answers: RegistryAnswers | AnswersSet): Finder {
  if (!('lease' in answers)) {
    return { unary: (_, work) => work(answers), stream: (_, work) => work(answers) };
  }
  return {
    async unary(authority, work) {
      const lease = await answers.lease(authority);
      try {
        return await work(lease.answers);
      } finally {
        lease.release();
      }
    },
    async *stream(authority, work) {
      const lease = await answers.lease(authority);
      try {
        yield* work(lease.answers);
      } finally {
        lease.release();
      }
    },
  };
}

function registryService(find: Finder, calls: Calls): Service {
  const service = new ServiceBuilder('api.Registry', calls);
  const unary = <T>(
    name: string,
    type: { decode(bytes: Buffer): T },
    answer: (answers: RegistryAnswers, request: T) => Awaitable<Uint8Array>,
  ): void => {
    service.unary(name, (bytes, authority) => {
      const request = type.decode(bytes);
      return find.unary(authority, (answers) => answer(answers, request));
    });
  };
  const stream = (name: string, answer: (answers: RegistryAnswers, request: Buffer) => Messages): void => {
    service.stream(name, (request, { authority }) =>
      find.stream(authority, (answers) => answer(answers, request)),
    );
  };
  stream('ListPackages', (answers) =>
    encoded(
      answers.listPackages().map((name) => ({ name })),
      packageNameType,
    ),
  );
  unary('GetPackage', requestTypes.getPackage, (answers, { name }) =>
    packageType.encode(answers.getPackage(name)),
  );
  unary('GetBundle', requestTypes.getBundle, (answers, { pkgName, channelName, csvName }) =>
    answers.getBundle(pkgName, channelName, csvName),
  );
  unary('GetBundleForChannel', requestTypes.getBundleInChannel, (answers, { pkgName, channelName }) =>
    answers.getBundleForChannel(pkgName, channelName),
  );
  stream('GetChannelEntriesThatReplace', (answers, request) => {
    const { csvName } = requestTypes.getAllReplacements.decode(request);
    return encoded(answers.getChannelEntriesThatReplace(csvName), channelEntryType);
  });
  unary('GetBundleThatReplaces', requestTypes.getReplacement, (answers, { csvName, pkgName, channelName }) =>
    answers.getBundleThatReplaces(csvName, pkgName, channelName),
  );
  stream('GetChannelEntriesThatProvide', (answers, request) => {
    const api = requestTypes.getAllProviders.decode(request);
    return encoded(answers.getChannelEntriesThatProvide(api), channelEntryType);
  });
  stream('GetLatestChannelEntriesThatProvide', (answers, request) => {
    const api = requestTypes.getLatestProviders.decode(request);
    return encoded(answers.getLatestChannelEntriesThatProvide(api), channelEntryType);
  });
  unary('GetDefaultBundleThatProvides', requestTypes.getDefaultProvider, (answers, api) =>
    answers.getDefaultBundleThatProvides(api),
  );
  stream('ListBundles', (answers) => answers.listBundles());
  return service;
}

const customNamePattern = /^[a-zA-Z0-9][a-zA-Z0-9._-]*$/;

function experimentalService(find: Finder, calls: Calls): Service {
  async function* listCustomSchemas(
    request: Buffer,
    { metadata, authority }: StreamCall,
  ): AsyncGenerator<Uint8Array> {
    if (metadata.get('x-acknowledge-experimental')[0] !== 'true') return;
    const { schema, packageName } = requestTypes.listCustomSchemas.decode(request);
    if (schema === '') throw new OpmateError('USAGE', 'schema is required');
    for (const [what, name] of Object.entries({ schema, packageName })) {
      if (name === '' || customNamePattern.test(name)) continue;
      const fault = `invalid ${what} ${quoteGo(name)}: must match ${customNamePattern.source}`;
      throw new OpmateError('USAGE', `invalid custom schema query: ${fault}`);
    }
    yield* find.stream(authority, async function* (answers) {
      const blobs = answers.listCustomSchemas?.(schema, packageName) ?? [];
      for await (const blob of blobs) yield encodeStruct(blob);
    });
  }
  return new ServiceBuilder('api.ExperimentalRegistry', calls).stream(
    'ExperimentalListPackageCustomSchemas',
    listCustomSchemas,
  );
}

/** Always serving, whatever service is asked for: before there is something to serve, nobody can ask. */
function healthService(calls: Calls): Service {
  const serving = messageType<{ status: number }>('grpc.health.v1.HealthCheckResponse').encode({ status: 1 });
  return new ServiceBuilder('grpc.health.v1.Health', calls, 'debug').unary('Check', () => serving);
}

function reflectionService(name: string, reflection: Reflection): Service {
  const path = `/${name}/ServerReflectionInfo`;
  return {
    name,
    definition: { ServerReflectionInfo: method(path, { streamsIn: true, streamsOut: true }) },
    handlers: {
      ServerReflectionInfo: (call: ServerDuplexStream<Buffer, Uint8Array>): void => {
        call.on('data', (request: Buffer) => {
          try {
            // What is asked next waits until this is on its way.
            call.pause();
            call.write(reflection.respond(request), () => call.resume());
          } catch (error) {
            call.emit('error', statusOf(error));
          }
        });
        call.on('end', () => call.end());
        call.on('error', () => undefined);
      },
    },
  };
}
