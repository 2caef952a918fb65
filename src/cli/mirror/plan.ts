import { UsageError } from '../../core/errors.js';
import { quoteGo } from '../../document/go-json.js';
import type { BytePlan } from '../../mirror/lock/byte-plan.js';
import type { CommandContext } from '../context.js';
import { exitCodes } from '../exit-codes.js';
import { parseDestination } from './image-set-options.js';
import { globalOptionsOf } from './options.js';
import { writeAll } from '../output.js';
import { amountOfBytes, count } from '../printable.js';
import { useSession } from '../session.js';
import { formatTable } from '../table.js';
import { ImageSetWork, type MirrorCommandOptions } from './mirror.js';

interface MirrorPlanOptions extends MirrorCommandOptions {
  output?: string;
}

/**
 * `opmate mirror plan`: what mirroring an image set would copy, to the byte, in all and by package; and the lock by
 * which `opmate mirror --locked` copies just that. Of images no blob is read but the layers of catalogs.
 */
export async function mirrorPlan(
  context: CommandContext,
  destination: string,
  given: MirrorPlanOptions,
): Promise<number> {
  const options = globalOptionsOf(given);
  const { output = 'text' } = options;
  if (output !== 'text' && output !== 'json')
    throw new UsageError(`invalid --output value ${quoteGo(output)}, expected (text|json)`);
  for (const flag of ['from', 'locked'] as const) {
    if (options[flag] === undefined) continue;
    throw new UsageError(`--${flag}: a plan is made from the sources`, {
      hint: 'opmate mirror status says what of a lock is to be copied yet',
    });
  }
  const work = new ImageSetWork(context, options, parseDestination(destination, context));
  return useSession(context, options, async (session) => {
    await work.requireWritable();
    const { config, digest } = await work.readConfig();
    const plan = await work.withMirror(config, session, async (mirror, names) => {
      const templates = await work.requireResources(names, config);
      await mirror.prepare();
      const bytes = await work.survey(mirror);
      await work.writeLock(mirror.lock(digest, work.lockOptions('unknown'), templates));
      return bytes;
    });
    session.logger.log('info', `${work.shownLock()}: written`);
    session.logger.close();
    await writeAll(context.stdout, output === 'json' ? `${JSON.stringify(plan, null, 2)}\n` : textOf(plan));
    return exitCodes.done;
  });
}

function textOf(plan: BytePlan): string {
  const { images, manifests, blobs, bytes, presentBlobs, presentBytes, packages } = plan;
  const amount = (number: number, size: number): string => `${count(number, 'blob')}, ${amountOfBytes(size)}`;
  const rows = [
    ['images', `${images}, with ${count(manifests, 'manifest')}`],
    ['in all', amount(blobs, bytes)],
    ['there', amount(presentBlobs, presentBytes)],
    ['to copy', amount(blobs - presentBlobs, bytes - presentBytes)],
  ];
  const summary = rows.map(([name = '', text]) => `${name.padEnd('to copy'.length)}  ${text}\n`).join('');
  if (packages.length === 0) return summary;
  const table = formatTable(
    ['PACKAGE', 'IMAGES', 'SIZE', 'OWN'],
    packages.map((one) => [
      one.name,
      String(one.images),
      amountOfBytes(one.bytes),
      amountOfBytes(one.ownBytes),
    ]),
  );
  return `${summary}\n${table}`;
}
