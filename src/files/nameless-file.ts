import { type FileHandle, open, rm } from 'node:fs/promises';
import path from 'node:path';
import { stagingName, sweepLeftovers } from './staging.js';

/**
 * Opens a new file without a name for reading and writing: it disappears when closed, however the process ends. Sweeps
 * what processes left that were killed before they could remove the name. Throws system errors.
 */
export async function openNamelessFile(directory: string): Promise<FileHandle> {
  const file = path.join(directory, stagingName());
  const handle = await open(file, 'wx+', 0o600);
  try {
    await rm(file);
    await sweepLeftovers(directory);
    return handle;
  } catch (error) {
    await handle.close();
    throw error;
  }
}
