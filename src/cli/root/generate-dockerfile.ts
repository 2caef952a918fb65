import { createLogger } from '../logger.js';
import { argument, defineCommand } from '../command/declaration.js';
import { repeated, text } from '../command/flags.js';
import { stat } from 'node:fs/promises';
import path from 'node:path';
import { catalogDockerfile, defaultCatalogBase } from '../../catalog/dockerfile.js';
import { OpmateError, systemCode, throwFileError, writeError } from '../../core/errors.js';
import { writeNewFile } from '../../files/write-new-file.js';
import { quoteGo } from '../../document/go-json.js';
import { parseLabels } from './image-labels.js';

/** `opmate generate dockerfile`; never replaces a file. */
export const command = defineCommand({
  summary: 'write a Dockerfile next to a catalog directory',
  tool: 'opm',
  arguments: [argument('<directory>', 'catalog directory')],
  flags: {
    baseImage: text('image', `image to build on (default: ${defaultCatalogBase})`, { short: 'i' }),
    builderImage: text('image', `image to build the serve cache with (default: ${defaultCatalogBase})`, {
      short: 'b',
    }),
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
    const base = baseImage ?? binaryImage ?? defaultCatalogBase;
    const builder = builderImage ?? binaryImage ?? defaultCatalogBase;
    if (base === '') throw new OpmateError('INVALID', 'base image is unset');
    if (builder === '') throw new OpmateError('INVALID', 'builder image is unset');
    if (builder === 'scratch') {
      throw new OpmateError('INVALID', 'invalid builder image: "scratch"', {
        hint: 'use scratch only as --base-image: the builder image runs a command',
      });
    }
    const labels = parseLabels(options.extraLabels ?? []);
    const stats = await stat(directory).catch(throwFileError(directory));
    if (!stats.isDirectory()) {
      throw new OpmateError('INVALID', `provided root path ${quoteGo(directory)} is not a directory`);
    }
    const clean = path.normalize(directory).replace(/(?<=.)\/$/, '');
    const name = path.basename(clean) === '' ? clean : path.basename(clean);
    const target = path.join(path.dirname(clean), `${name}.Dockerfile`);
    const content = catalogDockerfile({
      name,
      base,
      builder,
      labels,
    });
    await writeNewFile(target, content).catch((error: unknown) => {
      if (systemCode(error) !== 'EEXIST') throw writeError(target, error);
      const problem = `path ${quoteGo(target)}: file already exists`;
      throw new OpmateError('IO', problem, { hint: 'remove it first' });
    });
  },
});
