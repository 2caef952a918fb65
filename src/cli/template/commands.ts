import { type Command, Option } from 'commander';
import type { CommandContext } from '../context.js';
import { outputFormatOf, withChoices } from '../options.js';
import type { Runner } from '../runner.js';

/** Adds `render-template` and `convert-template` to `alpha`, and `template …`. */
export function addTemplateCommands(
  program: Command,
  alpha: Command,
  context: CommandContext,
  runner: Runner,
): void {
  const template = program.command('template').description('work with templates of catalogs');
  addRenderCommand(template.command('render'), true, context, runner);
  addRenderCommand(alpha.command('render-template'), false, context, runner);
  addConvertCommands(template.command('convert'), context, runner);
  addConvertCommands(alpha.command('convert-template'), context, runner);
}

function addRenderCommand(command: Command, checks: boolean, context: CommandContext, runner: Runner): void {
  command
    .description('write the catalog that a template stands for')
    .argument('[type]', 'basic, semver or substitutes; detected by the schema where it is left out')
    .argument('[file]', 'the template; - or nothing for standard input')
    .addOption(outputFormatOf('json', 'yaml', 'mermaid').default('json'))
    .addOption(
      withChoices(new Option('--migrate-level <level>', 'run migrations up to this level'), [
        'none',
        'bundle-object-to-csv-metadata',
        'all',
      ]),
    )
    .action((...given: unknown[]) => {
      const args = given.slice(0, 2).filter((arg) => typeof arg === 'string');
      return runner.run(command, async (options) =>
        (await import('./render.js')).renderTemplateCommand(context, args, options, {
          checks,
        }),
      );
    });
}

function addConvertCommands(group: Command, context: CommandContext, runner: Runner): void {
  group.description('write a template that stands for a catalog');
  const descriptions = {
    basic: 'a basic template: bundles by their images only',
    substitutes: 'a substitutes template: the whole catalog, for bundles to take the place of others',
  };
  for (const type of ['basic', 'substitutes'] as const) {
    const command = group
      .command(type)
      .description(descriptions[type])
      .argument('[catalog]', 'file, directory or image; - or nothing for standard input')
      .addOption(outputFormatOf('json', 'yaml').default('json'));
    command.action((reference: string | undefined) =>
      runner.run(command, async (options) =>
        (await import('./convert.js')).convertTemplate(context, type, reference, options),
      ),
    );
  }
}
