import { fileError } from '../../core/errors.js';
import { readBytes } from '../../files/file-region.js';
import { openRegularFile } from '../../files/read-file.js';
import { holdsConfigMaps } from '../drivers/config-map-files.js';

/** Detects what a file is as content: a tar archive, or documents that all are ConfigMaps. Throws OpmateError. */
export async function contentFileKind(file: string): Promise<'archive' | 'configMaps' | undefined> {
  if (await isArchive(file)) return 'archive';
  return (await holdsConfigMaps(file)) ? 'configMaps' : undefined;
}

/** Whether a file begins like a tar archive, or like compressed data. */
async function isArchive(file: string): Promise<boolean> {
  try {
    const handle = await openRegularFile(file);
    try {
      const head = await readBytes(handle, 0, 512);
      const starts = ['1f8b', '28b52ffd', '425a68', 'fd377a58'];
      const hex = head.toString('hex', 0, 4);
      if (starts.some((start) => hex.startsWith(start)) || /^5[0-9a-f]2a4d18/.test(hex)) return true;
      // The oldest form of tar has no mark; an empty archive is zeros.
      if (head.length < 512) return false;
      const isMarked = head.toString('latin1', 257, 262) === 'ustar';
      return isMarked || head.every((byte) => byte === 0) || /\.tar$/.test(file);
    } finally {
      await handle.close();
    }
  } catch (error) {
    throw fileError(file, error, { file });
  }
}
