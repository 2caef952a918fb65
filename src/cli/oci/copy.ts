import { argument, defineCommand } from '../command/declaration.js';
import { flag } from '../command/flags.js';
import { withOpen } from '../../core/concurrency.js';
import { UsageError } from '../../core/errors.js';
import { isDigest } from '../../core/digest.js';
import { type Reference, parseTargetReference } from '../../core/reference.js';
import { parseSourceImage } from '../../source/parse-place.js';
import { copyImage } from '../../oci/image/copy.js';
import { openImage } from '../../oci/image/image.js';
import { openReference, openTarget } from '../../oci/image/open.js';
import { writeAll } from '../output.js';
import { amountOfBytes, count } from '../printable.js';

/** `opmate oci copy`; prints the digest at the target. */
export const command = defineCommand({
  summary: 'copy an image between registries, layouts and archives',
  arguments: [
    argument('<source>', 'image in a registry, layout or archive'),
    argument('<destination>', 'registry reference or oci:DIR[:TAG]'),
  ],
  flags: { referrers: flag('also copy referrers such as signatures') },
  examples: {
    'Save an image to a layout directory':
      'opmate oci copy registry.example.com/demo/bundle:v1.0.0 oci:layout:v1',
    'Push an image from a layout directory':
      'opmate oci copy oci:layout:v1 registry.example.com/demo/copy:v1',
  },
  async runInSession({ context, args: [source, target], options, session }) {
    const parsedTarget = parseTargetReference(target);
    const { logger, signal, platform } = session;
    await withOpen(openReference(await parseSourceImage(source, session), session), async (from) => {
      const named = setTag(parsedTarget, from.reference);
      // Read before the target is opened, which makes a layout: there is nothing to make it for otherwise.
      // One platform's image is copied alone: an index without its other images is of no use.
      const { descriptor } =
        platform === undefined
          ? await from.repository.getManifest(from.reference, session)
          : await openImage(from.repository, from.reference, session);
      await withOpen(openTarget(named, session), async (to) => {
        const result = await copyImage(from.repository, descriptor.digest, to.repository, to.reference, {
          referrers: options.referrers,
          logger,
          signal,
        });
        const amount = `${count(result.manifests, 'manifest')}, ${count(result.blobs.copied, 'blob')}`;
        logger.log('info', `copied ${source} to ${target}: ${amount}, ${amountOfBytes(result.bytes)}`);
        logger.close();
        const { digest } = result.descriptor;
        await writeAll(context.stdout, `${digest}\n`);
      });
    });
  },
});

/** Sets the tag of the source if the target has no tag or digest. Throws UsageError. */
function setTag(target: Reference, tag: string): Reference {
  if (target.tag !== undefined || target.digest !== undefined) return target;
  if (isDigest(tag)) {
    throw new UsageError(`${target.text}: missing tag`, {
      hint: 'add a tag: the source has only a digest',
    });
  }
  // An image in a saved archive has a whole name, of which only the tag counts elsewhere.
  return { ...target, tag: tag.slice(tag.lastIndexOf(':') + 1) };
}
