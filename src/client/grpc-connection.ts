import {
  Client,
  ChannelCredentials,
  connectivityState,
  Metadata,
  type ServiceError,
  logVerbosity,
  setLogVerbosity,
  status,
} from '@grpc/grpc-js';
import { onAbort, sleep } from '../core/concurrency.js';
import {
  CancelledError,
  type ErrorCode,
  LimitError,
  OpmateError,
  getMessage,
  throwIfCancelled,
} from '../core/errors.js';
import { oneLine } from '../oci/transport/transport-responses.js';
import { NetworkError, connectionFaults } from '../oci/transport/transport-faults.js';
import { type ClientOptions, certificateHint, maxShownText, resolveWaits } from './client-options.js';

interface GrpcConnectionOptions extends ClientOptions {
  tls: boolean;
  maxMessageBytes: number;
}

interface GrpcCall {
  /** Path `/package.Service/Method`. */
  path: string;
  request: Buffer;
  metadata?: Record<string, string>;
  /** Maximum bytes of all messages; default: unlimited. */
  maxBytes?: number;
  signal: AbortSignal | undefined;
}

const identity = (bytes: Buffer): Buffer => bytes;
const maxReconnectMs = 5_000;

/** Calls to one server, with messages as bytes. */
export class GrpcChannel {
  readonly #client: Client;
  readonly #address: string;
  readonly #waits: ReturnType<typeof resolveWaits>;

  constructor(address: string, options: GrpcConnectionOptions) {
    // Failures are thrown; the library would print them.
    setLogVerbosity(logVerbosity.NONE);
    this.#address = address;
    this.#waits = resolveWaits(options);
    const reconnectMs = Math.max(1, Math.min(this.#waits.retryDelayMs, maxReconnectMs));
    this.#client = new Client(address, getCredentials(options), {
      'grpc.max_receive_message_length': options.maxMessageBytes,
      'grpc.initial_reconnect_backoff_ms': reconnectMs,
      'grpc.max_reconnect_backoff_ms': maxReconnectMs,
      // No settings from the environment, no shared connections, no configuration by DNS.
      'grpc.enable_http_proxy': 0,
      'grpc.use_local_subchannel_pool': 1,
      'grpc.service_config_disable_resolution': 1,
    });
  }

  /** Waits until the server is reachable. Throws NetworkError on time-out, and CancelledError. */
  async ready(timeoutMs: number, signal?: AbortSignal): Promise<void> {
    throwIfCancelled(signal);
    let stop = (): void => undefined;
    const ready = new Promise<void>((resolve, reject) => {
      const fail = async (): Promise<void> => {
        const late = `no connection within ${timeoutMs / 1000} s`;
        const fault = await this.#findFault();
        const problem = fault === undefined ? late : `${fault} (${late})`;
        reject(new NetworkError(problem, { subject: this.#address, temporary: false }));
      };
      const timer = setTimeout(() => void fail(), timeoutMs);
      const unwatch = onAbort(signal, () =>
        reject(new CancelledError('interrupted', { subject: this.#address })),
      );
      stop = () => {
        clearTimeout(timer);
        unwatch();
      };
      // No deadline: the idle time-out of the client applies.
      this.#client.waitForReady(Infinity, (error) => (error ? void fail() : resolve()));
    });
    await ready.finally(() => stop());
  }

  /** Returns why the last connection failed; undefined while it is being made. */
  async #findFault(): Promise<string | undefined> {
    const state = this.#client.getChannel().getConnectivityState(false);
    if (state !== connectivityState.TRANSIENT_FAILURE) return undefined;
    return new Promise((resolve) => {
      // In this state a call fails immediately, with the reason.
      const call = this.#client.makeUnaryRequest('/', identity, identity, Buffer.of(), (error) =>
        resolve(error === null ? undefined : describeUnavailable(error.details)),
      );
      call.on('error', () => undefined);
    });
  }

  /** Returns the single message of a response. */
  async call(call: GrpcCall): Promise<Buffer> {
    let single: Buffer | undefined;
    // Read to the end, where errors are reported.
    for await (const message of this.stream(call)) {
      if (single !== undefined) {
        throw new OpmateError('INVALID', 'more than one message in the response', { subject: this.#address });
      }
      single = message;
    }
    if (single !== undefined) return single;
    throw new OpmateError('INVALID', 'no message in the response', { subject: this.#address });
  }

  /**
   * Yields the messages of a response. Retries an unreachable server until the first message; leaving the stream
   * cancels the call.
   */
  async *stream(call: GrpcCall): AsyncGenerator<Buffer, void, undefined> {
    const { maxAttempts, retryDelayMs, random } = this.#waits;
    for (let attempt = 1; ; attempt++) {
      let hasStarted = false;
      try {
        for await (const message of this.#streamOnce(call)) {
          hasStarted = true;
          yield message;
        }
        return;
      } catch (error) {
        const isTemporary = error instanceof NetworkError && error.temporary && !hasStarted;
        if (!isTemporary) throw error;
        if (attempt >= maxAttempts) {
          if (attempt === 1) throw error;
          const { subject, problem, hint, cause } = error;
          throw new NetworkError(`${problem} (after ${attempt} attempts)`, {
            subject,
            temporary: true,
            hint,
            cause,
          });
        }
        const delay = retryDelayMs * 2 ** (attempt - 1) * (0.5 + random() / 2);
        await sleep(delay, call.signal);
      }
    }
  }

  async *#streamOnce({ path, request, metadata = {}, maxBytes = Infinity, signal }: GrpcCall) {
    throwIfCancelled(signal);
    const headers = new Metadata();
    for (const [name, value] of Object.entries(metadata)) headers.set(name, value);
    const call = this.#client.makeServerStreamRequest(path, identity, identity, request, headers);
    // Events after the call was left are ignored.
    call.on('error', () => undefined);
    let isStalled = false;
    const unwatch = onAbort(signal, () => call.cancel());
    const messages = call[Symbol.asyncIterator]() as AsyncIterator<Buffer>;
    let total = 0;
    try {
      for (;;) {
        const timer = setTimeout(() => {
          isStalled = true;
          call.cancel();
        }, this.#waits.idleTimeoutMs);
        let next: IteratorResult<Buffer>;
        try {
          next = await messages.next();
        } catch (error) {
          throwIfCancelled(signal);
          throw isStalled ? this.#createStallError() : this.#toError(error);
        } finally {
          clearTimeout(timer);
        }
        throwIfCancelled(signal);
        if (next.done === true) return;
        total += next.value.length;
        if (total > maxBytes) {
          throw new LimitError(`response larger than ${maxBytes} bytes`, { subject: this.#address });
        }
        yield next.value;
      }
    } finally {
      unwatch();
      call.cancel();
    }
  }

  close(): void {
    this.#client.close();
  }

  #createStallError(): NetworkError {
    const seconds = Number((this.#waits.idleTimeoutMs / 1000).toPrecision(3));
    return new NetworkError(`nothing received for ${seconds} s`, {
      subject: this.#address,
      temporary: false,
    });
  }

  #toError(error: unknown): OpmateError {
    const { code, details } = error as Partial<ServiceError>;
    const text = oneLine(typeof details === 'string' ? details : getMessage(error), maxShownText);
    const message = `${this.#address}: ${text}`;
    const cause = error;
    switch (code) {
      case status.UNAVAILABLE: {
        const hint = /certificate|self.signed/i.test(text) ? certificateHint : undefined;
        const problem = describeUnavailable(text);
        return new NetworkError(problem, {
          subject: this.#address,
          temporary: hint === undefined,
          hint,
          cause,
        });
      }
      case status.DEADLINE_EXCEEDED:
        return new NetworkError(message, { temporary: false, cause });
      case status.CANCELLED:
        return new CancelledError(message, { cause });
      case status.RESOURCE_EXHAUSTED:
        return new LimitError(message, { cause });
      default: {
        // The API uses UNKNOWN for missing content, and for all errors without another code.
        const isMissing = code === status.UNKNOWN && isNotFound(text);
        return new OpmateError(isMissing ? 'NOT_FOUND' : (errorCodes.get(code) ?? 'REGISTRY'), message, {
          cause,
        });
      }
    }
  }
}

/** Returns the reason of an unreachable server in the words of other clients, if it is a known one. */
function describeUnavailable(details: string): string {
  // An HTTP/1 server answers the preface of HTTP/2 with text.
  if (/Protocol error|ERR_HTTP2_ERROR/i.test(details)) return 'not a gRPC server: its reply is not HTTP/2';
  const code = /Name resolution failed/.test(details) ? 'ENOTFOUND' : /\bE[A-Z]{4,}\b/.exec(details)?.[0];
  return connectionFaults[code ?? '']?.text ?? oneLine(details, maxShownText);
}

const errorCodes: ReadonlyMap<status | undefined, ErrorCode> = new Map([
  [status.NOT_FOUND, 'NOT_FOUND'],
  [status.INVALID_ARGUMENT, 'USAGE'],
  [status.UNIMPLEMENTED, 'UNSUPPORTED'],
  [status.UNAUTHENTICATED, 'AUTH'],
  [status.PERMISSION_DENIED, 'AUTH'],
]);

/** Reports whether a text of opm's servers means not found. */
function isNotFound(text: string): boolean {
  return / not found$/.test(text) || /^no (channel )?(entry|entries) found /.test(text);
}

function getCredentials({ tls, ca }: GrpcConnectionOptions): ChannelCredentials {
  if (!tls) return ChannelCredentials.createInsecure();
  return ChannelCredentials.createSsl(ca === undefined ? null : Buffer.from(ca));
}
