import { defineCommand } from '../command/declaration.js';
import { flag, parsed, text } from '../command/flags.js';
import { duration } from '../command/values.js';
import { checkServer, readAuthorities } from '../../api/served/check-server.js';
import { CancelledError, OpmateError, getMessage, redactUrls } from '../../core/errors.js';
import { exitCodes } from '../exit-codes.js';
import { writeAll } from '../output.js';
import { withFlags } from '../reports/option-words.js';
import { printable } from '../printable.js';

/** Exit codes of grpc_health_probe. */
const probeCodes = { usage: 1, noConnection: 2, noAnswer: 3, unhealthy: 4 } as const;

const flags = {
  addr: text('host:port', 'server address', { default: 'localhost:50051' }),
  service: text('name', 'service to check (default: the whole server)'),
  connectTimeout: parsed('duration', 'connection timeout', duration(), {
    default: 1000,
    defaultText: '1s',
  }),
  rpcTimeout: parsed('duration', 'response timeout', duration(), { default: 1000, defaultText: '1s' }),
  tls: flag('use TLS'),
  tlsCaCert: text('file', 'trust only the certificate authorities in this PEM file', { needs: 'tls' }),
};

/** `opmate probe`, with the options and exit codes of grpc_health_probe. */
export const command = defineCommand({
  summary: "check a gRPC server's health; the result is the exit code",
  tool: 'opm',
  flags,
  examples: {
    'Check the server on this machine': 'opmate probe',
    'Check a server over TLS': 'opmate probe --addr registry.example.com:50051 --tls --tls-ca-cert ca.crt',
  },
  async run({ context, options }) {
    const { addr, service, tls, connectTimeout: connectTimeoutMs, rpcTimeout: responseTimeoutMs } = options;
    let code: number = probeCodes.usage;
    try {
      const status = await checkServer(addr, {
        service,
        tls,
        connectTimeoutMs,
        responseTimeoutMs,
        signal: context.signal,
        ca: options.tlsCaCert === undefined ? undefined : await readAuthorities(options.tlsCaCert),
        onState: (state) => {
          code = state === 'connecting' ? probeCodes.noConnection : probeCodes.noAnswer;
        },
      });
      await writeAll(context.stdout, `status: ${status}\n`);
      return status === 'SERVING' ? exitCodes.done : probeCodes.unhealthy;
    } catch (error) {
      if (error instanceof CancelledError || context.signal.aborted) throw error;
      const advice =
        error instanceof OpmateError && error.hint !== undefined ? `hint: ${withFlags(error.hint)}\n` : '';
      context.stderr.write(`error: ${printable(redactUrls(withFlags(getMessage(error))))}\n${advice}`);
      return code;
    }
  },
});
