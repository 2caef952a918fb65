import { isUtf8 } from 'node:buffer';
import { LimitError, OpmateError, throwFileError } from '../../core/errors.js';
import { compareBytes } from '../../core/order.js';
import { parseReference } from '../../core/reference.js';
import { openValue, parseJsonFile } from '../../document/document.js';
import { type Field, quoteShort } from '../../document/field.js';
import { type JsonValue, setJsonKey } from '../../document/json.js';
import { readRegularFile } from '../../files/read-file.js';
import { findRepeatedKey } from '../../oci/image/manifest.js';
import { isRepositoryName, isTag } from '../../oci/registry/registry-names.js';
import { verificationStatuses } from '../../oci/signatures/verify-image.js';
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
import { LockedContents, UniqueNames } from './locked-contents.js';
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
  const bytes = await readRegularFile(place, lockLimits.bytes, { name: file, label: `open ${file}` }).catch(
    throwFileError(`open ${file}`, { file }),
  );
  if (!isUtf8(bytes)) throw new OpmateError('SYNTAX', 'not UTF-8', { subject: file, file });
  return parseLock(bytes.toString(), file);
}

/** Parses a lock and checks all of it. Throws OpmateError SYNTAX, INVALID, LIMIT or UNSUPPORTED (newer version). */
export function parseLock(text: string, file: string): ImageSetLock {
  if (text.length > lockLimits.bytes)
    throw new LimitError(`more than ${lockLimits.bytes} bytes`, { subject: file, file });
  // Truncated JSON is a damaged lock, other text another kind of file.
  if (/^\s*[^\s{[]/.test(text)) throw notLock(file);
  const value = parseJsonFile(text, file);
  const top = openValue(value, { name: file });
  requireVersion(value, top, file);
  const repeated = findRepeatedKey(text);
  if (repeated !== undefined) {
    return top.fail(`duplicate key ${quoteShort(repeated)}`, { code: 'duplicate-key' });
  }
  const fields = top.object([
    ...(['version', 'plan', 'configuration', 'options', 'catalogs', 'charts', 'releases'] as const),
    ...(['images', 'manifests', 'blobs'] as const),
  ]);
  // Informational: whoever compares plans computes the digest.
  if (fields.plan.isPresent) fields.plan.digest();
  const options: Record<string, string> = {};
  for (const [key, option] of fields.options.entries(maxOptions)) setJsonKey(options, key, option.text());
  const contents = new LockedContents(fields.blobs, fields.manifests);
  return {
    configuration: fields.configuration.digest(),
    options,
    catalogs: readCatalogs(fields.catalogs),
    ...(fields.charts.isPresent && { charts: fields.charts.list(maxImages).map(readChart) }),
    ...(fields.releases.isPresent && { releases: readReleases(fields.releases) }),
    images: readImages(fields.images, contents),
  };
}

function notLock(file: string): OpmateError {
  return new OpmateError('INVALID', 'expected a lock or an archive', {
    subject: file,
    file,
    hint: `specify the ${lockName} that opmate mirror writes, or the directory of an archive`,
  });
}

function requireVersion(value: JsonValue, top: Field<never>, file: string): void {
  const version: unknown = typeof value === 'object' && value !== null && Reflect.get(value, 'version');
  if (version === lockFormatVersion) return;
  if (typeof version === 'number' && Number.isSafeInteger(version) && version > lockFormatVersion) {
    const hint = `use the version of opmate that wrote it, or a newer one: this one reads version ${lockFormatVersion}`;
    return top.fail(`version ${version} of the lock format is not supported`, { code: 'unsupported', hint });
  }
  throw notLock(file);
}

function readCatalogs(field: Field<never>): LockedCatalog[] {
  const names = new UniqueNames();
  return field.list(maxCatalogs).map((item) => {
    const fields = item.object([
      ...(['catalog', 'sourceDigest', 'repository', 'tag', 'isWhole', 'isDatabase'] as const),
      ...(['targetCatalogSourceTemplate', 'packages'] as const),
    ]);
    const template = fields.targetCatalogSourceTemplate;
    const catalog: LockedCatalog = {
      catalog: fields.catalog.text(),
      sourceDigest: fields.sourceDigest.digest(),
      repository: fields.repository.matching(isRepositoryName, 'a repository'),
      tag: fields.tag.matching(isTag, 'a tag'),
      isWhole: fields.isWhole.boolean(),
      ...(fields.isDatabase.isPresent && { isDatabase: fields.isDatabase.boolean() }),
      ...(template.isPresent && { targetCatalogSourceTemplate: readTemplate(template) }),
      packages: readPackages(fields.packages),
    };
    names.add(`${catalog.repository}:${catalog.tag}`, item);
    return catalog;
  });
}

function readTemplate(field: Field<never>): LockedTemplate {
  if (typeof field.value === 'string') return { file: field.text(), text: undefined };
  const { file, text } = field.object(['file', 'text']);
  return { file: file.text(), text: text.anyText(maxTemplateLength) };
}

function readPackages(field: Field<never>): LockedPackage[] {
  const names = new UniqueNames();
  const packages = field.list(maxNames).map((item) => {
    const fields = item.object(['name', 'defaultChannel', 'channels', 'bundles']);
    const name = names.add(fields.name.anyText(), fields.name);
    const channelNames = new UniqueNames();
    const channels = fields.channels.list(maxNames).map((entry) => {
      const channel = entry.object(['name', 'head']);
      return { name: channelNames.add(channel.name.anyText(), channel.name), head: channel.head.anyText() };
    });
    // A catalog that is mirrored unchanged may contain a bundle twice.
    const bundles = fields.bundles.list(maxNames).map((entry) => {
      const bundle = entry.object(['name', 'version']);
      return { name: bundle.name.anyText(), version: bundle.version.anyText() };
    });
    return { name, defaultChannel: fields.defaultChannel.anyText(), channels, bundles };
  });
  return packages.sort((a, b) => compareBytes(a.name, b.name));
}

function readChart(item: Field<never>): LockedChart {
  const fields = item.object(['source', 'name', 'version', 'repository', 'tag']);
  return {
    source: fields.source.text(),
    name: fields.name.text(),
    version: fields.version.text(),
    repository: fields.repository.matching(isRepositoryName, 'a repository'),
    tag: fields.tag.matching(isTag, 'a tag'),
  };
}

function readImages(field: Field<never>, contents: LockedContents): LockedImage[] {
  const names = new UniqueNames();
  const images = field.list(maxImages).map((item) => {
    const image = readImage(item, contents);
    names.add(getLockedName(image), item);
    return image;
  });
  return images.sort(compareLocked);
}

function readImage(item: Field<never>, contents: LockedContents): LockedImage {
  const fields = item.object([
    ...(['kind', 'reference', 'source', 'aliases', 'repository', 'tag', 'digest'] as const),
    ...(['manifests', 'bundles', 'verification'] as const),
  ]);
  const image: LockedImage = {
    contents: contents.readImage(item, fields),
    kind: fields.kind.choice(kinds),
    reference: readReference(fields.reference),
    source: readReference(fields.source),
    ...(fields.aliases.isPresent && { aliases: fields.aliases.list(maxNames).map(readReference) }),
    repository: fields.repository.matching(isRepositoryName, 'a repository'),
    tag: fields.tag.isPresent ? fields.tag.matching(isTag, 'a tag') : undefined,
    bundles: fields.bundles.list(maxNames).map((entry) => {
      const bundle = entry.object(['package', 'bundle']);
      return { package: bundle.package.anyText(), bundle: bundle.bundle.anyText() };
    }),
  };
  if (!fields.verification.isPresent) return image;
  const { status, reason } = fields.verification.object(['status', 'reason']);
  const verification = {
    status: status.choice(verificationStatuses),
    reason: reason.anyText(lockLimits.reasonLength),
  };
  return { ...image, verification };
}

/** Returns the text of a valid image reference. */
function readReference(field: Field<never>): string {
  return field.parsed((text) => {
    parseReference(text);
    return text;
  });
}
