import { type Command, Option } from 'commander';
import type { CommandContext } from '../context.js';
import { milliseconds } from '../options.js';
import type { Runner } from '../runner.js';

/** Adds `opmate probe`. */
export function addProbeCommand(program: Command, context: CommandContext, runner: Runner): void {
  program
    .command('probe')
    .description('ask a gRPC server whether it is well, as probes of clusters do; the exit code tells')
    .option('--addr <host:port>', 'the server; without host, this machine (default: localhost:50051)')
    .option('--service <name>', 'one of its services (default: the server as a whole)')
    .addOption(
      new Option('--connect-timeout <duration>', 'how long connecting may take (default: 1s)').argParser(
        milliseconds,
      ),
    )
    .addOption(
      new Option('--rpc-timeout <duration>', 'how long the answer may take (default: 1s)').argParser(
        milliseconds,
      ),
    )
    .option('--tls', 'use TLS')
    .option('--tls-ca-cert <file>', 'trust the certificate authorities in this PEM file, and no others')
    .action((_options, command: Command) =>
      runner.run(command, async (options) => (await import('./probe.js')).probe(context, options)),
    );
}
