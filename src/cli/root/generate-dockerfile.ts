import { createLogger } from '../logger.js';
import { argument, defineCommand } from '../command/declaration.js';
import { repeated, text } from '../command/flags.js';
import { generateDockerfile } from '../../api/images/generate-dockerfile.js';
import { parseLabels } from './image-labels.js';

/** `opmate generate dockerfile`; never replaces a file. */
export const command = defineCommand({
  summary: 'write a Dockerfile next to a catalog directory',
  tool: 'opm',
  arguments: [argument('<directory>', 'catalog directory')],
  flags: {
    baseImage: text('image', 'image to build on (default: quay.io/operator-framework/opm:latest)', {
      short: 'i',
    }),
    builderImage: text(
      'image',
      'image to build the serve cache with (default: quay.io/operator-framework/opm:latest)',
      { short: 'b' },
    ),
    binaryImage: text('image', 'the old name of --base-image', { hidden: true, excludes: ['baseImage'] }),
    extraLabels: repeated('key=value', 'additional labels, comma-separated', { short: 'l' }),
  },
  examples: {
    'Write catalog.Dockerfile': 'opmate generate dockerfile ./catalog',
    'Build on an image without opm': 'opmate generate dockerfile ./catalog -i scratch',
  },
  async run({ context, args: [directory], options }) {
    const { baseImage, binaryImage, builderImage } = options;
    if (binaryImage !== undefined) {
      const problem = '--binary-image is the old name of --base-image and --builder-image';
      createLogger(context, options).log('warn', problem);
    }
    const labels = parseLabels(options.extraLabels ?? []);
    await generateDockerfile(directory, {
      baseImage: baseImage ?? binaryImage,
      builderImage: builderImage ?? binaryImage,
      labels,
    });
  },
});
