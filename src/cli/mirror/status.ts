import { argument, defineCommand } from '../command/declaration.js';
import { flag, parsed } from '../command/flags.js';
import { integer } from '../command/values.js';
import { outputFormat } from '../command/shared-flags.js';
import { lockFlags, mirrorFlags } from './flags.js';
import { getCopyLimits, readMirrorOptions } from './oc-mirror-flags.js';
import type { LockStatus } from '../../mirror/lock/lock-status.js';
import { findMirrorLock } from '../../api/mirror/find-lock.js';
import { readMirrorStatus } from '../../api/mirror/mirror-status.js';
import { readInputFile } from '../../files/read-file.js';
import { exitCodes } from '../exit-codes.js';
import { formatPackages } from './image-set-messages.js';
import { encodeData } from '../reports/encode-data.js';
import { amountOfBytes, count, printable } from '../printable.js';
import { writePieces } from '../session.js';
import { formatTable } from '../table.js';

/**
 * `opmate mirror status`: what of a lock is at a registry or in an archive, and what is left to copy. Exit code 4
 * where something is left.
 */
export const command = defineCommand({
  summary: 'show which locked images are present',
  description: 'Shows what is left to copy, and exits with 4 unless all is complete.',
  arguments: [argument('<destination>', 'docker://REGISTRY[/PATH] or file://DIR')],
  inherits: mirrorFlags,
  flags: {
    ...lockFlags,
    helmCharts: flag('also look for Helm charts in a registry', { group: 'Selection' }),
    shards: parsed('n', 'also show what is left per shard, of N', integer(1), { group: 'Output' }),
    output: outputFormat(['text', 'json'], { default: 'text' }),
  },
  examples: {
    'Show the missing content of an archive': 'opmate mirror status file://archive',
    'Show the remaining images of each of four shards':
      'opmate mirror status docker://registry.example.com/demo-mirror --workspace file://archive --shards 4',
    'Show the remaining images as JSON':
      'opmate mirror status docker://registry.example.com/demo-mirror --workspace file://archive -o json',
  },
  readOptions: ({ context, args: [destination], options }) =>
    readMirrorOptions(options, [destination], context),
  async runInSession({ context, args: [destination], options, session }) {
    const { output, maxNestedPaths, maxPerRegistry, shards } = options;
    const { lock: named, workspace, config } = options;
    // Accepted as by the other commands; the lock has the content.
    if (config !== undefined) await readInputFile(config, session);
    const { lock, name, plan } = await findMirrorLock(destination, session, { lock: named, workspace });
    const status = await readMirrorStatus(lock, destination, session, {
      maxNestedPaths,
      maxPerRegistry,
      shards,
      helmCharts: options.helmCharts,
      ...getCopyLimits(options),
    });
    const text =
      output === 'json'
        ? encodeData({ destination, lock: name, plan, ...status }, output)
        : formatText(destination, name, status, plan);
    await writePieces(context, session, text);
    return status.isComplete ? exitCodes.done : exitCodes.partly;
  },
});

const maxNamed = 20;

function formatText(destination: string, lock: string, status: LockStatus, plan: string): string {
  const { images, blobs, bytes, catalogs, packages, shards, incomplete, archive } = status;
  const lines = [
    `${destination}: ${images.complete} of ${count(images.total, 'image')} complete`,
    `lock: ${lock}`,
  ];
  if (destination.startsWith('file://'))
    lines.push(`archive: ${describeArchive(archive, status.isComplete)}`);
  lines.push(
    `left: ${count(blobs.left, 'blob')}, ${amountOfBytes(bytes.left)} of ${count(blobs.total, 'blob')}, ${amountOfBytes(bytes.total)}`,
  );
  for (const catalog of catalogs)
    lines.push(`catalog ${catalog.image}: ${catalog.isComplete ? 'present' : 'missing'}`);
  if (packages.length > 0) {
    lines.push('', formatPackages(packages, ['IMAGES', 'COMPLETE', 'LEFT'], toCells).trimEnd());
  }
  if (shards !== undefined) {
    const rows = shards.map((item) => [`${item.shard}/${shards.length}`, ...toCells(item)]);
    const table = formatTable(['SHARD', 'IMAGES', 'COMPLETE', 'LEFT'], rows).trimEnd();
    lines.push('', `plan: ${plan}`, '', table);
  }
  if (incomplete.length > 0) {
    lines.push('', 'not complete:', ...incomplete.slice(0, maxNamed).map((name) => `  ${name}`));
    const more = incomplete.length - maxNamed;
    if (more > 0) lines.push(`  and ${more} more`);
  }
  return printable(`${lines.join('\n')}\n`);
}

function toCells({ images, complete, bytesLeft }: Omit<LockStatus['packages'][number], 'name'>): string[] {
  return [String(images), String(complete), amountOfBytes(bytesLeft)];
}

function describeArchive(archive: LockStatus['archive'], isComplete: boolean): string {
  if (archive === undefined) return 'none is finished';
  const base = archive.base === undefined ? '' : `, which needs ${archive.base}`;
  const lock = archive.isOfLock
    ? ''
    : isComplete
      ? ', made of another lock'
      : ', made of another lock, which the next run replaces';
  return `${archive.id}${base}${lock}`;
}
