import { computeDigest, parseDigest } from '../../core/digest.js';
import { getMessage } from '../../core/errors.js';
import { compareBytes } from '../../core/order.js';
import { type Descriptor, manifestMediaTypes, maxManifestBytes, mediaTypes } from '../../oci/image/types.js';
import { getReferrer } from '../../oci/layout/layout-content.js';
import {
  type ManifestFacts,
  isManifestType,
  isNonDistributable,
  readManifestFacts,
} from '../../oci/image/manifest.js';
import { readBody } from '../server/request-body.js';
import { type Call, RegistryRefusal, allow, requireDigest, requireTag, send } from './call.js';

/** Maximum tags per push. */
const maxTagsPerPush = 100;

/** Handles a request for a manifest by tag or digest. */
export async function handleManifest(call: Call, name: string, reference: string): Promise<void> {
  allow(call, 'GET', 'HEAD', 'PUT', 'DELETE');
  const byDigest = reference.includes(':');
  if (byDigest) requireDigest(reference);
  if (call.method === 'PUT') return await putManifest(call, name, reference);
  if (call.method === 'DELETE') {
    const done = byDigest
      ? await call.repositories.deleteManifest(name, reference)
      : await call.repositories.deleteTag(name, reference);
    if (!done) throw await unknownManifest(call, name, reference);
    return send(call, 202);
  }
  const contents = await call.repositories.find(name);
  const digest = byDigest ? reference : contents?.tags.get(reference);
  const stored = digest === undefined ? undefined : contents?.manifests.get(digest);
  const bytes = stored && (await call.repositories.readManifest(stored.descriptor.digest));
  if (stored === undefined || bytes === undefined) throw await unknownManifest(call, name, reference);
  // An index may declare any type; none that a browser displays is sent.
  const { mediaType } = isManifestType(stored.descriptor) ? stored.descriptor : stored.facts;
  const type = manifestMediaTypes.includes(mediaType) ? mediaType : 'application/octet-stream';
  send(call, 200, { 'Content-Type': type, 'Docker-Content-Digest': stored.descriptor.digest }, bytes);
}

async function unknownManifest(
  { repositories }: Call,
  name: string,
  reference: string,
): Promise<RegistryRefusal> {
  const known = (await repositories.find(name)) !== undefined;
  return known
    ? new RegistryRefusal(404, 'MANIFEST_UNKNOWN', `${name}: ${reference}: manifest unknown`)
    : new RegistryRefusal(404, 'NAME_UNKNOWN', `${name}: repository unknown`);
}

async function putManifest(call: Call, name: string, reference: string): Promise<void> {
  const bytes = await readBody(call.request, maxManifestBytes, tooLarge);
  const byDigest = reference.includes(':');
  const expected = byDigest ? reference : call.query.get('digest');
  if (expected !== null) requireDigest(expected);
  const digest = computeDigest(bytes, expected === null ? 'sha256' : parseDigest(expected).algorithm);
  if (expected !== null && digest !== expected) {
    throw new RegistryRefusal(400, 'DIGEST_INVALID', `${name}: expected digest ${expected}, got ${digest}`);
  }
  if (!byDigest) requireTag(reference);
  const extraTags = call.query.getAll('tag');
  if (extraTags.length > maxTagsPerPush) throw new RegistryRefusal(414, 'MANIFEST_INVALID', 'too many tags');
  extraTags.forEach(requireTag);
  const subject = `${name}: ${reference}`;
  const facts = readFacts(bytes, subject);
  const mediaType = readMediaType(call, facts, subject);
  await requireReferences(call, subject, facts);
  const settle = await call.limit?.reserve(bytes.length);
  const tags = [...new Set([...(byDigest ? [] : [reference]), ...extraTags])];
  const descriptor = { mediaType, digest, size: bytes.length };
  await call.repositories.putManifest(name, tags, descriptor, bytes, facts).finally(settle);
  send(call, 201, {
    Location: `/v2/${name}/manifests/${digest}`,
    'Docker-Content-Digest': digest,
    ...(facts.subject !== undefined && { 'OCI-Subject': facts.subject }),
    ...(extraTags.length > 0 && { 'OCI-Tag': extraTags.join(', ') }),
  });
}

/**
 * Requires the blobs of a manifest in any repository, with its sizes. Images of an index may be missing, which distribution-spec,
 * "Pushing Manifests", permits: a mirror of some platforms keeps the index, whose digest is pinned and signed.
 */
async function requireReferences(
  { repositories }: Call,
  subject: string,
  facts: ManifestFacts,
): Promise<void> {
  for (const { digest, size } of facts.blobs.filter((blob) => !isNonDistributable(blob))) {
    const stored = await repositories.store.content.claimBlob(digest);
    if (stored === undefined)
      throw new RegistryRefusal(400, 'MANIFEST_BLOB_UNKNOWN', `${subject}: blob ${digest} not found`);
    // Clients refuse to pull a blob of another size.
    if (stored !== size)
      throw invalid(`${subject}: blob ${digest}: size is ${stored} bytes, but the manifest has ${size}`);
  }
}

/** Lists the manifests of a repository that refer to a digest. */
export async function listReferrers(call: Call, name: string, digest: string): Promise<void> {
  allow(call, 'GET', 'HEAD');
  const contents = await call.repositories.find(name);
  const artifactType = call.query.get('artifactType');
  const matches: Descriptor[] = [];
  for (const { descriptor, facts } of contents?.manifests.values() ?? []) {
    if (facts.subject !== digest) continue;
    if (artifactType && facts.artifactType !== artifactType) continue;
    matches.push(getReferrer(descriptor, facts));
  }
  matches.sort((a, b) => compareBytes(a.digest, b.digest));
  const index = { schemaVersion: 2, mediaType: mediaTypes.ociIndex, manifests: matches };
  const headers: Record<string, string> = { 'Content-Type': mediaTypes.ociIndex };
  if (artifactType) headers['OCI-Filters-Applied'] = 'artifactType';
  send(call, 200, headers, Buffer.from(JSON.stringify(index)));
}

function invalid(message: string): RegistryRefusal {
  return new RegistryRefusal(400, 'MANIFEST_INVALID', message);
}

function tooLarge(): RegistryRefusal {
  return new RegistryRefusal(413, 'MANIFEST_INVALID', `manifest exceeds ${maxManifestBytes} bytes`);
}

function readFacts(bytes: Buffer, subject: string): ManifestFacts {
  try {
    return readManifestFacts(bytes, subject);
  } catch (error) {
    throw invalid(getMessage(error));
  }
}

/** Returns the media type of a pushed manifest: its Content-Type, which must be the one that it declares. */
function readMediaType(call: Call, facts: ManifestFacts, subject: string): string {
  const header = call.request.headers['content-type']?.split(';')[0]?.trim().toLowerCase();
  const mediaType = header || facts.mediaType;
  const declared = facts.declaredMediaType;
  if (declared !== undefined && declared.toLowerCase() !== mediaType.toLowerCase()) {
    throw invalid(`${subject}: mediaType ${declared} conflicts with Content-Type ${mediaType}`);
  }
  if (manifestMediaTypes.includes(mediaType)) return mediaType;
  const shown = JSON.stringify(mediaType.slice(0, 200));
  throw invalid(`${subject}: unsupported media type ${shown}, expected ${manifestMediaTypes.join(', ')}`);
}
