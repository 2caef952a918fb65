import { createHash } from 'node:crypto';
import { readFile, stat } from 'node:fs/promises';
import path from 'node:path';
import { OpmateError } from '../../core/errors.js';
import { findSharingProblem, writePrivateFile } from '../../files/private-directory.js';
import type { CatalogFacts } from '../../model/facts.js';
import type { CommandContext } from '../context.js';
import { getTexts } from '../../document/json-fields.js';

/** Channels by package. */
type CatalogNames = ReadonlyMap<string, readonly string[]>;

/** Maximum size of a cached list. */
const maxBytes = 16 * 1024 * 1024;

/** Caches the names of a remote catalog for completion, in `names` of the cache directory. Never throws. */
export async function rememberNames(
  context: CommandContext,
  reference: string,
  { packages, channels }: Pick<CatalogFacts, 'packages' | 'channels'>,
): Promise<void> {
  // A directory is read anew each time.
  if (
    await stat(path.resolve(context.workingDirectory, reference)).then(
      (stats) => stats.isDirectory(),
      () => false,
    )
  )
    return;
  const names: Record<string, string[]> = Object.create(null) as Record<string, string[]>;
  for (const { name } of packages) names[name] = [];
  for (const channel of channels) (names[channel.package] ??= []).push(channel.name);
  const file = await getCacheFile(context, reference).catch(() => undefined);
  if (file === undefined) return;
  try {
    await writePrivateFile(file, JSON.stringify(names));
  } catch {
    // Completion goes without.
  }
}

/** Returns the cached names of a catalog, if any. Never throws. */
export async function recalledNames(
  context: CommandContext,
  reference: string,
): Promise<CatalogNames | undefined> {
  try {
    const file = await getCacheFile(context, reference);
    if ((await stat(file)).size > maxBytes) return undefined;
    const value: unknown = JSON.parse(await readFile(file, 'utf8'));
    if (typeof value !== 'object' || value === null) return undefined;
    return new Map(Object.entries(value).map(([name, channels]) => [name, getTexts(channels)]));
  } catch {
    return undefined;
  }
}

async function getCacheFile(context: CommandContext, reference: string): Promise<string> {
  const { getStorages: storagesOf } = await import('../serve/storage.js');
  const name = createHash('sha256').update(reference).digest('hex');
  const directory = path.join(path.dirname(storagesOf(context)), 'names');
  const fault = await findSharingProblem(directory);
  if (fault !== undefined) throw new OpmateError('UNSAFE', `${directory}: ${fault}`);
  return path.join(directory, `${name}.json`);
}
