import { CancelledError, UsageError } from '../../core/errors.js';
import { argument, defineCommand } from '../command/declaration.js';
import type { CommandContext } from '../context.js';
import { useSession } from '../session.js';
import { mirrorFile } from './file.js';
import { type ImageSetOptions, mirrorFlags } from './flags.js';
import { readRunFlags, runImageSet } from './image-set-run.js';
import { readOcMirrorFlags } from './oc-mirror-flags.js';
import { parseGlobalOptions, requireAllPlatforms } from './options.js';

/** `opmate mirror`: images of a mapping, as `oc image mirror` does, or of an image set, as `oc-mirror` v2 does. */
export const command = defineCommand({
  summary: 'mirror images, catalogs and image sets',
  tool: 'oc-mirror',
  ownOptions: ['--locked'],
  arguments: [
    argument(
      '[source=target...]',
      'images to copy; with --config or --from the destination: docker://REGISTRY[/PATH] or file://DIR',
    ),
  ],
  flags: mirrorFlags,
  examples: [
    [
      'Mirror an image set to a registry',
      'opmate mirror -c imageset.yaml docker://registry.example.com/mirror',
    ],
    ['Mirror an image set to disk', 'opmate mirror -c imageset.yaml file://carry'],
    ['Mirror an archive to a registry', 'opmate mirror --from archive docker://registry.example.com/mirror'],
    [
      'Copy one image',
      'opmate mirror registry.example.com/demo/bundle:v1.0.0=registry.example.com/mirror/bundle:v1.0.0',
    ],
  ],
  async run({ context, args: [lines], options }) {
    if (options.config !== undefined || options.from !== undefined) {
      return mirrorImageSet(context, lines, readOcMirrorFlags(options, lines.slice(0, 1), context));
    }
    return mirrorFile(context, lines, options);
  },
});

/**
 * Does what `oc-mirror` v2 does with an image set: plans, says what will be copied, copies, and writes the cluster
 * resources and the lock below the workspace; with `--dry-run` only names, as `working-dir/dry-run/mapping.txt`. Returns
 * 4 where not all could be mirrored.
 */
async function mirrorImageSet(
  context: CommandContext,
  destinations: readonly string[],
  typedOptions: ImageSetOptions,
): Promise<number> {
  const options = parseGlobalOptions(typedOptions);
  const [text, ...more] = destinations;
  if (text === undefined || more.length > 0) {
    const hint = 'use opmate mirror --config FILE docker://REGISTRY[/PATH], or file://DIRECTORY';
    throw new UsageError('expected one destination', { hint });
  }
  if (options.filename !== undefined) {
    throw new UsageError('--config and --filename cannot be used together', { hint: 'keep one of them' });
  }
  requireOwnFlags(options);
  requireAllPlatforms(options);
  const flags = readRunFlags(context, options, text);
  try {
    return await useSession(context, options, (session) => runImageSet(context, flags, session));
  } catch (error) {
    if (!context.signal.aborted || options.dryRun === true) throw error;
    throw new CancelledError('interrupted', { hint: 'run the same command again to resume', cause: error });
  }
}

/** Throws UsageError for flags of `mirror -f` that mean nothing to an image set. */
function requireOwnFlags({ continueOnError, skipMissing }: ImageSetOptions): void {
  const others = [
    ['continue-on-error', continueOnError],
    ['skip-missing', skipMissing],
  ] as const;
  for (const [flag, isGiven] of others) {
    if (isGiven !== true) continue;
    const hint = 'use --on-error skip-image or skip-bundle, which also keep the catalogs consistent';
    throw new UsageError(`--${flag}: not with --config or --from`, { hint });
  }
}
