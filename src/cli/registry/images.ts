import { logError } from '../../core/log.js';
import { defineCommand } from '../command/declaration.js';
import { flag, grouped, list, parsed, requiredUnless, text } from '../command/flags.js';
import { pollInterval } from '../command/values.js';
import { databaseSummary } from './database.js';
import path from 'node:path';
import { findRegistry, listImages } from '../../api/images/list-images.js';
import { invalidValue, OpmateError } from '../../core/errors.js';
import { sortedByBytes } from '../../core/order.js';
import { checkPullSpec } from '../../core/reference.js';
import { type ImageName, parseImageName, withoutNamespace } from '../../mirror/naming/image-name.js';
import { parseImageLocation } from '../../mirror/naming/image-location.js';
import { writeOutputFiles } from '../../mirror/output-files.js';
import type { ImageList } from '../../mirror/mapping/catalog-image-list.js';
import { encodeRegistryManifests, mapToRegistry } from '../../mirror/mapping/registry-images.js';
import { type MirrorPlan, formatMappingLines } from '../../mirror/plan/mirror-plan.js';
import { registryFlags } from '../command/global-flags.js';
import { formatFlags, reportEnding } from '../ending.js';
import { exitCodes } from '../exit-codes.js';
import { writeAll } from '../output.js';
import { count, printableLine, shellWord } from '../printable.js';
import { type CommandSession, writePieces } from '../session.js';

const flags = {
  ...grouped('Input', {
    from: requiredUnless(
      ['fromArchive', 'fromDb'],
      text('image', 'catalog image, directory, layout or database', { excludes: ['fromArchive', 'fromDb'] }),
    ),
    fromArchive: text('file', 'catalog image in an archive or layout; no registry is contacted', {
      excludes: ['fromDb'],
    }),
    fromDb: text('file', databaseSummary),
  }),
  ...grouped('Selection', {
    package: list('name', 'select these packages', { short: 'p', aliases: ['packages'] }),
    channel: list('name', 'select bundles in these channels', { aliases: ['channels'] }),
    bundle: list('name', 'select these bundles', { aliases: ['bundles'] }),
    includeUndeclared: flag('add images named only in deployments, e.g. in RELATED_IMAGE_* variables'),
  }),
  ...grouped('Output', {
    to: text('registry[/namespace]', 'print SOURCE=TARGET lines for a mirror and write the manifests'),
    manifests: text('directory', 'output directory', { default: './manifests', needs: 'to' }),
    catalogImage: text(
      'reference',
      'catalog image in catalogsource.yaml (default: --from, or its name in the archive)',
      { needs: 'to' },
    ),
    pollInterval: parsed(
      'duration',
      'interval of polls in catalogsource.yaml: updateStrategy',
      pollInterval,
      {
        needs: 'to',
      },
    ),
    idms: flag('write imagedigestmirrorset.yaml and imagetagmirrorset.yaml instead', { needs: 'to' }),
    tagDigests: flag(
      'tag every digest at the target, like oc adm catalog mirror (default: only where several share a repository)',
      { needs: 'to' },
    ),
  }),
};

/** `opmate registry images`; exit code 4 for invalid image names. (Source: enhancement "Disconnected OLM".) */
export const command = defineCommand({
  summary: 'list the images of a catalog, or map them to a mirror and write cluster manifests',
  flags,
  commonFlags: ['package', 'channel', 'bundle', 'from', 'to', 'manifests', 'catalogImage'],
  examples: {
    'List the images of a catalog': 'opmate registry images --from ./catalog',
    'Map them to a mirror, and write the manifests of the cluster':
      'opmate registry images --from registry.example.com/demo/catalog:v1 --to mirror.example.com/demo',
  },
  async runInSession({ context, options, session }) {
    const { from, fromArchive, fromDb, to, manifests } = options;
    const fault = options.catalogImage === undefined ? undefined : checkPullSpec(options.catalogImage);
    if (fault !== undefined) {
      throw invalidValue('--catalog-image', options.catalogImage, fault, {
        hint: 'specify an image that the cluster can pull, e.g. registry.example.com/ns/catalog:v1',
      });
    }
    const destination = to === undefined ? undefined : getDestination(to);
    const { package: packages, channel: channels, bundle: bundles } = options;
    const source = fromArchive === undefined ? ((from ?? fromDb) as string) : { archive: fromArchive };
    const list = await listImages(source, session, { packages, channels, bundles });
    const images = logUndeclared(session, list, options.includeUndeclared);
    if (destination === undefined) {
      await writePieces(context, session, images.map((image) => `${printableLine(image)}\n`).join(''));
      return exitCodes.done;
    }
    const plan = mapToRegistry(images, {
      destination,
      tagDigests: options.tagDigests,
    });
    for (const warning of plan.warnings) session.logger.log('warn', warning);
    for (const { error } of plan.faults) logError(session.logger, error);
    const catalogImage =
      options.catalogImage ?? (fromDb === undefined ? await list.findCatalogImage() : undefined);
    const files = encodeRegistryManifests(plan.images, {
      name: getName(catalogImage ?? from ?? fromArchive ?? fromDb ?? ''),
      catalogImage,
      pollInterval: options.pollInterval,
      mirrorSet: options.idms ? 'ImageDigestMirrorSet' : 'ImageContentSourcePolicy',
    });
    logManifestNotes(session, plan.images, {
      catalogImage,
      destination: options.catalogImage === undefined ? destination : undefined,
      idms: options.idms,
    });
    await writeOutputFiles(path.resolve(context.workingDirectory, manifests), files);
    const written = [...files.values()].filter((text) => text !== undefined).length;
    reportEnding(
      session.logger,
      [
        `${count(plan.images.length, 'image')} to mirror; wrote ${count(written, 'manifest')} to ${manifests}`,
      ],
      `opmate mirror -f MAPPING${formatFlags(registryFlags, options)} && kubectl apply -f ${shellWord(manifests)}`,
    );
    await writeAll(
      context.stdout,
      formatMappingLines(plan)
        .map((line) => `${printableLine(line)}\n`)
        .join(''),
    );
    return plan.faults.length > 0 ? exitCodes.partly : exitCodes.done;
  },
});

/** Logs images named only in deployments; returns the images to list. */
function logUndeclared({ logger }: CommandSession, list: ImageList, includesAll: boolean): string[] {
  const { images, undeclared, unexamined, withoutChannel } = list;
  for (const name of withoutChannel)
    logger.log('warn', `package ${name}: has none of the requested channels`);
  for (const { image, bundle, where } of undeclared) {
    const what = includesAll ? 'added' : 'not listed; --include-undeclared adds it';
    logger.log('warn', `${image}: only in the ${where} of bundle ${bundle}: ${what}`);
  }
  if (unexamined > 0)
    logger.log(
      'info',
      `${count(unexamined, 'bundle')} without manifests: images named only in deployments are not listed`,
    );
  if (!includesAll) return images;
  return sortedByBytes(new Set([...images, ...undeclared.map(({ image }) => image)]));
}

function logManifestNotes(
  { logger }: CommandSession,
  images: MirrorPlan['images'],
  {
    catalogImage,
    destination,
    idms,
  }: { catalogImage: string | undefined; destination: ImageName | undefined; idms: boolean },
): void {
  const registry = catalogImage === undefined ? undefined : findRegistry(catalogImage);
  if (registry !== undefined && destination !== undefined && registry !== destination.registry)
    logger.log(
      'warn',
      `catalogsource.yaml: the catalog ${catalogImage} is not in ${destination.registry}: mirror it, and name the copy with --catalog-image`,
    );
  if (catalogImage === undefined)
    logger.log(
      'warn',
      'catalogsource.yaml: not written, no catalog image known; set it with --catalog-image',
    );
  const unpinned = images.filter(({ reference }) => reference.digest === undefined).length;
  if (unpinned > 0 && !idms)
    logger.log(
      'info',
      `${count(unpinned, 'image')} with a tag only: not covered by ImageContentSourcePolicy; --idms writes an ImageTagMirrorSet`,
    );
}

function getDestination(text: string): ImageName {
  const place = parseImageLocation(text.replace(/\/+$/, ''), { isPrefix: true });
  const { tag, digest, registry } = place.name;
  if (place.scheme !== 'registry')
    throw invalidValue('--to', text, 'not a registry', { hint: 'use REGISTRY or REGISTRY/NAMESPACE' });
  const isHost = registry === '' && /^\d+$/.test(tag ?? '');
  if (isHost) return { registry: text.replace(/\/+$/, '').replace(/^docker:\/\//, ''), repository: '' };
  if (tag !== undefined || digest !== undefined || registry === '') {
    throw invalidValue('--to', text, registry === '' ? 'missing registry' : 'has a tag or digest', {
      hint: 'use REGISTRY or REGISTRY/NAMESPACE, e.g. registry.example.com:5000/community-operators',
    });
  }
  return place.name;
}

/** Returns the name of the objects, from the image or file. */
function getName(catalog: string): string {
  try {
    return withoutNamespace(parseImageName(catalog).repository);
  } catch (error) {
    if (!(error instanceof OpmateError)) throw error;
    const [file = ''] = path.basename(catalog).split(':');
    return file.replace(/(?:\.(?:tar|gz|tgz|zst|db))+$/, '');
  }
}
