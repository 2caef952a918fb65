import { OpmateError, UsageError } from '../../core/errors.js';
import { getReference, getTargetReference } from '../../mirror/mapping/image-location.js';
import { formatTypedReference, getRepository, withDockerDefaults } from '../../mirror/mapping/image-names.js';
import {
  type MappingPair,
  nameOfTarget,
  parseMappings,
  parseTokens,
  resolvePairs,
} from '../../mirror/mapping/mapping-file.js';
import { transferImages } from '../../mirror/transfer/transfer.js';
import { parseReference } from '../../core/reference.js';
import { openReference } from '../../oci/image/open.js';
import type { CommandContext } from '../context.js';
import { longName } from '../command/command-line.js';
import { readInput } from '../input.js';
import { type ImageSetOptions, ownImageSetFlags } from './flags.js';
import { getMaxPerRegistry } from './image-set-options.js';
import { getCopyLimits, readOcMirrorFlags } from './oc-mirror-flags.js';
import {
  finishTransfer,
  parseGlobalOptions,
  requireAllPlatforms,
  getRoots,
  tellUnneeded,
} from './options.js';
import { count } from '../printable.js';
import { type CommandSession, useSession } from '../session.js';

/** `opmate mirror -f FILE`: copies images as the lines of a mapping say; prints digest and target of each. */
export async function mirrorFile(
  context: CommandContext,
  args: readonly string[],
  typedOptions: ImageSetOptions,
): Promise<number> {
  requireNoImageSetFlags(typedOptions);
  requireAllPlatforms(typedOptions);
  const { filename } = typedOptions;
  if (filename === undefined && args.length === 0)
    throw new UsageError('no images to mirror', {
      hint: 'name an image set with --config FILE or a mapping with --filename FILE, or write SOURCE=TARGET',
    });
  const [destination] = args;
  if (args.length === 1 && destination !== undefined && /^(?:docker|file):\/\/[^=]*$/.test(destination)) {
    throw new UsageError(`${destination}: nothing to mirror`, {
      hint: 'name an image set with --config FILE, or an archive with --from DIR',
    });
  }
  const pairs: MappingPair[] = parseTokens(args);
  if (filename !== undefined) {
    const content = await readInput(filename, context);
    pairs.push(...parseMappings(content.toString('utf8'), filename));
  }
  const targets = pairs.flatMap(({ target: { scheme, name } }) => (scheme === 'file' ? [] : [name.registry]));
  const options = parseGlobalOptions(readOcMirrorFlags(typedOptions, targets, context));
  const maxPerRegistry = getMaxPerRegistry(options);
  const roots = getRoots(context, options);
  const flags = {
    continueOnError: options.continueOnError === true,
    skipMissing: options.skipMissing === true,
    dryRun: options.dryRun === true,
  };
  return useSession(context, options, async (session) => {
    tellUnneeded(options, session.logger);
    const images = await resolvePairs(
      pairs,
      async (place) => {
        if (place.scheme === 'file')
          throw new OpmateError(
            'UNSUPPORTED',
            `${formatTypedReference(place)}: name a tag or digest in file://`,
          );
        return listTags(getRepository(withDockerDefaults(place.name)), session);
      },
      session,
    );
    session.logger.log('info', `${count(images.length, 'image')} to mirror`);
    const report = await transferImages(
      images.map(({ source, target }) => ({
        source: getReference(source, roots.from),
        target: getTargetReference(target, roots.to),
        sourceName: formatTypedReference(source),
        targetName: nameOfTarget(target),
      })),
      {
        ...flags,
        session,
        maxPerRegistry,
        ...getCopyLimits(options),
        referrers: options.referrers,
        logger: session.logger,
        signal: session.signal,
      },
    );
    return finishTransfer(context, session.logger, report, { ...flags, output: options.output ?? 'text' });
  });
}

/** Throws UsageError for flags that a mapping has no use for, rather than let someone rely on them. */
function requireNoImageSetFlags(options: ImageSetOptions): void {
  for (const name of ownImageSetFlags) {
    if (options[name] === undefined || options[name] === false) continue;
    const hint = 'name an ImageSetConfiguration with --config';
    throw new UsageError(`${longName(name)}: only with --config or --from`, { hint });
  }
}

async function listTags(name: string, session: CommandSession): Promise<string[]> {
  // Opening asks for some tag; which one is the same to a list.
  const opened = await openReference(parseReference(`${name}:latest`), session);
  try {
    return await opened.repository.listTags(session);
  } finally {
    await opened.close();
  }
}
