import { type Command, Option } from 'commander';
import { UsageError } from '../../core/errors.js';
import type { CommandContext } from '../context.js';
import { booleanFlag, catalogForms, collect } from '../options.js';
import { positiveInteger } from '../command/values.js';
import type { Runner } from '../runner.js';

/** Adds `opmate serve`. */
export function addServeCommands(program: Command, context: CommandContext, runner: Runner): void {
  const serve = program
    .command('serve')
    .description(
      'serve a catalog over gRPC (and HTTP with --http), or many catalogs over HTTP with --catalogs',
    )
    .argument('[catalog]', `catalog: ${catalogForms}`);
  addServerOptions(serve);
  serve
    .option('--cache-dir <directory>', 'cache directory, reused by the next start')
    .option(
      '--catalogs <directory>',
      'serve the catalogs described by the manifests in this directory, over HTTP',
    )
    .option('--http [address]', 'also serve the HTTP catalog API on HOST:PORT (default: 127.0.0.1:8080)')
    .option('--metrics-listen <address>', 'serve /metrics on HOST:PORT instead of the HTTP API address')
    .option('--name <name>', 'with --http: catalog name in URLs (default: from the directory or image)')
    .option('--ui [address]', 'also serve a catalog page on HOST:PORT (default: 127.0.0.1:8081)')
    .option('--storage <directory>', 'storage directory of the HTTP API')
    .option('--external-url <url>', 'base URL of the HTTP API')
    .option('--tls-self-signed', 'serve HTTPS with a temporary self-signed certificate')
    .addOption(new Option('--pprof-addr <address>', 'ignored; accepted for compatibility').hideHelp());
  addConnectionOptions(serve);
  booleanFlag(serve, 'cache-only', 'build the cache and exit');
  booleanFlag(serve, 'cache-enforce-integrity', 'fail if the cache belongs to another catalog');
  booleanFlag(serve, 'pprof-capture-profiles', 'ignored; accepted for compatibility', { isHidden: true });
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
      'allowed Host header of HTTP requests, repeatable; others are refused',
      collect,
    );
}

/** The options of every server of the registry API. */
export function addServerOptions(command: Command): void {
  command
    .option('-p, --port <port>', 'port to listen on; 0 selects a free one', '50051')
    .option('--host <address>', 'address to listen on (default: all)')
    .option(
      '-t, --termination-log <file>',
      'file for the failure message (default: /dev/termination-log, if it exists)',
    )
    .option('--tls-cert <file>', 'TLS certificate; reloaded when it changes')
    .option('--tls-key <file>', 'TLS private key');
}
