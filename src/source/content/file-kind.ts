import { withOpen } from '../../core/concurrency.js';
import { throwFileError } from '../../core/errors.js';
import { readBytes } from '../../files/file-region.js';
import { openRegularFile } from '../../files/read-file.js';
import { holdsConfigMaps } from '../drivers/config-map-files.js';

/** Detects a tar archive, or a manifest file of ConfigMaps only; undefined for other files. Throws OpmateError. */
export async function contentFileKind(file: string): Promise<'archive' | 'configMaps' | undefined> {
  if (await isArchive(file)) return 'archive';
  return (await holdsConfigMaps(file)) ? 'configMaps' : undefined;
}

/** Reports whether a file starts with the signature of a tar archive or of compressed data. Throws OpmateError. */
export async function isArchive(file: string): Promise<boolean> {
  const head = await withOpen(openRegularFile(file), (handle) => readBytes(handle, 0, 512)).catch(
    throwFileError(file, { file }),
  );
  const signatures = ['1f8b', '28b52ffd', '425a68', 'fd377a58'];
  const hex = head.toString('hex', 0, 4);
  if (signatures.some((signature) => hex.startsWith(signature)) || /^5[0-9a-f]2a4d18/.test(hex)) return true;
  // Pre-POSIX tar has no signature; an empty archive consists of zeros.
  if (head.length < 512) return false;
  const isUstar = head.toString('latin1', 257, 262) === 'ustar';
  return isUstar || head.every((byte) => byte === 0) || /\.tar$/.test(file);
}
