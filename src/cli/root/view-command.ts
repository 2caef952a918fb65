import type { Command } from 'commander';
import type { CommandContext } from '../context.js';
import { catalogForms } from '../options.js';
import type { Runner } from '../runner.js';

/** Adds `opmate view`. */
export function addViewCommand(program: Command, context: CommandContext, runner: Runner): void {
  program
    .command('view')
    .description('show a catalog in the browser: packages, upgrade graphs, bundles, problems')
    .argument('<catalog>', `catalog: ${catalogForms}`)
    .option('--compare <catalog>', 'show the differences from this older catalog')
    .option('-p, --port <port>', 'port to listen on; 0 selects a free one', '0')
    .option('--host <address>', 'address to listen on', '127.0.0.1')
    .action((reference: string, _options, command: Command) =>
      runner.run(command, async (options) => (await import('./view.js')).view(context, reference, options)),
    );
}
