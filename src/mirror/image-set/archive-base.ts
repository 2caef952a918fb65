import { realpath } from 'node:fs/promises';
import path from 'node:path';
import { OpmateError } from '../../core/errors.js';
import { quoteGo } from '../../document/go-json.js';
import { statIfPresent } from '../../files/file-status.js';
import {
  type ArchiveBase,
  archiveIndexName,
  getArchiveBase,
  readArchiveIndex,
} from '../../oci/archive-set/archive-index.js';
import { toArchiveBase, readInventoryFile } from '../inventory/inventory.js';

/** A base archive, by its directory or index, or an inventory. */
export interface BasePlace {
  /** Absolute. */
  path: string;
  /** Path as the user wrote it. */
  text: string;
}

/**
 * Reads the base of a new archive. Throws OpmateError for a file of another kind, and for an archive that the new one
 * in `directory` would replace.
 */
export async function readArchiveBase(base: BasePlace, directory: string | undefined): Promise<ArchiveBase> {
  const isFile = (await statIfPresent(base.path))?.isFile() === true;
  const inventory = isFile ? await readInventoryFile(base.path, base.text) : undefined;
  if (inventory !== undefined) return toArchiveBase(inventory);
  const index = await readArchiveIndex(base.path);
  if (directory !== undefined) {
    const [place, target] = [await resolveLinks(base.path), await resolveLinks(directory)];
    if (place === target || place === path.join(target, archiveIndexName)) {
      throw new OpmateError('INVALID', 'the new archive would replace it, and could not be used without it', {
        subject: `options.base ${quoteGo(base.text)}`,
        hint: 'use another directory, or move its mirror_archive.json elsewhere and specify that file',
      });
    }
  }
  return getArchiveBase(index);
}

function resolveLinks(place: string): Promise<string> {
  return realpath(place).catch(() => place);
}
