import type { GlobalOptions } from '../command/global-flags.js';
import { argument, defineCommand } from '../command/declaration.js';
import { flag, list, repeated, text } from '../command/flags.js';
import { imageOutputFlags } from '../index/image-output-flags.js';
import path from 'node:path';
import { realpath } from 'node:fs/promises';
import { withTemporaryDirectory } from '../../files/temporary-directory.js';
import { buildCatalogImages, catalogPlatforms } from '../../catalog/image/build.js';
import { type ImageFile, listFiles } from '../../bundle/image-files.js';
import { isWithin } from '../../files/directory-root.js';
import { OpmateError, UsageError } from '../../core/errors.js';
import {
  type BuiltImage,
  chooseBases,
  defaultCreated,
  describeImages,
} from '../../oci/image/image-builder.js';
import type { Artifact } from '../../oci/signatures/attach-artifact.js';
import { ownVersion } from '../root/build-info.js';
import { formatPlatform, parsePlatform } from '../../oci/image/platform.js';
import type { Platform } from '../../oci/image/types.js';
import { statIfPresent } from '../../files/file-status.js';
import { withCatalog } from '../../api/open-catalog.js';
import type { CommandContext } from '../context.js';
import type { LogLevel } from '../../core/log.js';
import { parseLevel } from '../logger.js';
import { reportEnding } from '../ending.js';
import { exitCodes } from '../exit-codes.js';
import {
  type ImageOutput,
  checkImageOutput,
  openBase,
  putImages,
  requireReferrers,
} from '../../api/images/image-output.js';
import { describeOutput, nextAfterImage, planImageOutputs, readSignBy } from '../index/image-output.js';
import { writeAll } from '../output.js';
import { count } from '../printable.js';
import { type CommandSession, useSession } from '../session.js';
import { tellFindings } from '../bundle/findings.js';
import { defaultImage, parseLabels } from '../root/image-labels.js';
import { describeVerdict, judge } from '../root/verdict.js';

/**
 * `opmate catalog build`: the image of a catalog, pushed or saved. Prints what it is called, by digest. All that speaks
 * against the catalog goes to stderr, with the exit code for findings, and then nothing is written.
 */
export const command = defineCommand({
  summary: 'build a catalog image for all platforms and push or save it',
  arguments: [argument('<directory>', 'catalog directory')],
  flags: {
    ...imageOutputFlags,
    baseImage: text('image', `base image with opm, or scratch (default: ${defaultImage})`, { short: 'i' }),
    platforms: list('os/arch', 'platforms to build for (default: all platforms of the base image)'),
    extraLabels: repeated('key=value', 'additional labels, comma-separated', { short: 'l' }),
    cache: flag('include the serve cache in the image'),
    created: text('time', 'creation time of the image (default: 1970-01-01T00:00:00Z)'),
    sbom: flag('attach an SBOM (SPDX 2.3) that lists packages, bundles and the images that they name', {
      group: 'Output',
    }),
    skipValidation: flag('build an image even if the catalog is invalid'),
  },
  examples: [
    [
      'Build and push a catalog image',
      'opmate catalog build ./catalog -t registry.example.com/demo/new-catalog:v2 -i scratch',
    ],
    [
      'Save the image to a layout directory',
      'opmate catalog build ./catalog --save oci:layout:v2 -i scratch',
    ],
    [
      'Push the image with an SBOM and a signature',
      'opmate catalog build ./catalog -t registry.example.com/demo/catalog:v2 -i scratch --sbom --sign-by cosign.key',
    ],
  ],
  async run({ context, args: [directory], options }) {
    const planned = planImageOutputs(options);
    const signingKey = await readSignBy(options, context, planned);
    if (options.sbom) requireReferrers('--sbom', planned, 'an SBOM');
    const outputs = planned.map((output) => ({ ...output, signingKey }));
    const platforms = findPlatforms(options);
    const labels = parseLabels(options.extraLabels ?? []);
    const created = options.created === undefined ? undefined : parseTime(options.created);
    return useSession(context, options, async (session) => {
      await checkPlaces(directory, outputs);
      const { logger, signal, limits, followLinks } = session;
      const { files, findings } = await listFiles(directory, {
        label: directory,
        limits,
        signal,
        followLinks,
      });
      if (findings.length > 0) {
        logger.close();
        await tellFindings(context, findings);
        return exitCodes.findings;
      }
      if (files.length === 0) logger.log('warn', `${directory}: is empty, and so is the catalog`);
      else if (!options.skipValidation && !(await isValid(context, directory, session, parseLevel(options))))
        return exitCodes.findings;
      return withTemporaryDirectory(session, async (temporary) => {
        const base = await openBase(session, options.baseImage, '--base-image', defaultImage);
        try {
          const name = options.baseImage || defaultImage;
          const chosen = session.platform === undefined ? platforms : [session.platform];
          const images = await buildCatalogImages(files, {
            // None is from scratch, which is for every platform.
            bases:
              platforms === undefined || base.images.length === 0
                ? base.images
                : chooseBases(base.images, platforms, name),
            platforms: chosen ?? catalogPlatforms,
            cache: options.cache ? await makeCache(directory, files, session, temporary) : undefined,
            labels,
            created,
            directory: temporary,
            signal,
          });
          const sbom = options.sbom
            ? await makeSbom(directory, images, { name: options.tag, created }, session, temporary)
            : undefined;
          let made = '';
          for (const output of outputs)
            made += `${await putImages(session, { ...output, sbom }, images, temporary)}\n`;
          const all = images.map((image) => formatPlatform(image.platform)).join(', ');
          const built = `built ${count(images.length, 'image')} from ${count(files.length, 'file')}: ${all}`;
          const stored = outputs.map((output) => describeOutput(output, images));
          const [first] = outputs as [ImageOutput];
          reportEnding(
            logger,
            [built, ...stored],
            nextAfterImage(first, (image) => `opmate serve ${image}`),
          );
          await writeAll(context.stdout, made);
          return exitCodes.done;
        } finally {
          await base.close();
        }
      });
    });
  },
});

function findPlatforms({
  platforms,
  platform,
}: GlobalOptions & { platforms: string[] | undefined }): Platform[] | undefined {
  if (platforms === undefined) return undefined;
  if (platform !== undefined) {
    throw new UsageError('--platform and --platforms cannot be used together', { hint: 'keep --platforms' });
  }
  const chosen = new Map<string, Platform>();
  for (const text of platforms) {
    const item = parsePlatform(text);
    chosen.set(formatPlatform(item), item);
  }
  if (chosen.size > 0) return [...chosen.values()];
  throw new UsageError('--platforms: names none', { hint: 'e.g. --platforms linux/amd64,linux/arm64' });
}

/** A time as images have it. */
function parseTime(text: string): string {
  const isTime = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d{1,9})?(Z|[+-]\d\d:\d\d)$/.test(text);
  if (isTime && !Number.isNaN(Date.parse(text))) return text;
  throw new UsageError(`--created ${text}: not a time`, { hint: 'write it as 2026-01-31T12:00:00Z' });
}

/** Finds out before anything is done whether there is a catalog, and a place for its image outside of it. */
async function checkPlaces(directory: string, outputs: readonly ImageOutput[]): Promise<void> {
  const stats = await statIfPresent(directory);
  if (stats === undefined) {
    throw new OpmateError('NOT_FOUND', `${directory}: no such directory`, {
      hint: 'give the directory that holds the catalog; opmate render or migrate makes one of an image',
    });
  }
  if (!stats.isDirectory()) {
    throw new OpmateError('INVALID', `${directory}: is not a directory`, {
      hint: 'give the directory that holds the catalog',
    });
  }
  const root = await realpath(directory);
  for (const output of outputs) {
    await checkImageOutput(output);
    const { to } = output;
    if (to.transport === 'docker' || !isWithin(root, await realPlace(to.path))) continue;
    throw new UsageError(`--save ${to.text}: lies in the catalog, and would be part of the next image`, {
      hint: 'save the image elsewhere',
    });
  }
}

/** Where a path leads, of which the last parts need not exist. */
async function realPlace(place: string): Promise<string> {
  const resolved = path.resolve(place);
  const parent = path.dirname(resolved);
  if (parent === resolved) return resolved;
  return realpath(resolved).catch(async () => path.join(await realPlace(parent), path.basename(resolved)));
}

/** Whether a catalog is valid and has blobs; prints its findings. */
async function isValid(
  context: CommandContext,
  directory: string,
  session: CommandSession,
  level: LogLevel,
): Promise<boolean> {
  const verdict = await withCatalog(directory, session, ({ catalog }) => judge(catalog, session));
  if (verdict.message === undefined && verdict.warnings.length === 0) return true;
  const isEmpty = verdict.warnings.some(({ code }) => code === 'empty-catalog');
  const isRefused = verdict.message !== undefined || isEmpty;
  if (isRefused) session.logger.close();
  await writeAll(context.stderr, describeVerdict(verdict, level));
  return !isRefused;
}

async function makeCache(
  directory: string,
  files: readonly ImageFile[],
  session: CommandSession,
  temporary: string,
): Promise<ImageFile[]> {
  const { writeCatalogCache } = await import('../../api/catalog-cache.js');
  return withCatalog(directory, session, ({ catalog }) =>
    writeCatalogCache(catalog, {
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
  { name, created = defaultCreated }: { name: string | undefined; created: string | undefined },
  session: CommandSession,
  temporary: string,
): Promise<Artifact> {
  const [{ writeCatalogSbom }, version] = await Promise.all([
    import('../../api/images/catalog-sbom.js'),
    ownVersion(),
  ]);
  const subject = {
    ...{ name, created, version, digest: describeImages(images).digest },
    bases: images.flatMap(({ base }) =>
      base === undefined ? [] : [{ name: base.repository.name, digest: base.descriptor.digest }],
    ),
  };
  return withCatalog(directory, session, ({ catalog }) =>
    writeCatalogSbom(catalog, subject, path.join(temporary, 'sbom.json'), session),
  );
}
