import type { Command } from 'commander';
import type { CommandContext } from '../context.js';
import { milliseconds, outputFormatOf } from '../options.js';
import type { Runner } from '../runner.js';

/** Adds `opmate catalogs`: what a server of many catalogs is doing. */
export function addCatalogsCommands(program: Command, context: CommandContext, runner: Runner): void {
  const catalogs = program.command('catalogs').description('ask what opmate serve --catalogs serves');
  const add = (name: string, description: string): Command =>
    catalogs
      .command(name)
      .description(description)
      .option('--catalogs <directory>', 'directory of manifests that the server was started with')
      .option('--storage <directory>', 'storage directory that the server was started with')
      .option('--url <url>', 'ask a server instead, e.g. http://127.0.0.1:8080');
  add('status', 'print how the catalogs fare, in the shape of ClusterCatalog')
    .argument('[name...]', 'catalogs (default: all)')
    .option('--external-url <url>', 'what URLs begin with (default: as the server was started)')
    .addOption(outputFormatOf('table', 'json', 'yaml'))
    .action((names: string[], _options, command: Command) =>
      runner.run(command, async (options) =>
        (await import('./catalogs-status.js')).catalogsStatus(context, names, options),
      ),
    );
  add('wait', 'wait until catalogs are served')
    .argument('[name...]', 'catalogs (default: all)')
    .option('--for <condition>', 'Serving or Progressing, also with =True or =False', 'Serving')
    .option('--timeout <duration>', 'how long to wait (default: 60s)', milliseconds)
    .action((names: string[], _options, command: Command) =>
      runner.run(command, async (options) =>
        (await import('./catalogs-status.js')).catalogsWait(context, names, options),
      ),
    );
  add('packages', 'print packages as CATALOG/PACKAGE; of one package, the catalog of highest priority')
    .argument('[package]', 'PACKAGE or CATALOG/PACKAGE (default: all)')
    .option('--catalog <name>', 'only of this catalog')
    .option('--selector <labels>', 'only of catalogs with these labels: KEY=VALUE,…')
    .action((name: string | undefined, _options, command: Command) =>
      runner.run(command, async (options) =>
        (await import('./catalogs-status.js')).catalogsPackages(context, name, options),
      ),
    );
}
