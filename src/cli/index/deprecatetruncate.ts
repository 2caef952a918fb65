import { type FlagValues, flag, list, required } from '../command/flags.js';
import { permissiveFlag } from '../registry/database.js';
import {
  type IndexEdit,
  databaseEdit,
  formatNames,
  imageEdit,
  logRemoved,
  logSkipped,
} from './edit-commands.js';

const images = list('image', 'images of the bundles to deprecate', {
  short: 'b',
  mayBeNone: true,
  group: 'Selection',
});

const flags = {
  allowPackageRemoval: flag('remove a package whose channel heads are all deprecated', { group: 'Behavior' }),
  permissive: permissiveFlag,
};

const deprecation = {
  name: 'deprecatetruncate',
  tool: 'opm',
  examples: {
    'Deprecate a bundle': '-b registry.example.com/demo/bundle:v1.1.0',
  },
} as const;

/** `opmate registry deprecatetruncate`. */
export const registryCommand = databaseEdit({
  ...deprecation,
  summary: 'deprecate bundles and remove older ones',
  flags: { bundleImages: images, ...flags },
  defaultName: 'index.db',
  plan: ({ bundleImages = [], ...options }) => planDeprecate(bundleImages, options),
});

/** `opmate index deprecatetruncate`. */
export const command = imageEdit({
  ...deprecation,
  summary: 'deprecate bundles of an index image and remove older ones',
  flags: { bundles: required(images), ...flags },
  plan: ({ bundles, ...options }) => planDeprecate(bundles, options),
});

function planDeprecate(
  bundles: readonly string[],
  { permissive, allowPackageRemoval }: FlagValues<typeof flags>,
): IndexEdit<'deprecate'> {
  return {
    change: { kind: 'deprecate', bundles, permissive, allowPackageRemoval },
    report(logger, name, report) {
      logSkipped(logger, report.failures);
      if (report.packages.length > 0 || report.bundles.length > 0) logRemoved(logger, name, report);
      const { deprecated } = report;
      const text = deprecated.length === 0 ? 'nothing to deprecate' : `deprecated ${formatNames(deprecated)}`;
      logger.log('info', `${name}: ${text}`);
    },
  };
}
