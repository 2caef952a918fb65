import { UsageError } from '../../core/errors.js';
import { encodeGoJson } from '../../core/go-json.js';
import { parseReference } from '../../core/reference.js';
import { copyImage } from '../../oci/copy.js';
import { type OpenReferenceOptions, openReference, openTarget } from '../../oci/open.js';
import type { CommandContext, GlobalOptions } from '../context.js';
import { writeAll } from '../output.js';
import { type CommandSession, useSession } from '../session.js';

interface OciCopyOptions extends GlobalOptions {
  referrers?: boolean;
  output?: string;
}

/**
 * `opmate oci copy`: an image with all its platforms (or those of `--platform`), byte for byte. Prints
 * the digest that is now at the target.
 */
export async function ociCopy(
  context: CommandContext,
  source: string,
  target: string,
  options: OciCopyOptions,
): Promise<void> {
  await useSession(context, options, async (session) => {
    const { logger, signal, platform } = session;
    const openOptions = await openOptionsOf(session);
    const from = await openReference(parseReference(source), openOptions);
    try {
      const to = await openTarget(withTagOf(target, from.reference), openOptions);
      try {
        const result = await copyImage(from.repository, from.reference, to.repository, to.reference, {
          platforms: platform === undefined ? undefined : [platform],
          referrers: options.referrers,
          logger,
          signal,
        });
        logger.log('info', `copied ${source} to ${target}`, {
          manifests: result.manifests,
          blobs: result.blobs.copied,
          bytes: result.bytes,
        });
        logger.close();
        const { digest } = result.descriptor;
        const { output } = options;
        const text =
          output === 'json'
            ? `${encodeGoJson({ digest, bytes: result.bytes }, { indent: 2 })}\n`
            : `${digest}\n`;
        await writeAll(context.stdout, text);
      } finally {
        await to.close();
      }
    } finally {
      await from.close();
    }
  });
}

/** A target without tag and digest takes the tag of the source. */
function withTagOf(target: string, tag: string) {
  const parsed = parseReference(target);
  if (parsed.tag !== undefined || parsed.digest !== undefined) return parsed;
  if (tag.includes(':')) {
    throw new UsageError(`${target}: say under which tag`, {
      hint: 'the source is named by digest, so it has none',
    });
  }
  return { ...parsed, tag };
}

/** What opening images takes from a session. */
export async function openOptionsOf(session: CommandSession): Promise<OpenReferenceOptions> {
  const { cache, temporaryDirectory, logger, signal } = session;
  return { connection: await session.connect(), cache, temporaryDirectory, logger, signal };
}
