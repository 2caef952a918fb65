import { addContext } from '../../core/diagnostics-error.js';
import { CancelledError, OpmateError, RegistryError, UsageError } from '../../core/errors.js';
import { isResumable } from '../../api/mirror.js';
import { argument, defineCommand } from '../command/declaration.js';
import type { CommandContext } from '../context.js';
import { useSession } from '../session.js';
import { mirrorFile } from './file.js';
import { type ImageSetOptions, mirrorFlags } from './flags.js';
import { runImageSet } from './image-set-run.js';
import { readMirrorOptions, refuseFlags } from './oc-mirror-flags.js';
import { requireAllPlatforms } from './options.js';

/** `opmate mirror`: mirrors images of a mapping, as `oc image mirror`, or of an image set, as `oc-mirror` v2. */
export const command = defineCommand({
  summary: 'mirror images, catalogs and image sets',
  tool: 'oc-mirror',
  ownOptions: ['--locked'],
  arguments: [
    argument(
      '[source=target...]',
      'images to copy; or with --config or --from: docker://REGISTRY[/PATH] or file://DIR',
    ),
  ],
  flags: mirrorFlags,
  commonFlags: [
    'config',
    'from',
    'workspace',
    'dryRun',
    'locked',
    'verify',
    'onError',
    'filename',
    'destAuthfile',
    'shard',
  ],
  examples: {
    'Mirror an image set to a registry':
      'opmate mirror -c imageset.yaml docker://registry.example.com/mirror',
    'Mirror an image set to disk': 'opmate mirror -c imageset.yaml file://carry',
    'Mirror an archive to a registry': 'opmate mirror --from archive docker://registry.example.com/mirror',
    'Copy one image':
      'opmate mirror registry.example.com/demo/bundle:v1.0.0=registry.example.com/mirror/bundle:v1.0.0',
  },
  async run({ context, args: [lines], options }) {
    if (options.config !== undefined || options.from !== undefined) {
      return mirrorImageSet(context, lines, readMirrorOptions(options, lines.slice(0, 1), context));
    }
    return mirrorFile(context, lines, options);
  },
});

/**
 * Mirrors an image set as `oc-mirror` v2 does, and writes cluster resources and lock to the workspace; with `--dry-run`
 * only the mapping, `working-dir/dry-run/mapping.txt`. Returns 4 if some images were not mirrored.
 */
async function mirrorImageSet(
  context: CommandContext,
  destinations: readonly string[],
  options: ImageSetOptions,
): Promise<number> {
  const [text, ...more] = destinations;
  if (text === undefined || more.length > 0) {
    const hint = 'use opmate mirror --config FILE docker://REGISTRY[/PATH], or file://DIRECTORY';
    throw new UsageError('expected one destination', { hint });
  }
  const hint = 'use --on-error skip-image or skip-bundle, which also keep the catalogs consistent';
  refuseFlags(options, ['continueOnError', 'skipMissing'], ': not with --config or --from', hint);
  requireAllPlatforms(options);
  if (options.from !== undefined && text.startsWith('file://')) {
    const destination = 'use docker://REGISTRY[/PATH]';
    throw new UsageError('--from: an archive is copied to a registry', { hint: destination });
  }
  const request = { options, target: text };
  try {
    return await useSession(context, options, (session) => runImageSet(context, request, session));
  } catch (error) {
    if (options.dryRun === true) throw error;
    if (!context.signal.aborted) throw addResumeHint(error);
    throw new CancelledError('interrupted', { hint: resumeHint, cause: error });
  }
}

const resumeHint = 'run the same command again to resume';

function addResumeHint(error: unknown): unknown {
  if (!(error instanceof OpmateError)) return error;
  const status = error instanceof RegistryError ? error.status : undefined;
  if (status === 429)
    return addContext(error, { newHint: 'raise --retry-timeout, or lower --max-per-registry' });
  if (status === 507)
    return addContext(error, { hint: 'free space in the registry, then run the same command again' });
  return isResumable(error) ? addContext(error, { hint: resumeHint }) : error;
}
