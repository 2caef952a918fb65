import { createHash } from 'node:crypto';
import { type FileHandle, open, readFile, rm } from 'node:fs/promises';
import path from 'node:path';
import { isDigest } from '../core/digest.js';
import { LimitError, throwIfCancelled, writeError } from '../core/errors.js';
import { parseGoJson } from '../document/go-json.js';
import { isJsonObject } from '../document/json.js';
import { getFileIdentity } from '../files/file-status.js';
import { writeBytes } from '../files/file-region.js';
import { makeDirectory } from '../files/make-directory.js';
import { moveWhole } from '../files/move-whole.js';
import { replaceFile } from '../files/replace-file.js';
import { stagingName, sweepLeftovers } from '../files/staging.js';
import type { TransportResponse } from '../oci/transport/transport.js';
import { type Validators, formatLabel, usableValidators, getValidators } from './http-requests.js';

const formatVersion = 1;
const digestPrefix = 'sha256:';

/** Last known state of a URL, and its content. */
interface CopyRecord {
  url: string;
  /** Digest `sha256:…` of the content, in the file of that name. */
  hash: string;
  size: number;
  validators: Validators;
}

/** An open copy of the content of a URL, which the caller closes. */
interface OpenCopy {
  handle: FileHandle;
  hash: string;
  /** The content differs from the previous one in the directory. */
  changed: boolean;
}

/**
 * Copies the response of a URL to a directory: the content as `HEX.jsonl` by its SHA-256, with a record of its
 * source. Damaged content is fetched again. Several processes may share the directory; open content stays readable
 * when another process replaces it.
 */
export class ContentCopy {
  readonly #directory: string;
  readonly #url: string;
  readonly #maxBytes: number;
  readonly #recordFile: string;
  /** Identity of a file that was read completely and verified. */
  #verified = '';

  constructor(directory: string, url: string, maxBytes: number) {
    this.#directory = directory;
    this.#url = url;
    this.#maxBytes = maxBytes;
    const name = createHash('sha256').update(url).digest('hex');
    this.#recordFile = path.join(directory, `${name}.json`);
  }

  /**
   * Updates the copy with one conditional request, and opens it. Throws as `request`, OpmateError IO for a directory
   * that is not writable, LIMIT for oversized content.
   */
  async open(
    request: (validators: Validators | undefined) => Promise<TransportResponse>,
    signal: AbortSignal | undefined,
  ): Promise<OpenCopy> {
    const record = await this.#readRecord();
    const handle = record && (await this.#openVerified(record, signal));
    let response: TransportResponse;
    try {
      response = await request(handle && record?.validators);
    } catch (error) {
      await handle?.close();
      throw error;
    }
    if (handle !== undefined && record !== undefined && response.status === 304) {
      response.body.resume();
      return { handle, hash: record.hash, changed: false };
    }
    await handle?.close();
    return this.#store(response, record);
  }

  async #store(response: TransportResponse, before: CopyRecord | undefined): Promise<OpenCopy> {
    const temporary = path.join(this.#directory, stagingName());
    let handle: FileHandle | undefined;
    try {
      await makeDirectory(this.#directory);
      await sweepLeftovers(this.#directory);
      handle = await open(temporary, 'wx+', 0o644);
      const digest = createHash('sha256');
      let size = 0;
      for await (const chunk of response.body as AsyncIterable<Buffer>) {
        if (size + chunk.length > this.#maxBytes) {
          throw new LimitError(`response larger than ${this.#maxBytes} bytes`, {
            subject: formatLabel(this.#url),
            hint: 'raise maxBytes if you trust the server',
          });
        }
        digest.update(chunk);
        await writeBytes(handle, chunk, size);
        size += chunk.length;
      }
      await handle.sync();
      const hash = digestPrefix + digest.digest('hex');
      await moveWhole(temporary, this.#getFile(hash));
      await this.#writeRecord({ url: this.#url, hash, size, validators: getValidators(response) });
      const changed = before?.hash !== hash;
      if (changed && before !== undefined) await rm(this.#getFile(before.hash), { force: true });
      this.#verified = await readIdentity(handle, hash);
      return { handle, hash, changed };
    } catch (error) {
      response.body.destroy();
      await handle?.close();
      await rm(temporary, { force: true }).catch(() => undefined);
      throw writeError(this.#directory, error);
    }
  }

  /** Opens the content of a record, if it exists and is valid. */
  async #openVerified(record: CopyRecord, signal: AbortSignal | undefined): Promise<FileHandle | undefined> {
    const handle = await open(this.#getFile(record.hash), 'r').catch(() => undefined);
    if (handle === undefined) return undefined;
    try {
      const identity = await readIdentity(handle, record.hash);
      if (identity === this.#verified) return handle;
      const { size } = await handle.stat();
      if (size === record.size && (await computeHash(handle, signal)) === record.hash) {
        this.#verified = identity;
        return handle;
      }
    } catch {
      throwIfCancelled(signal);
    }
    await handle.close();
    throwIfCancelled(signal);
    return undefined;
  }

  async #readRecord(): Promise<CopyRecord | undefined> {
    try {
      const value = parseGoJson(await readFile(this.#recordFile, 'utf8'));
      if (!isJsonObject(value) || value['formatVersion'] !== formatVersion) return undefined;
      const { hash, size, etag, lastModified } = value;
      if (value['url'] !== this.#url || typeof hash !== 'string' || typeof size !== 'number')
        return undefined;
      if (!hash.startsWith(digestPrefix) || !isDigest(hash)) return undefined;
      return { url: this.#url, hash, size, validators: usableValidators(etag, lastModified) };
    } catch {
      return undefined;
    }
  }

  async #writeRecord({ validators, ...record }: CopyRecord): Promise<void> {
    const value = { formatVersion, ...record, ...validators };
    await replaceFile(this.#recordFile, `${JSON.stringify(value, null, 2)}\n`, { mode: 0o644 });
  }

  #getFile(hash: string): string {
    return path.join(this.#directory, `${hash.slice(digestPrefix.length)}.jsonl`);
  }
}

/** Returns the identity of a file, which changes when it is replaced or written. */
async function readIdentity(handle: FileHandle, hash: string): Promise<string> {
  return `${hash} ${getFileIdentity(await handle.stat({ bigint: true }))}`;
}

async function computeHash(handle: FileHandle, signal: AbortSignal | undefined): Promise<string> {
  const hash = createHash('sha256');
  const buffer = Buffer.allocUnsafe(1024 * 1024);
  for (let index = 0; ;) {
    throwIfCancelled(signal);
    const { bytesRead } = await handle.read(buffer, 0, buffer.length, index);
    if (bytesRead === 0) return digestPrefix + hash.digest('hex');
    hash.update(buffer.subarray(0, bytesRead));
    index += bytesRead;
  }
}
