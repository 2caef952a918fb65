import { realpath } from 'node:fs/promises';
import path from 'node:path';
import { type ImageFile, listFiles } from '../../bundle/image-files.js';
import { buildCatalogImages, catalogPlatforms } from '../../catalog/image/build.js';
import { defaultCatalogBase } from '../../catalog/dockerfile.js';
import { withOpen } from '../../core/concurrency.js';
import type { Diagnostic } from '../../core/diagnostic.js';
import { invalidValue, OpmateError } from '../../core/errors.js';
import { isWithin } from '../../core/text/paths.js';
import { statIfPresent } from '../../files/file-status.js';
import { withTemporaryDirectory } from '../../files/temporary-directory.js';
import {
  type BuiltImage,
  chooseBases,
  defaultCreated,
  describeImages,
} from '../../oci/image/image-builder.js';
import { formatPlatform, parsePlatform } from '../../oci/image/platform.js';
import type { Platform } from '../../oci/image/types.js';
import type { Artifact } from '../../oci/signatures/attach-artifact.js';
import type { Session } from '../../source/session.js';
import { type CatalogVerdict, judgeCatalog } from '../validate-catalog.js';
import { withCatalog } from '../open-catalog.js';
import { ownVersion } from '../own-process.js';
import {
  type ImageOutput,
  type StoredImage,
  checkImageOutput,
  openBase,
  putImages,
  requireReferrers,
} from './image-output.js';

/** Options of `buildCatalogImage`. */
export interface BuildCatalogImageOptions {
  /** Destinations, at least one; none within the catalog. */
  outputs: readonly ImageOutput[];
  /** Base image with opm, or `scratch`; default `quay.io/operator-framework/opm:latest`. */
  baseImage?: string | undefined;
  /** Platforms to build for, such as `linux/amd64`; default that of the session, else all of the base image. */
  platforms?: readonly string[] | undefined;
  labels?: ReadonlyMap<string, string> | undefined;
  /** Include the cache that `opm serve` starts from. */
  cache?: boolean | undefined;
  /** Creation time of the image, RFC 3339; default 1970-01-01T00:00:00Z. */
  created?: string | undefined;
  /** Attach an SBOM (SPDX 2.3) that lists packages, bundles and the images that they name. */
  sbom?: boolean | undefined;
  /** Name of the image in the SBOM, `REGISTRY/NAME:TAG`; default the first output in a registry. */
  name?: string | undefined;
  /** Build an image even if the catalog is invalid. */
  skipValidation?: boolean | undefined;
  /** Called when the catalog was checked and has problems or warnings, before anything is built. */
  onChecked?: ((verdict: CatalogVerdict, isRefused: boolean) => void | Promise<void>) | undefined;
}

/** Built image of a catalog, or findings that prevented it. */
export interface BuiltCatalogImage {
  /** The image in each place; empty if it was refused. */
  images: StoredImage[];
  /** Files of the catalog. */
  files: number;
  /** Files that cannot be in an image; with any, nothing is built. */
  findings: Diagnostic[];
}

/**
 * Builds the image of a catalog directory for all platforms and pushes or saves it. Nothing is written for a catalog that
 * is invalid or has no blobs, unless `skipValidation`, nor for one with files that cannot be in an image: the result then
 * has no images. Equal catalogs make equal images.
 *
 * Throws OpmateError: NOT_FOUND for a missing directory; UsageError for an output within the catalog. Opening the
 * base, pushing and saving may throw too.
 */
export async function buildCatalogImage(
  directory: string,
  session: Session,
  options: BuildCatalogImageOptions,
): Promise<BuiltCatalogImage> {
  const { outputs, created } = options;
  if (options.sbom) requireReferrers('sbom', outputs, 'an SBOM');
  if (outputs.some(({ signingKey }) => signingKey !== undefined))
    requireReferrers('signingKey', outputs, 'signatures');
  const platforms = options.platforms && parsePlatforms(options.platforms);
  await checkPlaces(directory, outputs);
  const { logger, signal, limits, followLinks } = session;
  const { files, findings } = await listFiles(directory, { label: directory, limits, signal, followLinks });
  const refused = { images: [], files: files.length, findings };
  if (findings.length > 0) return refused;
  if (files.length === 0) logger.log('warn', `${directory}: is empty, and so is the catalog`);
  else if (!options.skipValidation && !(await isValid(directory, session, options))) return refused;
  return withTemporaryDirectory(session, async (temporary) => {
    const opening = openBase(session, options.baseImage, 'options.baseImage', defaultCatalogBase);
    return withOpen(opening, async (base) => {
      const name = options.baseImage || defaultCatalogBase;
      const built = await buildCatalogImages(files, {
        // None is from scratch, which is for every platform.
        bases:
          platforms === undefined || base.images.length === 0
            ? base.images
            : chooseBases(base.images, platforms, name),
        platforms: session.platform === undefined ? (platforms ?? catalogPlatforms) : [session.platform],
        cache: options.cache ? await makeCache(directory, files, session, temporary) : undefined,
        labels: options.labels,
        created,
        directory: temporary,
        signal,
      });
      const sbom = options.sbom ? await makeSbom(directory, built, options, session, temporary) : undefined;
      const images: StoredImage[] = [];
      for (const output of outputs)
        images.push(await putImages(session, { ...output, sbom }, built, temporary));
      return { images, files: files.length, findings: [] };
    });
  });
}

/** Returns each platform once. Throws UsageError. */
function parsePlatforms(texts: readonly string[]): Platform[] {
  const platforms = texts.map(parsePlatform);
  return [...new Map(platforms.map((item) => [formatPlatform(item), item])).values()];
}

/** Throws OpmateError unless the catalog exists and no output lies within it. */
async function checkPlaces(directory: string, outputs: readonly ImageOutput[]): Promise<void> {
  const stats = await statIfPresent(directory);
  if (stats === undefined) {
    throw new OpmateError('NOT_FOUND', 'no such file or directory', {
      subject: directory,
      hint: 'specify a catalog directory; create one from an image with api.render or api.migrateCatalog',
    });
  }
  if (!stats.isDirectory()) {
    throw new OpmateError('INVALID', 'is not a directory', {
      subject: directory,
      hint: 'specify a catalog directory',
    });
  }
  const root = await realpath(directory);
  for (const output of outputs) {
    await checkImageOutput(output);
    const { to } = output;
    if (to.transport === 'docker' || !isWithin(root, await realPlace(to.path))) continue;
    throw invalidValue('options.to', to.text, 'lies in the catalog, and would be part of the next image', {
      hint: 'save the image elsewhere',
    });
  }
}

/** Returns the real path of a path whose last parts need not exist. */
async function realPlace(place: string): Promise<string> {
  const resolved = path.resolve(place);
  const parent = path.dirname(resolved);
  if (parent === resolved) return resolved;
  return realpath(resolved).catch(async () => path.join(await realPlace(parent), path.basename(resolved)));
}

async function isValid(
  directory: string,
  session: Session,
  { onChecked }: BuildCatalogImageOptions,
): Promise<boolean> {
  const verdict = await withCatalog(directory, session, ({ catalog }) =>
    judgeCatalog(catalog, { ...session, keepFaults: true }),
  );
  const { message, warnings } = verdict;
  if (message === undefined && warnings.length === 0) return true;
  const isRefused = message !== undefined || warnings.some(({ code }) => code === 'empty-catalog');
  await onChecked?.(verdict, isRefused);
  return !isRefused;
}

async function makeCache(
  directory: string,
  files: readonly ImageFile[],
  session: Session,
  temporary: string,
): Promise<ImageFile[]> {
  const { writeOpmCache } = await import('../../catalog/content/opm-cache.js');
  return withCatalog(directory, session, ({ catalog }) =>
    writeOpmCache(catalog, {
      catalogFiles: files,
      file: path.join(temporary, 'cache'),
      logger: session.logger,
      signal: session.signal,
    }),
  );
}

async function makeSbom(
  directory: string,
  images: readonly BuiltImage[],
  { outputs, name, created = defaultCreated }: BuildCatalogImageOptions,
  session: Session,
  temporary: string,
): Promise<Artifact> {
  const { writeCatalogSbom } = await import('./catalog-sbom.js');
  const version = ownVersion();
  const subject = {
    name: name ?? outputs.find(({ to }) => to.transport === 'docker')?.to.text,
    created,
    version,
    digest: describeImages(images).digest,
    bases: images.flatMap(({ base }) =>
      base === undefined ? [] : [{ name: base.repository.name, digest: base.descriptor.digest }],
    ),
  };
  return withCatalog(directory, session, ({ catalog }) =>
    writeCatalogSbom(catalog, subject, path.join(temporary, 'sbom.json'), session),
  );
}
