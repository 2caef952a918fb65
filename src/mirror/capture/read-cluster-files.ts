import { readdir } from 'node:fs/promises';
import path from 'node:path';
import type { CancelOptions } from '../../core/concurrency.js';
import { LimitError, OpmateError, fileError, throwIfCancelled } from '../../core/errors.js';
import { compareBytes } from '../../core/order.js';
import { statIfPresent } from '../../files/file-status.js';
import { readNamedFile, readRegularFile } from '../../files/read-file.js';
import {
  type ClusterObjects,
  addClusterObjects,
  clusterKinds,
  emptyClusterObjects,
} from './cluster-objects.js';

/** Bytes of one file, and of what is read of a directory. */
const maxFileBytes = 256 * 1024 * 1024;
const maxTotalBytes = 1024 * 1024 * 1024;
const maxFiles = 500_000;
const maxDepth = 50;

/** Text that is read, and the name of it in messages. */
export interface ClusterText {
  name: string;
  content: Buffer;
}

/**
 * Reads the objects of a cluster that say what is installed, from texts, files, and directories with all files below
 * that end in .yaml, .yml or .json, such as those of must-gather. Links in directories are not followed. Throws
 * OpmateError for a file that cannot be read and beyond limits: 256 MiB per file, 1 GiB in all.
 */
export async function readClusterObjects(
  places: readonly (string | ClusterText)[],
  { workingDirectory, signal }: CancelOptions & { workingDirectory: string },
): Promise<ClusterObjects> {
  const objects = emptyClusterObjects();
  let total = 0;
  const add = (name: string, content: Buffer): void => {
    total += content.length;
    if (total > maxTotalBytes)
      throw new LimitError(`more than ${maxTotalBytes} bytes of objects`, {
        subject: name,
        hint: narrowHint,
      });
    addClusterObjects(objects, name, content);
  };
  for (const place of places) {
    throwIfCancelled(signal);
    if (typeof place !== 'string') add(place.name, place.content);
    else {
      const file = path.resolve(workingDirectory, place);
      if ((await statIfPresent(file))?.isDirectory() !== true) add(place, await readFile(file, place));
      else {
        for (const name of await listFiles(file, place, signal)) {
          const content = await readRegularFile(path.join(file, name), maxFileBytes, {
            name: path.join(place, name),
          });
          if (mayHoldObjects(content)) add(path.join(place, name), content);
        }
      }
    }
  }
  return objects;
}

const narrowHint = "omit copies of ClusterServiceVersions: kubectl get … -A -l '!olm.copiedFrom' -o yaml";

async function readFile(file: string, shown: string): Promise<Buffer> {
  try {
    return await readNamedFile(file, maxFileBytes);
  } catch (error) {
    if (error instanceof LimitError)
      throw new LimitError(error.problem, { subject: shown, hint: narrowHint, cause: error });
    throw fileError(`open ${shown}`, error, { file: shown });
  }
}

/** Whether one of the kinds is named: the files of must-gather are many, and most are about others. */
function mayHoldObjects(content: Buffer): boolean {
  return clusterKinds.some((kind) => content.includes(kind));
}

async function listFiles(
  directory: string,
  shown: string,
  signal: AbortSignal | undefined,
): Promise<string[]> {
  const files: string[] = [];
  let level = [''];
  for (let depth = 1; level.length > 0; depth++) {
    if (depth > maxDepth)
      throw new LimitError(`directories nested deeper than ${maxDepth}`, { subject: shown });
    const next: string[] = [];
    for (const inner of level) {
      throwIfCancelled(signal);
      const entries = await readdir(path.join(directory, inner), { withFileTypes: true }).catch(
        (error: unknown) => {
          throw fileError(path.join(shown, inner), error);
        },
      );
      for (const entry of entries) {
        const name = path.join(inner, entry.name);
        if (entry.isDirectory()) next.push(name);
        else if (entry.isFile() && /\.(?:ya?ml|json)$/i.test(name)) files.push(name);
      }
      if (files.length + next.length > maxFiles)
        throw new LimitError(`more than ${maxFiles} files`, { subject: shown });
    }
    level = next;
  }
  if (files.length === 0) {
    throw new OpmateError('NOT_FOUND', 'no .yaml, .yml or .json file', {
      subject: shown,
      hint: 'specify the unpacked output directory of oc adm must-gather',
    });
  }
  return files.sort(compareBytes);
}
