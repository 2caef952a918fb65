import path from 'node:path';
import type { CancelOptions } from '../../core/concurrency.js';
import { throwIfCancelled } from '../../core/errors.js';
import { encodeYaml } from '../../document/yaml.js';
import { fillDirectory } from '../../files/fill-directory.js';
import { writeNewFile } from '../../files/write-new-file.js';
import type { PlainObject } from '../../kube/object.js';

/** Maximum length of the part of a file name that comes from the object. */
const maxNameLength = 150;

/**
 * Writes one file per object, `NN_kind_name.yaml`, to a directory that is absent or empty. The directory appears
 * complete or not at all. Throws OpmateError.
 */
export async function writeObjectDirectory(
  objects: readonly PlainObject[],
  directory: string,
  options: CancelOptions = {},
): Promise<void> {
  await fillDirectory(directory, async (staging) => {
    for (const [index, object] of objects.entries()) {
      throwIfCancelled(options.signal);
      const file = path.join(staging, getFileName(object, index, objects.length));
      await writeNewFile(file, encodeYaml(object.load()));
    }
  });
}

function getFileName({ kind, name }: PlainObject, index: number, total: number): string {
  const number = String(index).padStart(Math.max(2, String(total - 1).length), '0');
  const safe = `${kind.toLowerCase()}_${name}`.replace(/[^A-Za-z0-9._-]/g, '_').slice(0, maxNameLength);
  return `${number}_${safe}.yaml`;
}
