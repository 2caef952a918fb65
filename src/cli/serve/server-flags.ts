import { type Flag, flag, optional, parsed, repeated, text } from '../command/flags.js';
import { positiveInteger } from '../command/values.js';

/** Flags of servers over HTTP that limit who connects. */
export const connectionFlags = {
  maxConnections: parsed('count', 'maximum number of open connections (default: 1000)', positiveInteger, {
    group: 'Server',
  }),
  allowHost: repeated('name', 'allowed Host header of HTTP requests; others are refused', {
    group: 'Server',
  }),
};

/** Flags of servers with TLS. */
export const tlsFlags = {
  tlsCert: text('file', 'TLS certificate; reloaded when it changes', { group: 'Server' }),
  tlsKey: text('file', 'TLS private key', { group: 'Server' }),
};

/** Returns `--port` of a server. */
export function portFlag(port: string): Flag<string> {
  return text('port', 'port to listen on; 0 selects a free one', {
    short: 'p',
    default: port,
    group: 'Server',
  });
}

/** `--host` of servers that bind loopback unless told otherwise. */
export const loopbackHostFlag = text('address', 'address to listen on', {
  default: '127.0.0.1',
  group: 'Server',
});

/** Flags of every server of the gRPC registry API. */
export const registryServerFlags = {
  port: portFlag('50051'),
  host: text('address', 'address to listen on (default: all)', { group: 'Server' }),
  terminationLog: text('file', 'file for the failure message (default: /dev/termination-log, if it exists)', {
    short: 't',
    mayBeEmpty: true,
    group: 'Server',
  }),
  ...tlsFlags,
};

/** Flags of servers of the HTTP catalog API. */
export const catalogServerFlags = {
  http: optional('address', 'also serve the HTTP catalog API on HOST:PORT (default: 127.0.0.1:8080)', {
    group: 'Server',
  }),
  metricsListen: text('address', 'serve /metrics on HOST:PORT instead of the HTTP API address', {
    group: 'Server',
  }),
  externalUrl: text('url', 'base URL of the HTTP API', { group: 'Server' }),
  name: text('name', 'with --http: catalog name in URLs (default: from the directory or image)', {
    group: 'Server',
  }),
  storage: text('directory', 'storage directory of the HTTP API', { group: 'Server' }),
  tlsSelfSigned: flag('serve HTTPS with a temporary self-signed certificate', { group: 'Server' }),
  ...tlsFlags,
  ...connectionFlags,
};
