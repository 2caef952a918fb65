import { statfs } from 'node:fs/promises';

/** Returns the number of bytes that this user can still write below a directory. Throws system errors. */
export async function freeBytes(directory: string): Promise<number> {
  const { bavail, bsize } = await statfs(directory);
  return bavail * bsize;
}
