import path from 'node:path';
import type { CancelOptions } from '../../core/concurrency.js';
import { throwIfCancelled } from '../../core/errors.js';
import { encodeGoJson, sortKeysDeep } from '../../document/go-json.js';
import { encodeYaml } from '../../document/yaml.js';
import { fillDirectory } from '../../files/fill-directory.js';
import { writeNewFile } from '../../files/write-new-file.js';
import type { PlainObject } from '../../kube/object.js';

/** Writes objects piece by piece: as YAML documents that start with `---`, or as one JSON `List`. */
export async function* writeObjects(
  objects: readonly PlainObject[],
  format: 'yaml' | 'json',
  options: CancelOptions = {},
): AsyncGenerator<string> {
  if (format === 'json') yield '{\n    "apiVersion": "v1",\n    "kind": "List",\n    "items": [';
  for (const [index, object] of objects.entries()) {
    throwIfCancelled(options.signal);
    // Other tasks of the process run between two objects.
    await Promise.resolve();
    if (format === 'yaml') yield `---\n${encodeYaml(object.load())}`;
    else {
      const text = encodeGoJson(sortKeysDeep(object.load()), { indent: 4 }).replaceAll('\n', '\n        ');
      yield `${index === 0 ? '' : ','}\n        ${text}`;
    }
  }
  if (format === 'json') yield objects.length === 0 ? ']\n}\n' : '\n    ]\n}\n';
}

/** Maximum length of the part of a file name that comes from the object. */
const maxNameLength = 150;

/**
 * Writes one file per object, `NN_kind_name.yaml`, to a directory that is absent or empty; Secrets for the user only. The directory appears
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
      const mode = object.kind === 'Secret' ? 0o600 : undefined;
      await writeNewFile(file, encodeYaml(object.load()), { mode });
    }
  });
}

function getFileName({ kind, name }: PlainObject, index: number, total: number): string {
  const number = String(index).padStart(Math.max(2, String(total - 1).length), '0');
  const safe = `${kind.toLowerCase()}_${name}`.replace(/[^A-Za-z0-9._-]/g, '_').slice(0, maxNameLength);
  return `${number}_${safe}.yaml`;
}
