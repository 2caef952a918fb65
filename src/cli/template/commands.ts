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
  const template = program.command('template').description('render and create catalog templates');
  addRenderCommand(template.command('render'), true, context, runner);
  addRenderCommand(alpha.command('render-template'), false, context, runner);
  addConvertCommands(template.command('convert'), context, runner);
  addConvertCommands(alpha.command('convert-template'), context, runner);
}

function addRenderCommand(command: Command, checks: boolean, context: CommandContext, runner: Runner): void {
  command
    .description('render a template as a catalog')
    .argument('[type]', 'basic, semver or substitutes (default: detected from the schema)')
    .argument('[file]', 'template file (default: stdin)')
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
  group.description('create a template from a catalog');
  const descriptions = {
    basic: 'create a basic template, which names bundles by image',
    substitutes: 'create a substitutes template, which holds the whole catalog',
  };
  for (const type of ['basic', 'substitutes'] as const) {
    const command = group
      .command(type)
      .description(descriptions[type])
      .argument('[catalog]', 'file, directory or image (default: stdin)')
      .addOption(outputFormatOf('json', 'yaml').default('json'));
    command.action((reference: string | undefined) =>
      runner.run(command, async (options) =>
        (await import('./convert.js')).convertTemplate(context, type, reference, options),
      ),
    );
  }
}
