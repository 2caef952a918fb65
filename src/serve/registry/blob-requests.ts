import { createReadStream } from 'node:fs';
import { pipeline } from 'node:stream/promises';
import { type DigestAlgorithm, parseDigest } from '../../core/digest.js';
import { parseByteRange } from '../server/byte-range.js';
import { type Call, RegistryRefusal, allow, requireDigest, send } from './call.js';
import { readPiece } from './store.js';
import type { Upload, Uploads } from './uploads.js';

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

/** Mounts a blob, stores it from one request, or starts an upload of several. */
export async function startUpload(call: Call, uploads: Uploads, name: string): Promise<void> {
  allow(call, 'POST');
  const { query } = call;
  const mount = query.get('mount');
  if (
    mount !== null &&
    (await call.repositories.mountBlob(name, requireDigest(mount), query.get('from') ?? undefined))
  ) {
    return sendCreated(call, name, mount);
  }
  const algorithm = requireAlgorithm(query.get('digest-algorithm') ?? 'sha256');
  const digest = query.get('digest');
  if (digest === null) {
    const upload = uploads.start(name, algorithm);
    if (upload === undefined)
      throw new RegistryRefusal(429, 'TOOMANYREQUESTS', 'too many concurrent uploads');
    return send(call, 202, { ...getLocation(upload), 'Docker-Upload-UUID': upload.id });
  }
  requireDigest(digest);
  await uploads.once(name, parseDigest(digest).algorithm, async (upload) => {
    await upload.append(iterateBody(call));
    await finish(call, upload, digest);
  });
  return sendCreated(call, name, digest);
}

/** Continues, ends or cancels an upload. */
export async function continueUpload(call: Call, uploads: Uploads, name: string, id: string): Promise<void> {
  allow(call, 'GET', 'PATCH', 'PUT', 'DELETE');
  await uploads.use(name, id, async (upload) => {
    if (upload === undefined)
      throw new RegistryRefusal(404, 'BLOB_UPLOAD_UNKNOWN', `${name}: ${id.slice(0, 80)}: upload unknown`);
    const digest = call.query.get('digest');
    switch (call.method) {
      case 'GET':
        return send(call, 204, getProgress(upload));
      case 'DELETE':
        await uploads.drop(id);
        return send(call, 204);
      case 'PATCH':
        await receive(call, upload);
        return send(call, 202, { ...getProgress(upload), 'Docker-Upload-UUID': id });
      default:
        if (digest === null)
          throw new RegistryRefusal(400, 'DIGEST_INVALID', `${name}: ${id}: missing digest`);
        requireDigest(digest);
        await receive(call, upload);
        try {
          await finish(call, upload, digest);
        } finally {
          await uploads.drop(id);
        }
        return sendCreated(call, name, digest);
    }
  });
}

async function finish({ repositories }: Call, upload: Upload, expected: string): Promise<void> {
  const { path, digest } = await upload.finish(parseDigest(expected).algorithm);
  if (digest !== expected) {
    const problem = `${upload.repository}: expected digest ${expected}, got ${digest}`;
    throw new RegistryRefusal(400, 'DIGEST_INVALID', problem);
  }
  await repositories.adoptBlob(upload.repository, digest, path);
}

function requireAlgorithm(text: string): DigestAlgorithm {
  if (text === 'sha256' || text === 'sha384' || text === 'sha512') return text;
  throw new RegistryRefusal(400, 'DIGEST_INVALID', `${text.slice(0, 80)}: unsupported digest algorithm`);
}

/** Appends the body to an upload after checking its range: a refused chunk changes nothing. */
async function receive(call: Call, upload: Upload): Promise<void> {
  const { 'content-range': range, 'content-length': length } = call.request.headers;
  const body = iterateBody(call);
  if (range === undefined) return await upload.append(body);
  const match = /^(\d+)-(\d+)$/.exec(range);
  const start = Number(match?.[1]);
  const expected = Number(match?.[2]) - start + 1;
  if (match === null || expected < 1) {
    const problem = `Content-Range: expected START-END, got ${range.slice(0, 80)}`;
    throw new RegistryRefusal(400, 'BLOB_UPLOAD_INVALID', problem);
  }
  if (start !== upload.offset) {
    const problem = `chunk: expected start ${upload.offset}, got ${start}`;
    throw new RegistryRefusal(416, 'BLOB_UPLOAD_INVALID', problem, getProgress(upload));
  }
  if (length !== undefined && Number(length) !== expected) {
    throw new RegistryRefusal(400, 'SIZE_INVALID', `Content-Length is ${length}, Content-Range ${range}`);
  }
  await upload.append(limitBytes(body, expected));
  if (upload.offset !== start + expected) {
    const problem = `chunk: expected ${expected} bytes, got ${upload.offset - start}`;
    throw new RegistryRefusal(400, 'SIZE_INVALID', problem);
  }
}

async function* limitBytes(body: AsyncIterable<Buffer>, length: number): AsyncGenerator<Buffer> {
  let seen = 0;
  for await (const chunk of body) {
    seen += chunk.length;
    if (seen > length)
      throw new RegistryRefusal(400, 'SIZE_INVALID', `chunk: longer than Content-Range of ${length} bytes`);
    yield chunk;
  }
}

function getLocation(upload: Upload): Record<string, string> {
  return { Location: `/v2/${upload.repository}/blobs/uploads/${upload.id}` };
}

/** Returns the received range; it includes both ends, so an empty upload has `0-0`, as in other registries. */
function getProgress(upload: Upload): Record<string, string> {
  return { ...getLocation(upload), Range: `0-${Math.max(0, upload.offset - 1)}` };
}

function sendCreated(call: Call, name: string, digest: string): void {
  send(call, 201, { Location: `/v2/${name}/blobs/${digest}`, 'Docker-Content-Digest': digest });
}

/** Iterates the body; ending early keeps the connection open for the response. */
function iterateBody(call: Call): AsyncIterable<Buffer> {
  return call.request.iterator({ destroyOnReturn: false }) as AsyncIterable<Buffer>;
}
