import { argument, defineCommand } from '../command/declaration.js';
import { required, text } from '../command/flags.js';
import { outputFormat } from '../command/shared-flags.js';
import { imageSetFlags, mirrorFlags } from './flags.js';
import { readMirrorOptions, refuseFlags } from './oc-mirror-flags.js';
import { planMirror } from '../../api/mirror.js';
import type { BytePlan } from '../../mirror/lock/byte-plan.js';
import { logError } from '../../core/log.js';
import type { ArchiveForecast } from '../../oci/archive-set/archive-set-writer.js';
import { reportEnding } from '../ending.js';
import { exitCodes } from '../exit-codes.js';
import { writeAll } from '../output.js';
import { amountOfBytes, count } from '../printable.js';
import { encodeData } from '../reports/encode-data.js';
import { getCopyCommand, logRemovedImages, logWrittenLock, readMirrorRun } from './image-set-run.js';
import { formatPackages } from './image-set-messages.js';
import { describeFailures } from './options.js';

/**
 * `opmate mirror plan`: prints the bytes that mirroring an image set would copy, in total and by package, and writes the
 * lock for `opmate mirror --locked`. Reads blobs of catalogs only.
 */
export const command = defineCommand({
  summary: 'show what a run would copy, and write its lock',
  description: 'Sizes are in bytes, of each image and in all.',
  arguments: [argument('<destination>', 'docker://REGISTRY[/PATH] or file://DIR')],
  inherits: mirrorFlags,
  flags: {
    config: required(text('file', 'ImageSetConfiguration file', { short: 'c', group: 'Input' })),
    base: text('file', 'with file://: omit content of this archive or inventory', { group: 'Input' }),
    ...imageSetFlags,
    onError: { ...mirrorFlags.onError, summary: 'action for images that cannot be read', excludes: [] },
    output: outputFormat(['text', 'json'], { default: 'text' }),
  },
  commonFlags: [
    'config',
    'locked',
    'base',
    'workspace',
    'lock',
    'output',
    'dependencies',
    'helmCharts',
    'onError',
  ],
  examples: {
    'Show the size of a mirror run, and write the lock':
      'opmate mirror plan -c imageset.yaml docker://registry.example.com/mirror',
    'Show the content of an archive based on another':
      'opmate mirror plan -c imageset.yaml file://next --base archive',
  },
  readOptions: ({ context, args: [destination], options }) =>
    readMirrorOptions(options, [destination], context),
  async runInSession({ context, args: [destination], options, session }) {
    const hint = 'run opmate mirror status to see the remaining images';
    refuseFlags(options, ['from', 'locked'], ': a plan is made from the sources', hint);
    const { output, config } = options;
    const request = { options, target: destination };
    const mirror = await readMirrorRun(context, options, session);
    const planned = await planMirror(config, destination, session, mirror);
    const { bytes, plan, paths, kept, report, changes, removed, archive } = planned;
    logWrittenLock(planned, session);
    logRemovedImages(removed, request, session);
    for (const change of changes) session.logger.log('warn', change);
    const isWhole = report.failed.length === 0;
    if (!isWhole) session.logger.log('error', `${count(report.failed.length, 'image')} not in the plan`);
    const tooSmall = archive?.problem;
    if (tooSmall !== undefined) logError(session.logger, tooSmall);
    const next =
      isWhole && tooSmall === undefined
        ? getCopyCommand(request, { locked: true, plan, onError: 'stop' })
        : undefined;
    reportEnding(session.logger, [`plan ${plan}`], next);
    const failed = isWhole ? {} : { failed: describeFailures(report) };
    const text =
      output === 'json'
        ? encodeData(
            {
              destination,
              lock: paths?.lock ?? '',
              plan,
              ...bytes,
              kept,
              removedImages: removed.names,
              ...failed,
              ...(archive !== undefined && { archive: toData(archive) }),
            },
            'json',
          )
        : formatText(bytes, archive);
    await writeAll(context.stdout, text);
    if (tooSmall !== undefined) return exitCodes.failed;
    return isWhole ? exitCodes.done : exitCodes.partly;
  },
});

function toData({ parts, bytes, needed, free }: ArchiveForecast) {
  return { parts, bytes, neededBytes: needed, freeBytes: free };
}

function formatText(plan: BytePlan, archive: ArchiveForecast | undefined): string {
  const { images, manifests, blobs, bytes, presentBlobs, presentBytes, packages } = plan;
  const amount = (number: number, size: number): string => `${count(number, 'blob')}, ${amountOfBytes(size)}`;
  const rows: [string, string][] = [
    ['images', `${images}, with ${count(manifests, 'manifest')}`],
    ['total', amount(blobs, bytes)],
    ['present', amount(presentBlobs, presentBytes)],
    ['to copy', amount(blobs - presentBlobs, bytes - presentBytes)],
  ];
  if (archive !== undefined) {
    const { parts, needed, free } = archive;
    const space = `${amountOfBytes(needed)} needed, ${amountOfBytes(free)} free`;
    rows.push(['archive', `${count(parts, 'part')}, ${amountOfBytes(archive.bytes)}; ${space}`]);
  }
  const summary = rows.map(([name, text]) => `${name.padEnd('to copy'.length)}  ${text}\n`).join('');
  if (packages.length === 0) return summary;
  const table = formatPackages(packages, ['IMAGES', 'SIZE', 'UNIQUE'], (sums) => [
    String(sums.images),
    amountOfBytes(sums.bytes),
    amountOfBytes(sums.ownBytes),
  ]);
  return `${summary}\n${table}`;
}
