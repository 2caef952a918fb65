import { type DigestAlgorithm, parseDigest } from '../../core/digest.js';
import { type Call, RegistryRefusal, allow, requireDigest, send } from './call.js';
import type { Upload, Uploads } from './uploads.js';

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
