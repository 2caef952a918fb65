import { statfs } from 'node:fs/promises';

/** Returns how many bytes this user can still write below a directory. Throws the error of the system. */
export async function freeBytes(directory: string): Promise<number> {
  const { bavail, bsize } = await statfs(directory);
  return bavail * bsize;
}
