import { LimitError, OpmateError, throwFileError } from '../../core/errors.js';
import { compareBytes } from '../../core/order.js';
import { decodeFile, openJsonFile } from '../../document/document.js';
import type { Field } from '../../document/field.js';
import { setJsonKey } from '../../document/json.js';
import { readRegularFile } from '../../files/read-file.js';
import { type Verdict, verificationStatuses } from '../../oci/signatures/verify-image.js';
import {
  type ImageSetLock,
  type LockedCatalog,
  type LockedChart,
  type LockedImage,
  type LockedPackage,
  type LockedTemplate,
  compareLocked,
  getLockedName,
  lockFormatVersion,
  lockLimits,
  lockName,
} from './lock.js';
import { ContentTables } from './locked-contents.js';
import { createUnique, listOf, objectOf, optional, read } from './locked-fields.js';
import { readReleases } from './locked-releases.js';

const maxOptions = 100;
const maxCatalogs = 1000;
const maxNames = 100_000;
const maxImages = 100_000;
const maxTemplateLength = 1024 * 1024;

const kinds = [
  ...(['additional', 'bundle', 'catalog', 'chart', 'component', 'graph', 'helm', 'related'] as const),
  ...(['release', 'signature'] as const),
] as const;

/**
 * Reads a lock file, at most 256 MiB; `file` names it in messages. Throws OpmateError: what `parseLock` throws, NOT_FOUND
 * and IO.
 */
export async function readLock(place: string, file = place): Promise<ImageSetLock> {
  const bytes = await readRegularFile(place, lockLimits.bytes, { name: file }).catch(
    throwFileError(file, { file }),
  );
  return parseLock(decodeFile(bytes, file), file);
}

/** Parses a lock and checks all of it; `kind` is that of `file`, its name in messages. Throws OpmateError SYNTAX, INVALID, LIMIT or UNSUPPORTED (newer version). */
export function parseLock(text: string, file: string, kind: 'file' | 'reference' = 'file'): ImageSetLock {
  if (text.length > lockLimits.bytes)
    throw new LimitError(`more than ${lockLimits.bytes} bytes`, { about: file });
  // Truncated JSON is a damaged lock, other text another kind of file.
  if (/^\s*[^\s{[]/.test(text)) throw notLock(file);
  const top = openJsonFile(text, file, kind);
  if (!top.field('version').isPresent) throw notLock(file);
  top.field('version').formatVersion(lockFormatVersion);
  const fields = top.object([
    ...(['version', 'plan', 'configuration', 'options', 'catalogs', 'charts', 'releases'] as const),
    ...(['images', 'manifests', 'blobs'] as const),
  ]);
  // Informational: whoever compares plans computes the digest.
  if (fields.plan.isPresent) fields.plan.digest();
  const options: Record<string, string> = {};
  for (const [key, option] of fields.options.entries(maxOptions)) setJsonKey(options, key, option.text());
  const tables = new ContentTables(fields.blobs, fields.manifests);
  return {
    configuration: fields.configuration.digest(),
    options,
    catalogs: readCatalogs(fields.catalogs),
    ...(fields.charts.isPresent && { charts: fields.charts.list(maxImages).map(readChart) }),
    ...(fields.releases.isPresent && { releases: readReleases(fields.releases) }),
    images: readImages(fields.images, tables),
  };
}

function notLock(file: string): OpmateError {
  return new OpmateError('INVALID', 'expected a lock or an archive', {
    about: file,
    hint: `specify the ${lockName} that api.mirrorImageSet writes, or the directory of an archive`,
  });
}

const readTemplate = (field: Field<never>): LockedTemplate =>
  typeof field.value === 'string' ? { file: field.text(), text: undefined } : readWholeTemplate(field);
const readWholeTemplate = objectOf<LockedTemplate>({
  file: read.text,
  text: (field) => field.anyText(maxTemplateLength),
});

const readCatalog = objectOf<LockedCatalog>({
  catalog: read.text,
  sourceDigest: read.digest,
  repository: read.repository,
  tag: read.tag,
  isWhole: read.boolean,
  isDatabase: optional(read.boolean),
  isHeld: optional(read.boolean),
  targetCatalogSourceTemplate: optional(readTemplate),
  withoutImages: optional(listOf(read.anyText, maxNames)),
  packages: readPackages,
});

function readCatalogs(field: Field<never>): LockedCatalog[] {
  const requireUnique = createUnique();
  return field.list(maxCatalogs).map((item) => {
    const catalog = readCatalog(item);
    requireUnique(`${catalog.repository}:${catalog.tag}`, item);
    return catalog;
  });
}

function readPackages(field: Field<never>): LockedPackage[] {
  const requireUnique = createUnique();
  const readPackage = objectOf<LockedPackage>({
    name: (name) => requireUnique(name.anyText(), name),
    defaultChannel: read.anyText,
    channels: readChannels,
    // A catalog that is mirrored unchanged may contain a bundle twice.
    bundles: listOf(objectOf({ name: read.anyText, version: read.anyText }), maxNames),
  });
  return field
    .list(maxNames)
    .map(readPackage)
    .sort((a, b) => compareBytes(a.name, b.name));
}

function readChannels(field: Field<never>): LockedPackage['channels'] {
  const requireUnique = createUnique();
  const readName = (name: Field<never>): string => requireUnique(name.anyText(), name);
  return field.list(maxNames).map(objectOf({ name: readName, head: read.anyText }));
}

const readChart = objectOf<LockedChart>({
  source: read.text,
  name: read.text,
  version: read.text,
  repository: read.repository,
  tag: read.tag,
});

function readImages(field: Field<never>, tables: ContentTables): LockedImage[] {
  const requireUnique = createUnique();
  const images = field.list(maxImages).map((item) => {
    const { digest, manifests, ...image } = readImageFields(item);
    const locked = { ...image, contents: tables.readImage(item, digest, manifests) };
    requireUnique(getLockedName(locked), item);
    return locked;
  });
  return images.sort(compareLocked);
}

const readImageFields = objectOf<
  Omit<LockedImage, 'contents'> & Record<'digest' | 'manifests', Field<never>>
>({
  kind: (field) => field.choice(kinds),
  reference: read.reference,
  source: read.reference,
  aliases: optional(listOf(read.reference, maxNames)),
  repository: read.repository,
  tag: optional(read.tag),
  digest: (field) => field,
  manifests: (field) => field,
  isHeld: optional(read.boolean),
  bundles: listOf(objectOf({ package: read.anyText, bundle: read.anyText }), maxNames),
  verification: optional(
    objectOf<Verdict>({
      status: (field) => field.choice(verificationStatuses),
      reason: (field) => field.anyText(lockLimits.reasonLength),
    }),
  ),
});
