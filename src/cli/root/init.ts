import { createPackage } from '../../api/create-package.js';
import { argument, defineCommand } from '../command/declaration.js';
import { text } from '../command/flags.js';
import { catalogOutput } from '../command/shared-flags.js';
import { encodeBlob } from '../../model/encode.js';
import { writeAll } from '../output.js';

/** `opmate init`; prints nothing for an empty name. */
export const command = defineCommand({
  summary: 'write an olm.package blob for a new package',
  tool: 'opm',
  arguments: [argument('<package>', 'name of the package')],
  flags: {
    output: catalogOutput,
    defaultChannel: text('channel', 'default channel of the package', { short: 'c' }),
    icon: text('file', 'image file to embed as the icon', { short: 'i', mayBeEmpty: true }),
    description: text('file', 'file whose content becomes the description', { short: 'd', mayBeEmpty: true }),
  },
  examples: {
    'Create a package': 'opmate init demo --default-channel stable -o yaml > package.yaml',
    'Add a description and an icon': 'opmate init demo -c stable -d README.md -i icon.svg',
  },
  async run({ context, args: [packageName], options }) {
    const { output: format, defaultChannel, description, icon } = options;
    // opm ignores empty names.
    const blob = await createPackage(packageName, {
      defaultChannel,
      descriptionFile: description === '' ? undefined : description,
      iconFile: icon === '' ? undefined : icon,
      signal: context.signal,
    });
    if (packageName !== '') await writeAll(context.stdout, encodeBlob({ kind: 'package', blob }, format));
  },
});
