import { type Command, Option } from 'commander';
import { UsageError } from '../../core/errors.js';
import type { CommandContext } from '../context.js';
import { booleanFlag, collect, positiveInteger } from '../options.js';
import type { Runner } from '../runner.js';

/** Adds `opmate serve`. */
export function addServeCommands(program: Command, context: CommandContext, runner: Runner): void {
  const serve = program
    .command('serve')
    .description(
      'serve a catalog to clusters: the gRPC registry API, with --http the HTTP one; or with --catalogs many, over HTTP',
    )
    .argument('[catalog]', 'catalog directory, image that holds one, or file of a sqlite index');
  addServerOptions(serve);
  serve
    .option('--cache-dir <directory>', 'keep encoded bundles there from one start to the next')
    .option('--catalogs <directory>', 'serve the catalogs that the manifests there describe, over HTTP')
    .option('--http [address]', 'serve the HTTP catalog API too, on HOST:PORT (default: 127.0.0.1:8080)')
    .option('--metrics-listen <address>', 'serve /metrics of the HTTP API on HOST:PORT, and only there')
    .option('--name <name>', 'with --http: what URLs call the catalog (default: as its directory or image)')
    .option('--ui [address]', 'show the catalog as a page too, on HOST:PORT (default: 127.0.0.1:8081)')
    .option('--storage <directory>', 'keep contents of the HTTP API, and with --catalogs states, there')
    .option('--external-url <url>', 'what URLs of the HTTP API begin with')
    .option('--tls-self-signed', 'serve HTTPS with a certificate made for this run')
    .addOption(new Option('--pprof-addr <address>', 'accepted; nothing listens there').hideHelp());
  addConnectionOptions(serve);
  booleanFlag(serve, 'cache-only', 'make the cache and end');
  booleanFlag(serve, 'cache-enforce-integrity', 'fail where the cache is not of this catalog');
  booleanFlag(serve, 'pprof-capture-profiles', 'accepted; nothing is captured', { isHidden: true });
  serve.action((reference: string | undefined, _options, command: Command) =>
    runner.run(command, async (options) => {
      if (command.getOptionValue('catalogs') !== undefined) {
        if (command.getOptionValue('ui') !== undefined) {
          throw new UsageError('--ui: shows one catalog, not those of --catalogs');
        }
        if (reference !== undefined) throw new UsageError('--catalogs: serves no other catalog beside them');
        return (await import('./catalogs.js')).serveCatalogs(context, options);
      }
      if (reference === undefined) throw new UsageError("missing required argument 'catalog'");
      return (await import('./serve.js')).serve(context, reference, options);
    }),
  );
}

/** Options of servers over HTTP that limit who connects. */
export function addConnectionOptions(command: Command): Command {
  return command
    .addOption(
      new Option('--max-connections <count>', 'maximum number of open connections (default: 1000)').argParser(
        positiveInteger,
      ),
    )
    .option(
      '--allow-host <name>',
      'name that HTTP requests may use for the server, repeatable; others are then refused',
      collect,
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
