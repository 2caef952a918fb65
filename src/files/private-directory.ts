import { stat } from 'node:fs/promises';
import { getuid } from 'node:process';

/** Write permission of the group and of all others. */
const othersMayWrite = 0o022;

/**
 * Returns why a directory is not this user's alone, undefined where it is, or is not there yet. Whoever else may write
 * to a cache decides what is read from it. The superuser's directories are trusted; systems without users have no rule.
 */
export async function sharedDirectoryFault(
  directory: string,
  user = getuid?.(),
): Promise<string | undefined> {
  if (user === undefined) return undefined;
  const stats = await stat(directory).catch(() => undefined);
  if (stats === undefined) return undefined;
  if (stats.uid !== user && stats.uid !== 0) return `owned by another user (${stats.uid})`;
  if ((stats.mode & othersMayWrite) !== 0)
    return `writable by other users (mode ${(stats.mode & 0o7777).toString(8).padStart(4, '0')})`;
  return undefined;
}
