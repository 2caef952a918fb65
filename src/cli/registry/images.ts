import { logError } from '../../core/log.js';
import { defineCommand } from '../command/declaration.js';
import { flag, grouped, list, parsed, requiredUnless, text } from '../command/flags.js';
import { pollInterval } from '../command/values.js';
import { databaseSummary } from './database.js';
import { findRegistry, listImages } from '../../api/images/list-images.js';
import { type MappedImages, mapCatalogImages, writeMirrorManifests } from '../../api/images/map-images.js';
import type { ImageList } from '../../mirror/mapping/catalog-image-list.js';
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
    const { from, fromArchive, fromDb, to, manifests, includeUndeclared } = options;
    const { package: packages, channel: channels, bundle: bundles } = options;
    const source = fromArchive === undefined ? ((from ?? fromDb) as string) : { archive: fromArchive };
    const selection = { packages, channels, bundles, includeUndeclared };
    if (to === undefined) {
      const list = await listImages(source, session, selection);
      logUndeclared(session, list, includeUndeclared);
      await writePieces(context, session, list.images.map((image) => `${printableLine(image)}\n`).join(''));
      return exitCodes.done;
    }
    const mapped = await mapCatalogImages(source, session, {
      ...{ ...selection, to, mirrorSet: options.idms ? 'ImageDigestMirrorSet' : undefined },
      catalogImage: options.catalogImage,
      tagDigests: options.tagDigests,
      pollInterval: options.pollInterval,
      onListed: (list) => logUndeclared(session, list, includeUndeclared),
    });
    for (const warning of mapped.warnings) session.logger.log('warn', warning);
    for (const { error } of mapped.faults) logError(session.logger, error);
    logManifestNotes(session, mapped, options);
    await writeMirrorManifests(mapped, manifests, session);
    const written = [...mapped.manifests.values()].filter((text) => text !== undefined).length;
    const images = count(mapped.images.length, 'image');
    reportEnding(
      session.logger,
      [`${images} to mirror; wrote ${count(written, 'manifest')} to ${manifests}`],
      `opmate mirror -f MAPPING${formatFlags(registryFlags, options)} && kubectl apply -f ${shellWord(manifests)}`,
    );
    await writeAll(context.stdout, mapped.lines.map((line) => `${printableLine(line)}\n`).join(''));
    return mapped.faults.length > 0 ? exitCodes.partly : exitCodes.done;
  },
});

/** Logs images named only in deployments. */
function logUndeclared({ logger }: CommandSession, list: ImageList, includesAll: boolean): void {
  const { undeclared, unexamined, withoutChannel } = list;
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
}

function logManifestNotes(
  { logger }: CommandSession,
  { images, catalogImage, registry: mirror }: MappedImages,
  { catalogImage: named, idms }: { catalogImage: string | undefined; idms: boolean },
): void {
  const registry = catalogImage === undefined ? undefined : findRegistry(catalogImage);
  if (registry !== undefined && named === undefined && registry !== mirror)
    logger.log(
      'warn',
      `catalogsource.yaml: the catalog ${catalogImage} is not in ${mirror}: mirror it, and name the copy with --catalog-image`,
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
