import type { Command } from 'commander';
import type { CommandContext } from '../context.js';
import { outputFormatOf } from '../options.js';
import { milliseconds } from '../command/values.js';
import type { Runner } from '../runner.js';

/** Adds `opmate catalogs`: what a server of many catalogs is doing. */
export function addCatalogsCommands(program: Command, context: CommandContext, runner: Runner): void {
  const catalogs = program.command('catalogs').description('query a running opmate serve --catalogs');
  const add = (name: string, description: string): Command =>
    catalogs
      .command(name)
      .description(description)
      .option('--catalogs <directory>', 'manifest directory of the server')
      .option('--storage <directory>', 'storage directory of the server')
      .option('--url <url>', 'server URL, e.g. http://127.0.0.1:8080');
  add('status', 'print the status of catalogs as ClusterCatalogs')
    .argument('[name...]', 'catalogs (default: all)')
    .option('--external-url <url>', 'base URL of catalogs (default: as the server was started)')
    .addOption(outputFormatOf('table', 'json', 'yaml'))
    .action((names: string[], _options, command: Command) =>
      runner.run(command, async (options) =>
        (await import('./catalogs-status.js')).catalogsStatus(context, names, options),
      ),
    );
  add('wait', 'wait until catalogs are served')
    .argument('[name...]', 'catalogs (default: all)')
    .option('--for <condition>', 'condition: Serving or Progressing, optionally =True or =False', 'Serving')
    .option('--timeout <duration>', 'maximum time to wait (default: 60s)', milliseconds)
    .action((names: string[], _options, command: Command) =>
      runner.run(command, async (options) =>
        (await import('./catalogs-status.js')).catalogsWait(context, names, options),
      ),
    );
  add('packages', 'print packages as CATALOG/PACKAGE; for one package, the catalog with the highest priority')
    .argument('[package]', 'PACKAGE or CATALOG/PACKAGE (default: all)')
    .option('--catalog <name>', 'select this catalog')
    .option('--selector <labels>', 'select catalogs with these labels: KEY=VALUE,…')
    .action((name: string | undefined, _options, command: Command) =>
      runner.run(command, async (options) =>
        (await import('./catalogs-status.js')).catalogsPackages(context, name, options),
      ),
    );
}
