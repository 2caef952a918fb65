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

/** Maximum bytes of a file. */
const maxFileBytes = 256 * 1024 * 1024;
const maxTotalBytes = 1024 * 1024 * 1024;
const maxFiles = 500_000;
const maxDepth = 50;

/** A text with its name in messages. */
export interface ClusterText {
  name: string;
  content: Buffer;
}

/**
 * Reads catalogs and installed operators from texts, files, and .yaml, .yml and .json files of directories, such as the
 * output of must-gather. Links in directories are not followed. Throws OpmateError for an unreadable file and exceeded
 * limits: 256 MiB per file, 1 GiB in total.
 */
export async function readClusterObjects(
  places: readonly (string | ClusterText)[],
  { workingDirectory, signal }: CancelOptions & { workingDirectory: string },
): Promise<ClusterObjects> {
  const objects = emptyClusterObjects();
  let total = 0;
  const add = (name: string, content: Buffer, isNamed: boolean): void => {
    total += content.length;
    if (total > maxTotalBytes)
      throw new LimitError(`more than ${maxTotalBytes} bytes of objects`, {
        subject: name,
        hint: narrowHint,
      });
    addClusterObjects(objects, { name, content, isNamed });
  };
  for (const place of places) {
    throwIfCancelled(signal);
    if (typeof place !== 'string') {
      add(place.name, place.content, true);
      continue;
    }
    const file = path.resolve(workingDirectory, place);
    if ((await statIfPresent(file))?.isDirectory() !== true) {
      add(place, await readFile(file, place), true);
      continue;
    }
    for (const inner of await listFiles(file, place, signal)) {
      const name = path.join(place, inner);
      const content = await readRegularFile(path.join(file, inner), maxFileBytes, { name });
      if (mayContainObjects(content)) add(name, content, false);
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
    throw fileError(shown, error, { file: shown });
  }
}

/** Reports whether a file contains the name of a kind: most files of must-gather do not. */
function mayContainObjects(content: Buffer): boolean {
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
