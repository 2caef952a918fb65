import { type Command, Option } from 'commander';
import type { CommandContext } from './context.js';
import { booleanFlag } from './options.js';
import type { Runner } from './runner.js';

/** Adds `opmate serve`. */
export function addServeCommands(program: Command, context: CommandContext, runner: Runner): void {
  const serve = program
    .command('serve')
    .description('serve a catalog to clusters: the gRPC registry API')
    .argument('<catalog>', 'catalog directory, or an image that holds one');
  addServerOptions(serve);
  serve
    .option('--cache-dir <directory>', 'keep encoded bundles there from one start to the next')
    .addOption(new Option('--pprof-addr <address>', 'accepted; nothing listens there').hideHelp());
  booleanFlag(serve, 'cache-only', 'make the cache and end');
  booleanFlag(serve, 'cache-enforce-integrity', 'fail where the cache is not of this catalog');
  booleanFlag(serve, 'pprof-capture-profiles', 'accepted; nothing is captured', { isHidden: true });
  serve.action((reference: string, _options, command: Command) =>
    runner.run(command, async (options) =>
      (await import('./commands/serve.js')).serve(context, reference, options),
    ),
  );
}

/** The options of every server of the registry API. */
export function addServerOptions(command: Command): void {
  command
    .option('-p, --port <port>', 'port to listen on; 0 takes a free one', '50051')
    .option('--host <address>', 'address to listen on (default: all)')
    .option(
      '-t, --termination-log <file>',
      'write the message of a failure there (default: /dev/termination-log, where there is one)',
    )
    .option('--tls-cert <file>', 'serve TLS with this certificate; read again when it changes')
    .option('--tls-key <file>', 'key of the certificate');
}
