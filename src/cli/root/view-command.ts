import type { Command } from 'commander';
import type { CommandContext } from '../context.js';
import type { Runner } from '../runner.js';

/** Adds `opmate view`. */
export function addViewCommand(program: Command, context: CommandContext, runner: Runner): void {
  program
    .command('view')
    .description('show a catalog as a page in the browser: packages, upgrade graphs, bundles, problems')
    .argument('<catalog>', 'catalog: directory, image or sqlite index')
    .option('--compare <catalog>', 'show what differs from this older one')
    .option('-p, --port <port>', 'port to listen on; 0 takes a free one', '0')
    .option('--host <address>', 'address to listen on', '127.0.0.1')
    .action((reference: string, _options, command: Command) =>
      runner.run(command, async (options) => (await import('./view.js')).view(context, reference, options)),
    );
}
