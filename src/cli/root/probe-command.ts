import { type Command, Option } from 'commander';
import type { CommandContext } from '../context.js';
import { milliseconds } from '../options.js';
import type { Runner } from '../runner.js';

/** Adds `opmate probe`. */
export function addProbeCommand(program: Command, context: CommandContext, runner: Runner): void {
  program
    .command('probe')
    .description("check a gRPC server's health; the result is the exit code")
    .option('--addr <host:port>', 'server address (default: localhost:50051)')
    .option('--service <name>', 'service to check (default: the whole server)')
    .addOption(
      new Option('--connect-timeout <duration>', 'connection timeout (default: 1s)').argParser(milliseconds),
    )
    .addOption(
      new Option('--rpc-timeout <duration>', 'response timeout (default: 1s)').argParser(milliseconds),
    )
    .option('--tls', 'use TLS')
    .option('--tls-ca-cert <file>', 'trust only the certificate authorities in this PEM file')
    .action((_options, command: Command) =>
      runner.run(command, async (options) => (await import('./probe.js')).probe(context, options)),
    );
}
