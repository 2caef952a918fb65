import { type ServerHttp2Session, performServerHandshake } from 'node:http2';
import type { Socket } from 'node:net';

/** Maximum open calls per connection; clients queue further ones. */
export const maxStreamsPerConnection = 100;
/** Maximum size of request headers in bytes, and number of fields. */
const maxHeaderBytes = 64 * 1024;
const maxHeaderFields = 128;
/** Maximum memory of a connection in megabytes: queued replies, which `ReplyLimit` bounds, and the state of streams. */
const maxSessionMegabytes = 128;
/** Maximum invalid frames and refused streams per connection, over its lifetime. */
const maxFaults = 1_000;
/** Interval of pings, and the time after which a connection without a reply is closed. */
const keepaliveMs = 60_000;
const keepaliveTimeoutMs = 20_000;

/**
 * Opens the HTTP/2 session of a connection, with a ping a minute. A client that violates the protocol or the limits is
 * disconnected: floods of pings, settings, resets, empty frames or header blocks by `node:http2` itself.
 */
export function openHttp2Session(socket: Socket): ServerHttp2Session {
  const session = performServerHandshake(socket, {
    maxSessionMemory: maxSessionMegabytes,
    maxSessionInvalidFrames: maxFaults,
    maxSessionRejectedStreams: maxFaults,
    maxHeaderListPairs: maxHeaderFields,
    settings: { maxConcurrentStreams: maxStreamsPerConnection, maxHeaderListSize: maxHeaderBytes },
  });
  // The socket reports the end of the connection.
  session.on('error', () => undefined);
  keepAlive(socket, session);
  return session;
}

/** Pings a connection regularly, and closes it without a reply. */
function keepAlive(socket: Socket, session: ServerHttp2Session): void {
  let expiry: NodeJS.Timeout | undefined;
  const timer = setTimeout(ping, keepaliveMs).unref();
  socket.once('close', () => {
    clearTimeout(timer);
    clearTimeout(expiry);
  });

  function ping(): void {
    if (session.destroyed) return;
    expiry = setTimeout(() => socket.destroy(), keepaliveTimeoutMs).unref();
    session.ping(() => {
      clearTimeout(expiry);
      timer.refresh();
    });
  }
}
