import path from 'node:path';
import { readdirIfPresent, statIfPresent } from '../../files/file-status.js';
import { serverNotFound } from './catalog-statuses.js';

/** Throws OpmateError NOT_FOUND unless a storage directory of a server exists. */
export async function requireStorage(directory: string): Promise<void> {
  if ((await statIfPresent(directory)) === undefined) throw serverNotFound(directory);
}

/** Returns the storage directories of the servers that keep theirs below `root`. Throws OpmateError NOT_FOUND for none. */
export async function listStorages(root: string): Promise<[string, ...string[]]> {
  const names = await readdirIfPresent(root);
  const [first, ...others] = names.filter((name) => /^[0-9a-f]{16}$/.test(name));
  if (first === undefined) throw serverNotFound(root);
  return [path.join(root, first), ...others.map((name) => path.join(root, name))];
}
