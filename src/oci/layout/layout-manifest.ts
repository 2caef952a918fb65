import { isDigest } from '../../core/digest.js';
import { OpmateError } from '../../core/errors.js';
import { type JsonObject, isJsonObject } from '../../document/json.js';
import { parseManifestDocument } from '../image/manifest.js';
import { type Descriptor, manifestMediaTypes, mediaTypes } from '../image/types.js';

/** What storing and listing a manifest needs to know of it. */
export interface ManifestFacts {
  /** The type that the document itself names, or the one that its shape implies. */
  mediaType: string;
  /** The type that the document itself names, if it does. */
  declaredMediaType?: string;
  /** Config and layers, and what an index lists that is no manifest. */
  blobs: Descriptor[];
  /** Manifests and indexes that an index lists. */
  manifests: Descriptor[];
  /** Digest of the manifest that this one refers to. */
  subject?: string;
  /** As the referrers API shows it: an image manifest's falls back to its config's media type. */
  artifactType?: string;
  annotations?: Record<string, string>;
}

/** Whether a descriptor is of one of the four types of manifest and index. */
export function isManifestType(descriptor: Descriptor): boolean {
  return manifestMediaTypes.includes(descriptor.mediaType);
}

/** Whether content may lawfully be absent where its descriptor is: layers that must not be redistributed. */
export function isNonDistributable(descriptor: Descriptor): boolean {
  return /nondistributable|\.foreign\./.test(descriptor.mediaType);
}

/**
 * Reads what a manifest or index refers to. Fields that it does not know are ignored.
 * Throws what `parseManifestDocument` throws, and OpmateError INVALID for a document that could be
 * taken for two kinds at once (CVE-2021-41190), for a schema version other than 2, and for a descriptor
 * that is none.
 */
export function readManifestFacts(bytes: Uint8Array, subjectOfMessages = 'manifest'): ManifestFacts {
  const invalid = (problem: string) => new OpmateError('INVALID', problem, { subject: subjectOfMessages });
  const document = parseManifestDocument(bytes, subjectOfMessages);
  const { mediaType, config, layers, manifests, subject, annotations, artifactType, schemaVersion } =
    document;
  if (schemaVersion !== undefined && schemaVersion !== 2) {
    throw invalid(`schema version ${JSON.stringify(schemaVersion)} is not supported`);
  }
  if ('fsLayers' in document || (manifests !== undefined && (layers !== undefined || config !== undefined))) {
    throw invalid('has the fields of more than one kind of manifest');
  }
  if (mediaType !== undefined && typeof mediaType !== 'string') throw invalid('mediaType is not a string');
  if (artifactType !== undefined && typeof artifactType !== 'string')
    throw invalid('artifactType is not a string');

  const entry = (value: unknown, field: string): Descriptor => {
    const problem = findDescriptorProblem(value);
    if (problem !== undefined) throw invalid(`${field}: ${problem}`);
    return value as Descriptor;
  };
  const many = (value: unknown, field: string): Descriptor[] => {
    if (value === undefined || value === null) return [];
    if (!Array.isArray(value)) throw invalid(`${field} is not a list`);
    return value.map((item, i) => entry(item, `${field}[${i}]`));
  };
  const listed = many(manifests, 'manifests');
  const configDescriptor = config === undefined || config === null ? undefined : entry(config, 'config');
  const blobs = [...(configDescriptor ? [configDescriptor] : []), ...many(layers, 'layers')];
  const facts: ManifestFacts = {
    mediaType: mediaType ?? (manifests !== undefined ? mediaTypes.ociIndex : mediaTypes.ociManifest),
    blobs: [...blobs, ...listed.filter((item) => !isManifestType(item))],
    manifests: listed.filter(isManifestType),
  };
  if (mediaType !== undefined) facts.declaredMediaType = mediaType;
  if (subject !== undefined && subject !== null) facts.subject = entry(subject, 'subject').digest;
  const type = artifactType || configDescriptor?.mediaType;
  if (type) facts.artifactType = type;
  if (annotations !== undefined && annotations !== null)
    facts.annotations = readAnnotations(annotations, invalid);
  return facts;
}

/** What makes a value no descriptor, or undefined when it is one. */
export function findDescriptorProblem(value: unknown): string | undefined {
  if (!isJsonObject(value)) return 'not a descriptor';
  if (typeof value.mediaType !== 'string') return 'mediaType is not a string';
  if (typeof value.digest !== 'string' || !isDigest(value.digest))
    return 'digest is not one that is supported';
  if (typeof value.size !== 'number' || !Number.isSafeInteger(value.size) || value.size < 0) {
    return 'size is not a number of bytes';
  }
  return undefined;
}

function readAnnotations(value: unknown, invalid: (problem: string) => OpmateError): Record<string, string> {
  if (!isJsonObject(value) || Object.values(value).some((text) => typeof text !== 'string')) {
    throw invalid('annotations are not strings by name');
  }
  return value as JsonObject & Record<string, string>;
}
