import { type Flag, flag, grouped, optionalValue, parsed, repeated, text } from '../command/flags.js';
import { integer } from '../command/values.js';

/** Flags of HTTP servers for connections. */
export const connectionFlags = grouped('Server', {
  maxConnections: parsed('count', 'maximum number of open connections (default: 1000)', integer(1)),
  allowHost: repeated('name', 'allowed Host header of HTTP requests; others are refused'),
});

/** Flags of servers with TLS. */
export const tlsFlags = grouped('Server', {
  tlsCert: text('file', 'TLS certificate; reloaded when it changes', { needs: 'tlsKey' }),
  tlsKey: text('file', 'TLS private key', { needs: 'tlsCert' }),
});

/** Returns `--port` of a server. */
export function portFlag(port: number): Flag<number> {
  return parsed('port', 'port to listen on; 0 selects a free one', integer(0, 65535), {
    short: 'p',
    default: port,
    group: 'Server',
  });
}

/** `--host` of servers that listen on loopback by default. */
export const loopbackHostFlag = text('address', 'address to listen on', {
  default: '127.0.0.1',
  group: 'Server',
});

/** Flags of every server of the gRPC registry API. */
export const registryServerFlags = {
  port: portFlag(50051),
  ...grouped('Server', {
    host: text('address', 'address to listen on (default: all)'),
    terminationLog: text(
      'file',
      'file for the failure message (default: /dev/termination-log, if it exists)',
      { short: 't', mayBeEmpty: true },
    ),
  }),
  ...tlsFlags,
};

const overHttp = { needs: ['http', 'catalogs'] };

/** Flags of servers of the HTTP catalog API. */
export const catalogServerFlags = {
  ...grouped('Server', {
    http: optionalValue('address', 'also serve the HTTP catalog API on HOST:PORT (default: 127.0.0.1:8080)'),
    metricsListen: text('address', 'serve /metrics on HOST:PORT instead of the HTTP API address', overHttp),
    externalUrl: text('url', 'base URL of the HTTP API (default: the listen address)', overHttp),
    name: text('name', 'with --http: catalog name in URLs (default: from the directory or image)', {
      needs: 'http',
      excludes: ['catalogs'],
    }),
    storage: text(
      'directory',
      'storage directory of the HTTP API (default: temporary, or in the cache with --catalogs)',
      overHttp,
    ),
    tlsSelfSigned: flag('serve HTTPS with a temporary self-signed certificate', {
      ...overHttp,
      excludes: ['tlsCert', 'grpc'],
    }),
  }),
  ...tlsFlags,
  ...connectionFlags,
};
