import type { GenerateBundleRequest } from '../../api/bundle/generate-bundle.js';
import { type Flag, type FlagValues, grouped, repeated, text, required } from '../command/flags.js';

/** Flags of commands that create a bundle from manifests. */
export const authorFlags = {
  directory: required(text('directory', 'directory of the bundle manifests', { short: 'd', group: 'Input' })),
  ...grouped('Selection', {
    package: text('name', 'package name', { short: 'p' }),
    channel: repeated('name,…', 'channels of the bundle', { short: 'c', aliases: ['channels'] }),
    default: text('channel', 'default channel of the package', { short: 'e' }),
  }),
  ...grouped('Output', {
    to: text('directory', 'copy the manifests to this directory and write the metadata next to them', {
      aliases: ['output-dir', 'u'],
    }),
    baseImage: text('image', 'image to build on (default: scratch)'),
  }),
};

/** Returns the flag for the container tool of `operator-sdk` and `opm`. */
export function imageBuilderFlag(builders: readonly string[]): Flag<string | undefined> {
  return text('tool', 'ignored; accepted for compatibility', {
    short: 'b',
    choices: builders,
    group: 'Behavior',
  });
}

/** Returns the request of the flags. */
export function parseRequest(options: FlagValues<typeof authorFlags>): GenerateBundleRequest {
  const {
    directory,
    to,
    baseImage,
    channel: channels,
    default: defaultChannel,
    package: packageName,
  } = options;
  return { directory, outputDirectory: to || undefined, packageName, channels, defaultChannel, baseImage };
}
