import { stat } from 'node:fs/promises';
import path from 'node:path';
import { DirectoryCatalog } from '../../catalog/catalog.js';
import { OpmateError } from '../../core/errors.js';

/** A directory below an unpacked one. `what` it is of is for the hint. Throws OpmateError where there is none. */
export async function directoryBelow(
  root: string,
  directory: string | undefined,
  name: string,
  what: string,
): Promise<string> {
  const target = path.join(root, directory ?? '.');
  const found = await stat(target).catch(() => undefined);
  if (found?.isDirectory()) return target;
  throw new OpmateError('NOT_FOUND', `${name}: there is no directory ${directory ?? '.'} in it`, {
    hint: `directory must name the directory of the ${what}`,
  });
}

/** A catalog directory below an unpacked one. Throws OpmateError where there is none. */
export async function catalogWithin(
  root: string,
  directory: string | undefined,
  name: string,
): Promise<DirectoryCatalog> {
  const target = await directoryBelow(root, directory, name, 'catalog');
  return new DirectoryCatalog(target, directory === undefined ? name : `${name}/${directory}`);
}
