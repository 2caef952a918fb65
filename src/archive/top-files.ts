import { LimitError, OpmateError } from '../core/errors.js';
import type { LayerInput, ReadLayersOptions } from './layers.js';
import { ArchiveMeter, defaultArchiveLimits, showSize } from './limits.js';
import { readTar } from './tar-reader.js';
import { opaqueMarker, toOpaqueMarker, toWhiteout, whiteoutPrefix } from './whiteout.js';

interface ReadTopFilesOptions extends Pick<ReadLayersOptions, 'limits' | 'signal'> {
  /** A directory of the root. */
  directory: string;
  names: readonly string[];
  maxFileBytes: number;
}

/**
 * Reads files of a directory from the topmost layer that has or removes them: layers below it are not opened. Links are
 * not followed. Throws OpmateError as `readLayers`, UNSUPPORTED for other entries under these names.
 */
export async function readTopFiles(
  /** Top first. */
  layers: Iterable<LayerInput>,
  options: ReadTopFilesOptions,
): Promise<Map<string, Buffer>> {
  const { directory, names, maxFileBytes, limits = defaultArchiveLimits, signal } = options;
  const meter = new ArchiveMeter(limits);
  const remaining = new Set(names);
  const files = new Map<string, Buffer>();
  const hidesAll = new Set([toWhiteout(directory), opaqueMarker, toOpaqueMarker(directory)]);
  for (const { label, open } of layers) {
    if (remaining.size === 0) break;
    const hidden = new Set<string>();
    const own = new Map<string, Buffer>();
    for await (const entry of readTar(await open(), { label, meter, signal })) {
      const { path, type, size } = entry;
      if (hidesAll.has(path)) for (const name of remaining) hidden.add(name);
      if (path === directory && type !== 'directory')
        throw new OpmateError('UNSUPPORTED', `${directory} is a ${type}`, { subject: label });
      if (!path.startsWith(`${directory}/`)) continue;
      const name = path.slice(directory.length + 1);
      if (name.startsWith(whiteoutPrefix)) hidden.add(name.slice(whiteoutPrefix.length));
      if (!remaining.has(name)) continue;
      if (type !== 'file') throw new OpmateError('UNSUPPORTED', `${path} is a ${type}`, { subject: label });
      if (size > maxFileBytes)
        throw new LimitError(`${path} is larger than ${showSize(maxFileBytes)}`, { subject: label });
      const chunks: Buffer[] = [];
      for await (const chunk of entry.body) chunks.push(chunk);
      own.set(name, Buffer.concat(chunks));
    }
    for (const [name, content] of own) files.set(name, content);
    for (const name of [...own.keys(), ...hidden]) remaining.delete(name);
  }
  return files;
}
