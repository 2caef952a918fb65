import { OpmateError } from '../../core/errors.js';
import { openValue } from '../../document/document.js';
import type { Field } from '../../document/field.js';
import { parseManifestDocument } from '../image/manifest.js';
import { type Descriptor, manifestMediaTypes, mediaTypes } from '../image/types.js';

/** Properties of a manifest that storing and listing it require. */
export interface ManifestFacts {
  /** Declared media type, or the one that the fields imply. */
  mediaType: string;
  declaredMediaType: string | undefined;
  /** Config, layers, and listed content that is no manifest. */
  blobs: Descriptor[];
  /** Manifests and indexes that an index lists. */
  manifests: Descriptor[];
  /** Digest of the manifest that this one refers to. */
  subject: string | undefined;
  /** Artifact type of the referrers API; default: the media type of the config. */
  artifactType: string | undefined;
  annotations?: Record<string, string> | undefined;
}

/** Reports whether a descriptor is that of a manifest or index. */
export function isManifestType(descriptor: Descriptor): boolean {
  return manifestMediaTypes.includes(descriptor.mediaType);
}

/** Reports whether a layer must not be redistributed, and so may be missing. */
export function isNonDistributable(descriptor: Descriptor): boolean {
  return /nondistributable|\.foreign\./.test(descriptor.mediaType);
}

const factFields = [
  'schemaVersion',
  'mediaType',
  'artifactType',
  'config',
  'layers',
  'manifests',
  'subject',
  'annotations',
] as const;

/**
 * Reads the references of a manifest or index of any type. Unknown fields are ignored. Throws as
 * `parseManifestDocument`, and OpmateError INVALID for the fields of several kinds of manifest (CVE-2021-41190), for a
 * schema version other than 2, and for invalid descriptors.
 */
export function readManifestFacts(bytes: Uint8Array, subject = 'manifest'): ManifestFacts {
  const document = parseManifestDocument(bytes, subject);
  const root = openValue(document, { name: subject, kind: 'reference' });
  const fields = root.object(factFields, { unknown: 'ignore' });
  if (fields.schemaVersion.isPresent && fields.schemaVersion.value !== 2)
    fields.schemaVersion.fail('expected 2');
  const { config, layers, manifests } = document;
  if ('fsLayers' in document || (manifests !== undefined && (layers !== undefined || config !== undefined))) {
    throw new OpmateError('INVALID', 'has the fields of several kinds of manifest', { subject });
  }
  const configDescriptor = fields.config.isPresent ? checkDescriptor(fields.config) : undefined;
  const listed = fields.manifests.optionalList().map(checkDescriptor);
  const declaredMediaType = fields.mediaType.optionalText();
  return {
    mediaType: declaredMediaType ?? (manifests === undefined ? mediaTypes.ociManifest : mediaTypes.ociIndex),
    declaredMediaType,
    blobs: [
      ...(configDescriptor === undefined ? [] : [configDescriptor]),
      ...fields.layers.optionalList().map(checkDescriptor),
      ...listed.filter((item) => !isManifestType(item)),
    ],
    manifests: listed.filter(isManifestType),
    subject: fields.subject.isPresent ? checkDescriptor(fields.subject).digest : undefined,
    artifactType: fields.artifactType.optionalText() ?? configDescriptor?.mediaType,
    annotations: fields.annotations.optionalTexts(Infinity),
  };
}

/** Returns a descriptor with all of its fields, after checking its media type, digest and size. */
export function checkDescriptor(field: Field<never>): Descriptor {
  const { mediaType, digest, size } = field.object(['mediaType', 'digest', 'size'], { unknown: 'ignore' });
  mediaType.anyText();
  digest.digest();
  size.size();
  return field.value as unknown as Descriptor;
}
