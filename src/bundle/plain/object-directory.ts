import path from 'node:path';
import type { CancelOptions } from '../../core/concurrency.js';
import { throwIfCancelled } from '../../core/errors.js';
import { encodeYaml } from '../../document/yaml.js';
import { fillDirectory } from '../../files/fill-directory.js';
import { writeNewFile } from '../../files/write-new-file.js';
import type { PlainObject } from '../../kube/object.js';

/** Characters of an object's name that its file keeps. */
const maxNameLength = 150;

/**
 * Writes one file an object into a directory that is absent or empty: `NN_kind_name.yaml`, numbered in order.
 * All of them are there or none. Throws OpmateError.
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
