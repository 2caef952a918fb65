import { realpath } from 'node:fs/promises';
import path from 'node:path';
import { OpmateError } from '../../core/errors.js';
import { quoteGo } from '../../document/go-json.js';
import { statIfPresent } from '../../files/file-status.js';
import {
  type ArchiveBase,
  archiveIndexName,
  baseOfArchive,
  readArchiveIndex,
} from '../../oci/archive-set/archive-index.js';
import { baseOfInventory, readInventoryFile } from '../inventory/inventory.js';

/** An archive, by its directory or index, or an inventory. */
export interface BasePlace {
  /** Absolute. */
  path: string;
  /** As the user names it. */
  text: string;
}

/**
 * Reads the base of a new archive. Throws OpmateError for what is neither an archive nor an inventory, and for an
 * archive that the new one in `directory` would replace.
 */
export async function readArchiveBase(base: BasePlace, directory: string | undefined): Promise<ArchiveBase> {
  const isFile = (await statIfPresent(base.path))?.isFile() === true;
  const inventory = isFile ? await readInventoryFile(base.path, base.text) : undefined;
  if (inventory !== undefined) return baseOfInventory(inventory);
  const index = await readArchiveIndex(base.path);
  if (directory !== undefined) {
    const [place, target] = await Promise.all([base.path, directory].map(resolveLinks));
    if (place === target || place === path.join(target as string, archiveIndexName)) {
      const problem = `--base ${quoteGo(base.text)}: the new archive would replace it, and could not be used without it`;
      const hint = 'use another directory, or move its mirror_archive.json elsewhere and specify that file';
      throw new OpmateError('INVALID', problem, { hint });
    }
  }
  return baseOfArchive(index);
}

/** Returns the path itself where nothing is there yet. */
function resolveLinks(place: string): Promise<string> {
  return realpath(place).catch(() => place);
}
