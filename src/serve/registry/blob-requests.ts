import { createReadStream } from 'node:fs';
import { pipeline } from 'node:stream/promises';
import { parseByteRange } from '../server/byte-range.js';
import { type Call, RegistryRefusal, allow, send } from './call.js';
import { readPiece } from './store.js';

/** Maximum size of blobs that are read completely instead of streamed. */
const smallBlobBytes = 64 * 1024;

/** Handles a request for a blob. */
export async function handleBlob(call: Call, name: string, digest: string): Promise<void> {
  const { repositories } = call;
  allow(call, 'GET', 'HEAD', 'DELETE');
  const unknown = () => new RegistryRefusal(404, 'BLOB_UNKNOWN', `${name}: ${digest}: blob unknown`);
  if (call.method === 'DELETE') {
    if (!(await repositories.deleteBlob(name, digest))) throw unknown();
    return send(call, 202);
  }
  // A client that checks for a blob is about to push a manifest that refers to it.
  const size =
    call.method === 'HEAD'
      ? await repositories.claimBlob(name, digest)
      : await repositories.getBlobSize(name, digest);
  if (size === undefined) throw unknown();
  const headers: Record<string, string> = {
    'Content-Type': 'application/octet-stream',
    'Docker-Content-Digest': digest,
    'Accept-Ranges': 'bytes',
  };
  const range = call.method === 'GET' ? parseByteRange(call.request.headers.range, size) : undefined;
  if (typeof range === 'string') {
    throw new RegistryRefusal(416, 'SIZE_INVALID', `${name}: ${digest}: range not satisfiable`, {
      'Content-Range': `bytes */${size}`,
    });
  }
  const { start, end } = range ?? { start: 0, end: size - 1 };
  if (range !== undefined) headers['Content-Range'] = `bytes ${start}-${end}/${size}`;
  const status = range === undefined ? 200 : 206;
  const length = end - start + 1;
  const { file, offset } = repositories.store.locate(digest);
  if (call.method === 'HEAD') {
    call.response.writeHead(status, { ...headers, 'Content-Length': length }).end();
  } else if (size <= smallBlobBytes) {
    const bytes = await readPiece(file, offset + start, length);
    if (bytes === undefined) throw unknown();
    send(call, status, headers, bytes);
  } else {
    call.response.writeHead(status, { ...headers, 'Content-Length': length });
    // A client may disconnect at any time.
    const place = { start: offset + start, end: offset + end };
    const content = createReadStream(file, { ...place, highWaterMark: 256 * 1024 });
    await pipeline(content, call.response).catch(() => undefined);
  }
}
