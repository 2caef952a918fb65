import type { CancelOptions } from '../../core/concurrency.js';
import { throwIfCancelled } from '../../core/errors.js';
import { encodeGoJson, sortKeysDeep } from '../../document/go-json.js';
import { encodeYaml } from '../../document/yaml.js';
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
