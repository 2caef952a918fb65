import { withOpen } from '../../core/concurrency.js';
import path from 'node:path';
import type { KeyObject } from 'node:crypto';
import { OpmateError, UsageError } from '../../core/errors.js';
import { parseReference, parseTargetReference } from '../../core/reference.js';
import { statIfPresent } from '../../files/file-status.js';
import { imageLabels } from '../../model/image-labels.js';
import { copyImage } from '../../oci/image/copy.js';
import { openImage } from '../../oci/image/image.js';
import { openReference, openTarget } from '../../oci/image/open.js';
import { getSubject } from '../../oci/image/platform.js';
import type { Session } from '../../source/session.js';
import { type ImageOutput, attachToStored } from '../images/image-output.js';
import { type BuildBundleOptions, type BuiltBundle, storeBundle } from './build-bundle.js';

/** Options of pushing a bundle. */
export interface PushBundleOptions extends Pick<BuildBundleOptions, 'onPrepared'> {
  /** Signs the image. */
  signingKey?: KeyObject | undefined;
}

/** Result of pushing a bundle. */
export interface PushedBundle {
  /** Problems of a bundle in a directory. With any, nothing was pushed, and `name` is undefined. */
  findings: BuiltBundle['findings'];
  /** Reference by digest, e.g. `registry.example.com/ns/bundle@sha256:…`. */
  name: string | undefined;
  /** Image that was built; undefined for one that was saved and pushed byte for byte. */
  built: BuiltBundle['images'][number] | undefined;
}

/**
 * Pushes a bundle image to a tag in a registry: byte for byte the one that was saved as `oci:DIR[:TAG]`, `oci-archive:FILE`
 * or `docker-archive:FILE`, or one built from a directory with `manifests/` and `metadata/`. Throws OpmateError, INVALID
 * for the image of something else.
 */
export async function pushBundle(
  source: string,
  target: string,
  session: Session,
  { signingKey, onPrepared }: PushBundleOptions = {},
): Promise<PushedBundle> {
  const output: ImageOutput = { to: requireTag(target), signingKey };
  const directory = path.resolve(session.workingDirectory, source);
  const stats = await statIfPresent(directory);
  if (stats?.isDirectory() === true) {
    const request = { directory: path.join(directory, 'manifests') };
    const { findings, images } = await storeBundle(request, [output], session, {
      readsOnly: true,
      onPrepared,
    });
    return { findings, name: images[0]?.name, built: images[0] };
  }
  const from = parseReference(source);
  if (stats !== undefined || from.transport === 'docker') {
    throw new UsageError(`${source}: not a directory, and no saved image`, {
      hint:
        stats === undefined
          ? 'use oci:DIR:TAG, oci-archive:FILE or docker-archive:FILE; copy between registries with api.copyReference'
          : `use oci-archive:${source} or docker-archive:${source}`,
    });
  }
  return withOpen(openReference(from, session), async (opened) => {
    const { labels } = await openImage(opened.repository, opened.reference, session);
    if (labels[imageLabels.bundlePackage] === undefined) {
      throw new OpmateError('INVALID', `${source}: not the image of a bundle`, {
        hint: `add the label ${imageLabels.bundlePackage}, or copy other images with api.copyReference`,
      });
    }
    return withOpen(openTarget(output.to, session), async (place) => {
      const { repository, reference } = place;
      const { descriptor } = await copyImage(
        opened.repository,
        opened.reference,
        repository,
        reference,
        session,
      );
      await attachToStored(session, repository, descriptor, output);
      return { findings: [], name: getSubject(repository.name, descriptor.digest), built: undefined };
    });
  });
}

function requireTag(text: string): ImageOutput['to'] {
  const reference = parseTargetReference(text);
  if (reference.transport === 'docker' && reference.tag !== undefined && reference.digest === undefined)
    return reference;
  throw new UsageError('missing tag', {
    subject: text,
    hint: 'add a tag, such as :v1.0.0',
  });
}
