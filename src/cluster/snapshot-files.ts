import { createReadStream } from 'node:fs';
import { readdir } from 'node:fs/promises';
import path from 'node:path';
import { defaultArchiveLimits } from '../archive/limits.js';
import { readTar } from '../archive/tar-reader.js';
import type { CancelOptions } from '../core/concurrency.js';
import type { Diagnostic } from '../core/diagnostic.js';
import { LimitError, OpmateError, fileError, throwIfCancelled } from '../core/errors.js';
import { compareBytes } from '../core/order.js';
import { statIfPresent } from '../files/file-status.js';
import { readNamedFile, readRegularFile } from '../files/read-file.js';
import { type Manifest, readManifests } from '../kube/manifests.js';
/** Maximum bytes of a file. */
const maxFileBytes = 256 * 1024 * 1024;
const maxTotalBytes = 1024 * 1024 * 1024;
const maxFiles = 500_000;
const maxDepth = 50;
const maxArchiveBytes = 16 * 1024 * 1024 * 1024;
/** Names of files with objects. */
const objectName = /\.(?:ya?ml|json)$/i;

/** A text with its name in messages. */
export interface ClusterText {
  name: string;
  content: Buffer;
}

/** A file with objects. */
export interface ClusterFile extends ClusterText {
  /** The user named the file, not its directory, in which a file may be incomplete. */
  isNamed: boolean;
}

/**
 * Calls `add` for texts, files, and .yaml, .yml and .json files of directories that contain the name of one of the kinds,
 * such as the output of must-gather. Links in directories are not followed. Throws OpmateError for an unreadable file and
 * exceeded limits: 256 MiB per file, 1 GiB in total.
 */
export async function readClusterFiles(
  places: readonly (string | ClusterText)[],
  kinds: readonly string[],
  { workingDirectory, signal }: CancelOptions & { workingDirectory: string },
  add: (file: ClusterFile) => void,
): Promise<void> {
  let total = 0;
  const addText = (file: ClusterFile): void => {
    total += file.content.length;
    if (total > maxTotalBytes)
      throw new LimitError(`more than ${maxTotalBytes} bytes of objects`, {
        subject: file.name,
        hint: narrowHint,
      });
    add(file);
  };
  // Most files of must-gather have none of them.
  const mayContain = (content: Buffer): boolean => kinds.some((kind) => content.includes(kind));
  for (const place of places) {
    throwIfCancelled(signal);
    if (typeof place !== 'string') {
      addText({ ...place, isNamed: true });
      continue;
    }
    const file = path.resolve(workingDirectory, place);
    if ((await statIfPresent(file))?.isDirectory() !== true) {
      if (archiveName.test(place)) {
        await readArchive(file, place, signal, (inner) => {
          if (mayContain(inner.content)) addText(inner);
        });
        continue;
      }
      addText({ name: place, content: await readFile(file, place), isNamed: true });
      continue;
    }
    for (const inner of await listFiles(file, place, signal)) {
      const name = path.join(place, inner);
      const content = await readRegularFile(path.join(file, inner), maxFileBytes, { name });
      if (mayContain(content)) addText({ name, content, isNamed: false });
    }
  }
}

const narrowHint = "omit copies of ClusterServiceVersions: kubectl get … -A -l '!olm.copiedFrom' -o yaml";

const archiveName = /\.(?:tar|tar\.gz|tgz|tar\.zst)$/i;

/** Calls `add` for the .yaml, .yml and .json files of an archive, such as a packed must-gather. */
async function readArchive(
  file: string,
  shown: string,
  signal: AbortSignal | undefined,
  add: (file: ClusterFile) => void,
): Promise<void> {
  const limits = { ...defaultArchiveLimits, maxUnpackedSize: maxArchiveBytes, maxEntries: maxFiles };
  let count = 0;
  try {
    for await (const { path: name, type, size, body } of readTar(createReadStream(file), {
      label: shown,
      limits,
      signal,
    })) {
      if (type !== 'file' || !objectName.test(name)) continue;
      if (size > maxFileBytes) {
        throw new LimitError(`${name}: more than ${maxFileBytes} bytes`, { subject: shown });
      }
      count++;
      const pieces: Buffer[] = [];
      for await (const piece of body) pieces.push(piece);
      add({ name: `${shown}:${name}`, content: Buffer.concat(pieces), isNamed: false });
    }
  } catch (error) {
    throw fileError(shown, error, { file: shown });
  }
  if (count === 0) throw noObjects(shown);
}

function noObjects(subject: string): OpmateError {
  return new OpmateError('NOT_FOUND', 'no .yaml, .yml or .json file', {
    subject,
    hint: 'specify the output of oc adm must-gather',
  });
}

async function readFile(file: string, shown: string): Promise<Buffer> {
  try {
    return await readNamedFile(file, maxFileBytes);
  } catch (error) {
    if (error instanceof LimitError)
      throw new LimitError(error.problem, { subject: shown, hint: narrowHint, cause: error });
    throw fileError(shown, error, { file: shown });
  }
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
        else if (entry.isFile() && objectName.test(name)) files.push(name);
      }
      if (files.length + next.length > maxFiles)
        throw new LimitError(`more than ${maxFiles} files`, { subject: shown });
    }
    level = next;
  }
  if (files.length === 0) throw noObjects(shown);
  return files.sort(compareBytes);
}

/**
 * Reads the objects of a file. Faults of a file that the user did not name are warnings: must-gather may end before a
 * file does.
 */
export function readClusterManifests({ name, content, isNamed }: ClusterFile): {
  manifests: Manifest[];
  findings: Diagnostic[];
} {
  const { manifests, findings } = readManifests([{ name, content }], { prefix: '', isWritten: isNamed });
  return {
    manifests,
    findings: findings.map((finding) => {
      const isError = isNamed && (finding.code === 'syntax' || finding.code === 'duplicate-key');
      return isError ? finding : { ...finding, severity: 'warning' };
    }),
  };
}
