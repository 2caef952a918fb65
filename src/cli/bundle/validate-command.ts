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
    .description('check whether a bundle is one that can be published and installed')
    .argument('[source]', sourceDescription)
    .option('-t, --tag <image>', 'the image of the bundle, in place of the source')
    .addOption(
      withChoices(new Option('-b, --image-builder <tool>', 'not needed: images are read without a tool'), [
        'docker',
        'podman',
        'none',
      ]),
    )
    .addOption(
      new Option(
        '-o, --optional-validators <name,…>',
        'validators to run besides: operatorhub, operatorhub/v2, standardcapabilities, standardcategories, ' +
          'bundle-objects, install, community, good-practices, alpha-deprecated-apis',
      ).argParser(separated),
    )
    .addOption(
      withChoices(new Option('--output <format>', 'output format (also -o json)'), [...reportFormats]),
    )
    .option('--k8s-version <version>', 'Kubernetes that the bundle is for, for alpha-deprecated-apis')
    .action((source: string | undefined, _options, command: Command) =>
      runner.run(command, async (options) =>
        (await import('./validate.js')).bundleValidate(context, source, options, isOpm),
      ),
    );
}
