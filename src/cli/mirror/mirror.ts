import { UsageError } from '../../core/errors.js';
import { argument, defineCommand } from '../command/declaration.js';
import { findCommand } from '../command/command-line.js';
import type { CommandContext } from '../context.js';
import { unknownCommand } from '../help.js';
import { useSession } from '../session.js';
import { mirrorFile } from './file.js';
import { type ImageSetOptions, mirrorFlags } from './flags.js';
import { parseDestination } from './image-set-options.js';
import { ImageSetWork } from './image-set-work.js';
import { readOcMirrorFlags } from './oc-mirror-flags.js';
import { globalOptionsOf, requireAllPlatforms } from './options.js';

/** `opmate mirror`: images of a mapping, as `oc image mirror` does, or of an image set, as `oc-mirror` v2 does. */
export const command = defineCommand({
  summary: 'mirror images, catalogs and image sets',
  tool: 'oc-mirror',
  arguments: [argument('[source=target...]', 'images to copy, as in a mapping line')],
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
  async run({ context, args: [lines], options, commands }) {
    if (options.config !== undefined || options.from !== undefined) {
      return mirrorImageSet(context, lines, readOcMirrorFlags(options, lines.slice(0, 1), context));
    }
    const [word, ...rest] = lines;
    // A lone word without a place is a mistyped command, never an image.
    if (word !== undefined && rest.length === 0 && /^[a-z-]+$/.test(word)) {
      const { program } = commands;
      throw unknownCommand(findCommand(program, 'mirror') ?? program, word);
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
  given: ImageSetOptions,
): Promise<number> {
  const options = globalOptionsOf(given);
  const [text, ...more] = destinations;
  if (text === undefined || more.length > 0) {
    const hint = 'write mirror --config FILE docker://REGISTRY[/PATH], or file://DIRECTORY';
    throw new UsageError('expected one destination', { hint });
  }
  if (options.filename !== undefined) {
    throw new UsageError('--config and --filename cannot be used together', { hint: 'keep one of them' });
  }
  requireOwnFlags(options);
  requireAllPlatforms(options);
  const destination = parseDestination(text, context);
  const work = new ImageSetWork(context, options, destination);
  return useSession(context, options, async (session) => {
    if (options.from !== undefined) return work.fromDisk(session, options.from);
    await work.requireWritable();
    if (options.locked === true) return work.locked(session);
    if (options.dryRun === true) return work.dryRun(session);
    return destination.kind === 'disk'
      ? work.toDisk(session, destination.directory)
      : work.toRegistry(session);
  });
}

/** Throws UsageError for flags of `mirror -f` that mean nothing to an image set. */
function requireOwnFlags({ continueOnError, skipMissing }: ImageSetOptions): void {
  const others = [
    ['continue-on-error', continueOnError],
    ['skip-missing', skipMissing],
  ] as const;
  for (const [flag, isGiven] of others) {
    if (isGiven !== true) continue;
    const hint = 'write --on-error skip-image, or skip-bundle, which keep the catalogs right too';
    throw new UsageError(`--${flag}: not with --config or --from`, { hint });
  }
}
