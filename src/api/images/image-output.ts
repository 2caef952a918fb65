/** Base images and outputs of verbs that build images. */
import { withOpen } from '../../core/concurrency.js';
import type { KeyObject } from 'node:crypto';
import path from 'node:path';
import { addContext } from '../../core/diagnostics-error.js';
import { OpmateError, UsageError } from '../../core/errors.js';
import { runTask } from '../../core/log.js';
import { type Reference, parseReference } from '../../core/reference.js';
import { readInputFile } from '../../files/read-file.js';
import { resolveReplacedFile, requireParentDirectory } from '../../files/replace-file.js';
import type { Image } from '../../oci/image/image.js';
import { type BuiltImage, openBases, pushImage, pushImageIndex } from '../../oci/image/image-builder.js';
import { type OpenedReference, openReference, openTarget } from '../../oci/image/open.js';
import { formatPlatform, getSubject } from '../../oci/image/platform.js';
import type { Descriptor } from '../../oci/image/types.js';
import type { WritableRepository } from '../../oci/registry/repository.js';
import { type Artifact, attachArtifact } from '../../oci/signatures/attach-artifact.js';
import { signImage } from '../../oci/signatures/sign-image.js';
import type { Session } from '../../source/session.js';
import { defaultBinaryImage } from '../../sqlite/read/index-image.js';
import { parseSigningKey } from '../../trust/signing-key.js';

/** Base images, one per platform; empty for `scratch`. */
interface OpenedBase {
  images: Image[];
  close(): Promise<void>;
}

/**
 * Opens what an image is built on: `otherwise` where `imageName` is none. Messages name the `flag` for it. Throws what
 * opening throws.
 */
export async function openBase(
  session: Session,
  imageName: string | undefined,
  flag: string,
  otherwise: string = defaultBinaryImage,
): Promise<OpenedBase> {
  const base = imageName || otherwise;
  if (base === 'scratch') return { images: [], close: async () => undefined };
  let opened: OpenedReference | undefined;
  try {
    opened = await openReference(parseReference(base), session);
    const images = await openBases(opened.repository, opened.reference, session);
    return { images, close: opened.close };
  } catch (error) {
    await opened?.close();
    if (imageName || !(error instanceof OpmateError) || error.code === 'CANCELLED') throw error;
    // This image is a default: the hint is not to correct its name.
    throw addContext(error, {
      subject: `base image ${base}`,
      replaces: [base],
      newHint: `specify another with ${flag}, from a registry or layout, or use scratch for an image of the data only`,
    });
  }
}

/** Stores images: one as it is, several as an index of platforms. */
async function pushIndexImages(
  target: WritableRepository,
  reference: string,
  images: readonly BuiltImage[],
  session: Session,
): Promise<Descriptor> {
  const task = `push ${getSubject(target.name, reference)}`;
  const [first, ...others] = images;
  return runTask(session.logger, task, () =>
    first !== undefined && others.length === 0
      ? pushImage(target, reference, first, session)
      : pushImageIndex(target, reference, images, session),
  );
}

/** Destination of an image. */
export interface ImageOutput {
  /** Of a registry or layout, with a tag; of an archive, `latest` by default. */
  to: Reference;
  /** Name of the image in an archive of `docker save`, and in a signature of a saved image. */
  name?: string | undefined;
  /** Signs the image. */
  signingKey?: KeyObject | undefined;
  /** Is attached to the image. */
  sbom?: Artifact | undefined;
}

/** Image that was pushed or saved. */
export interface StoredImage {
  /** Reference by digest, e.g. `registry.example.com/ns/index@sha256:…`. */
  name: string;
  to: Reference;
  /** Platforms of the image, such as `linux/amd64`, in the order of its base. */
  platforms: string[];
  /** Bytes of the layers on top of the base, over all platforms, a layer that several have once. */
  layerBytes: number;
  /** True if the tag was this image already. */
  isUnchanged: boolean;
}

/** Throws UsageError if an output cannot have referrers, which a flag attaches to the image. */
export function requireReferrers(flag: string, outputs: readonly ImageOutput[], attached: string): void {
  if (!outputs.some(({ to }) => to.transport === 'docker-archive')) return;
  const hint = 'save the image to oci:DIR or oci-archive:FILE, or push it';
  throw new UsageError(`${flag}: a docker-archive cannot hold ${attached}`, { hint });
}

/**
 * Reads the private key that images are signed with, in PEM or as cosign writes it; the password of an encrypted key is
 * `COSIGN_PASSWORD` of the session's environment. Throws OpmateError for a file without a private key.
 */
export async function readSigningKey(
  file: string,
  { environment, workingDirectory, signal }: Pick<Session, 'environment' | 'workingDirectory' | 'signal'>,
): Promise<KeyObject> {
  const pem = await readInputFile(file, { workingDirectory, signal });
  return parseSigningKey(pem, file, environment['COSIGN_PASSWORD']);
}

/** Attaches the SBOM and the signature of the output to a stored image. */
export async function attachToStored(
  session: Session,
  repository: WritableRepository,
  image: Descriptor,
  { to, name, signingKey, sbom }: ImageOutput,
): Promise<void> {
  const { digest } = image;
  const { signal, logger } = session;
  if (sbom !== undefined) {
    const attached = await attachArtifact(repository, image, sbom, { signal });
    logger.log('debug', `attached SBOM ${getSubject(repository.name, attached.digest)}`);
  }
  if (signingKey === undefined) return;
  const stored = to.transport === 'docker' ? `${to.registry}/${to.repository}:${to.tag}` : name;
  const reference = stored ?? to.tag ?? 'latest';
  await signImage(repository, digest, { reference, key: signingKey, signal });
  logger.log('debug', `signed ${getSubject(repository.name, digest)}`);
}

/**
 * Checks that what is to be written has a place. Throws OpmateError NOT_FOUND or IO, what `resolveReplacedFile` throws, and
 * UsageError for a reference that cannot be pushed to.
 */
export async function checkImageOutput({ to }: ImageOutput): Promise<void> {
  const isStore = to.transport === 'docker' || to.transport === 'oci';
  if (to.digest !== undefined || (isStore && to.tag === undefined)) {
    const problem = to.digest === undefined ? 'missing tag' : 'names a digest';
    throw new UsageError(`${to.text}: ${problem}`, { hint: 'add a tag, e.g. NAME:v1' });
  }
  if (to.transport === 'docker' || to.transport === 'oci') return;
  await requireParentDirectory(to.path);
  await resolveReplacedFile(to.path);
}

/**
 * Pushes or saves images, which may wait in `directory` meanwhile. Throws OpmateError UNSUPPORTED for several in an
 * archive that holds one, and what writing throws.
 */
export async function putImages(
  session: Session,
  output: ImageOutput,
  images: readonly BuiltImage[],
  directory: string,
): Promise<StoredImage> {
  const { name, isUnchanged = false } = await writeImages(session, output, images, directory);
  const layers = new Map(
    images.flatMap((image) =>
      [...image.layers, ...image.layerFiles].map(({ descriptor }) => [descriptor.digest, descriptor.size]),
    ),
  );
  const layerBytes = [...layers.values()].reduce((sum, bytes) => sum + bytes, 0);
  const platforms = images.map(({ platform }) => formatPlatform(platform));
  return { name, to: output.to, platforms, layerBytes, isUnchanged };
}

async function writeImages(
  session: Session,
  output: ImageOutput,
  images: readonly BuiltImage[],
  directory: string,
): Promise<{ name: string; isUnchanged?: boolean }> {
  const { signal } = session;
  const { to, name } = output;
  if (to.transport === 'docker-archive') {
    const [image, ...others] = images as [BuiltImage, ...BuiltImage[]];
    if (others.length > 0) {
      throw new OpmateError(
        'UNSUPPORTED',
        `docker-archive:${to.path}: holds one image, not ${images.length}`,
        { hint: 'select a platform with session.platform, or save an oci-archive' },
      );
    }
    const { saveDockerArchive } = await import('../../oci/image/docker-archive.js');
    const { digest } = await saveDockerArchive(image, to.path, { name, directory, signal });
    return { name: getSubject(`docker-archive:${to.path}`, digest) };
  }
  if (to.transport === 'oci-archive') {
    const [{ openLayout }, { packLayout }] = await Promise.all([
      import('../../oci/layout/layout.js'),
      import('../../oci/layout/layout-pack.js'),
    ]);
    const layout = path.join(directory, 'layout');
    const target = await openLayout(layout, { create: true });
    const image = await pushIndexImages(target, to.tag ?? 'latest', images, session);
    await attachToStored(session, target, image, output);
    await packLayout(layout, to.path, { signal });
    return { name: getSubject(`oci-archive:${to.path}`, image.digest) };
  }
  return withOpen(openTarget(to, session), async ({ repository, reference }) => {
    const before = await findDigest(repository, reference, session);
    const image = await pushIndexImages(repository, reference, images, session);
    await attachToStored(session, repository, image, output);
    return { name: getSubject(repository.name, image.digest), isUnchanged: image.digest === before };
  });
}

/** Returns the digest of a tag; undefined if it cannot be read: the push may still succeed. */
async function findDigest(
  repository: WritableRepository,
  reference: string,
  { signal }: Session,
): Promise<string | undefined> {
  try {
    return (await repository.headManifest(reference, { signal }))?.digest;
  } catch (error) {
    if (error instanceof OpmateError && ['AUTH', 'REGISTRY', 'UNSUPPORTED'].includes(error.code))
      return undefined;
    throw error;
  }
}
