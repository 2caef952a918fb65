import { defineCommand } from '../command/declaration.js';
import { type FlagValues, flag, parsed, text } from '../command/flags.js';
import { milliseconds } from '../command/values.js';
import { checkAuthorities } from '../../client/client-options.js';
import { GrpcConnection } from '../../client/grpc-connection.js';
import { checkHealth } from '../../client/health.js';
import { CancelledError, OpmateError, fileError, getMessage, redact } from '../../core/errors.js';
import { maxPemBytes } from '../../oci/transport/certificates.js';
import { readNamedFile } from '../../files/read-file.js';
import { exitCodes } from '../exit-codes.js';
import { writeAll } from '../output.js';
import { printable } from '../printable.js';

/** Exit codes of grpc_health_probe, which clusters and their manifests know. */
const probeCodes = { usage: 1, noConnection: 2, noAnswer: 3, unhealthy: 4 } as const;

const flags = {
  addr: text('host:port', 'server address', { default: 'localhost:50051' }),
  service: text('name', 'service to check (default: the whole server)'),
  connectTimeout: parsed('duration', 'connection timeout', milliseconds, {
    default: 1000,
    defaultText: '1s',
  }),
  rpcTimeout: parsed('duration', 'response timeout', milliseconds, {
    default: 1000,
    defaultText: '1s',
  }),
  tls: flag('use TLS'),
  tlsCaCert: text('file', 'trust only the certificate authorities in this PEM file'),
};

/**
 * `opmate probe`: whether a gRPC server is well, with the options and exit codes of grpc_health_probe. Prints what it
 * says of itself.
 */
export const command = defineCommand({
  summary: "check a gRPC server's health; the result is the exit code",
  tool: 'opm',
  flags,
  examples: [
    ['Check the server on this machine', 'opmate probe'],
    ['Check a server over TLS', 'opmate probe --addr registry.example.com:50051 --tls --tls-ca-cert ca.crt'],
  ],
  async run({ context, options }) {
    const { service = '', connectTimeout, rpcTimeout } = options;
    const fail = (error: unknown, code: number): number => {
      if (error instanceof CancelledError || context.signal.aborted) throw error;
      const hint = error instanceof OpmateError && error.hint !== undefined ? `hint: ${error.hint}\n` : '';
      context.stderr.write(`${printable(redact(getMessage(error)))}\n${hint}`);
      return code;
    };
    let connection: GrpcConnection;
    try {
      connection = await readConnection(options, rpcTimeout);
    } catch (error) {
      return fail(error, probeCodes.usage);
    }
    try {
      try {
        await connection.ready(connectTimeout, context.signal);
      } catch (error) {
        return fail(error, probeCodes.noConnection);
      }
      const status = await checkHealth(connection, service, context);
      await writeAll(context.stdout, `status: ${status}\n`);
      return status === 'SERVING' ? exitCodes.done : probeCodes.unhealthy;
    } catch (error) {
      return fail(error, probeCodes.noAnswer);
    } finally {
      connection.close();
    }
  },
});

async function readConnection(
  options: FlagValues<typeof flags>,
  idleTimeoutMs: number,
): Promise<GrpcConnection> {
  const { addr, tls, tlsCaCert } = options;
  const [, host = '', port] = /^(\[[\da-fA-F:.]+\]|[\w.-]*):(\d{1,5})$/.exec(addr) ?? [];
  if (port === undefined || Number(port) > 65_535) {
    throw new OpmateError('USAGE', `--addr ${addr}: not the address of a server`, {
      hint: 'give host and port, e.g. localhost:50051 or :50051',
    });
  }
  if (tlsCaCert !== undefined && !tls) {
    throw new OpmateError('USAGE', '--tls-ca-cert: needs --tls', { hint: 'add --tls' });
  }
  const ca =
    tlsCaCert === undefined
      ? undefined
      : await readNamedFile(tlsCaCert, maxPemBytes).catch((error: unknown) => {
          throw fileError(tlsCaCert, error, { file: tlsCaCert });
        });
  checkAuthorities(ca);
  return new GrpcConnection(`${host || 'localhost'}:${port}`, {
    tls,
    ca,
    idleTimeoutMs,
    maxAttempts: 1,
    maxMessageBytes: 64 * 1024,
  });
}
