import { type Command, Option } from 'commander';
import { addContentOptions, sourceDescription } from '../deployment/content-options.js';
import type { CommandContext } from '../context.js';
import { reportFormats } from '../reports/formats.js';
import { separated, withChoices } from '../options.js';
import type { Runner } from '../runner.js';

/** Adds `validate` to a group: `bundle`, or `alpha bundle`, where it is as much as `opm` has there. */
export function addBundleValidateCommand(group: Command, context: CommandContext, runner: Runner): void {
  const isOpm = group.parent?.name() === 'alpha';
  addContentOptions(group.command('validate'))
    .description('check that a bundle can be published and installed')
    .argument('[source]', sourceDescription)
    .option('-t, --tag <image>', 'bundle image, instead of SOURCE')
    .addOption(
      withChoices(new Option('-b, --image-builder <tool>', 'ignored; accepted for compatibility'), [
        'docker',
        'podman',
        'none',
      ]),
    )
    .addOption(
      new Option(
        '-o, --optional-validators <name,…>',
        'additional validators: operatorhub, operatorhub/v2, standardcapabilities, standardcategories, ' +
          'bundle-objects, install, community, good-practices, alpha-deprecated-apis',
      ).argParser(separated),
    )
    .addOption(
      withChoices(new Option('--output <format>', 'output format (also -o json)'), [...reportFormats]),
    )
    .option('--k8s-version <version>', 'Kubernetes version for alpha-deprecated-apis')
    .action((source: string | undefined, _options, command: Command) =>
      runner.run(command, async (options) =>
        (await import('./validate.js')).bundleValidate(context, source, options, isOpm),
      ),
    );
}
