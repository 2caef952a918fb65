import type { VersionBounds } from '../../catalog/selection/version-bounds.js';
import { OpmateError } from '../../core/errors.js';
import { getOrAdd } from '../../core/groups.js';
import { quoteGo } from '../../document/go-json.js';
import { type Reference, parseReference } from '../../core/reference.js';
import { readDocument } from '../../document/document.js';
import type { Field } from '../../document/field.js';
import { isRepositoryName, isTag } from '../../oci/registry/registry-names.js';
import { getTargetRepository } from '../naming/mirror-target.js';
import { type HelmConfig, readHelmConfig } from '../helm/helm-config.js';
import { type ReleaseConfig, readReleaseSection } from '../release/release-config.js';
import { hasOnlyKeys, openItem, readBounds, readItems, readNamed, readPlatforms } from './config-fields.js';

/** A valid `ImageSetConfiguration` of `mirror.openshift.io/v2alpha1`. */
export interface ImageSetConfiguration {
  /** File as the user named it, for messages. */
  file: string;
  /** Maximum bytes of an archive file. */
  archiveBytes: number;
  operators: OperatorConfig[];
  additionalImages: AdditionalImageConfig[];
  helm: HelmConfig;
  releases: ReleaseConfig | undefined;
  blockedImages: BlockedImageConfig[];
  /** Messages about sections without effect. */
  warnings: string[];
}

/** A catalog and the content to select. */
export type OperatorConfig = NonNullable<ReturnType<typeof readOperator>>;
/** An image of no operator. */
export type AdditionalImageConfig = NonNullable<ReturnType<typeof readAdditionalImage>>;
/** A pattern of images to exclude. */
export type BlockedImageConfig = NonNullable<ReturnType<typeof readBlockedImage>>;

/** Maximum characters of a configuration. */
const maxConfigLength = 4 * 1024 * 1024;

const defaultArchiveGiB = 500;
const gibibyte = 1024 ** 3;

/**
 * Reads an `ImageSetConfiguration`. Throws OpmateError SYNTAX or LIMIT, or DiagnosticsError with all unknown and duplicate
 * keys, wrong types, invalid names and versions, exclusive choices, and unsupported sections. (Source: oc-mirror v2.)
 */
export function readImageSetConfiguration(text: string, file: string): ImageSetConfiguration {
  return readConfiguration(text, file, 'mirror');
}

/** Reads a `DeleteImageSetConfiguration`; throws as `readImageSetConfiguration`. (Source: oc-mirror v2.) */
export function readDeleteImageSetConfiguration(text: string, file: string): ImageSetConfiguration {
  return readConfiguration(text, file, 'delete');
}

function readConfiguration(text: string, file: string, key: keyof typeof forms): ImageSetConfiguration {
  const { root, diagnostics } = readDocument(text, file, {
    maxLength: maxConfigLength,
    noun: 'configuration',
  });
  const configuration = readRoot(root, file, key);
  diagnostics.throwIfErrors();
  return configuration as ImageSetConfiguration;
}

/** Hints for keys of older versions. */
const formerKeys: Readonly<Record<string, string>> = {
  bundles: 'select versions with minVersion and maxVersion',
  selectedBundles: 'select versions with minVersion and maxVersion',
  storageConfig: 'remove it: v2alpha1 has no storageConfig',
  targetName: 'use "targetCatalog"',
  mirror: 'write what to mirror and what to delete in two files',
  delete: 'write what to mirror and what to delete in two files',
};

const commonSections = ['platform', 'operators', 'additionalImages', 'helm', 'samples'] as const;

/** Kinds of configurations, by the key of their content. */
const forms = {
  mirror: {
    kind: 'ImageSetConfiguration',
    rootKeys: ['kind', 'apiVersion', 'mirror', 'archiveSize'],
    sections: [...commonSections, 'blockedImages'],
  },
  delete: {
    kind: 'DeleteImageSetConfiguration',
    rootKeys: ['kind', 'apiVersion', 'delete'],
    sections: commonSections,
  },
} as const;

const operatorKeys = [
  'catalog',
  'full',
  'packages',
  'targetCatalog',
  'targetTag',
  'targetCatalogSourceTemplate',
  'skipDependencies',
  'platforms',
] as const;

/** Returns undefined for a configuration without content; reports errors to the document's diagnostics. */
function readRoot(root: Field, file: string, key: keyof typeof forms): ImageSetConfiguration | undefined {
  const { kind, rootKeys, sections } = forms[key];
  if (!root.isPresent) return root.fail(`expected kind: ${kind} and ${key}:`);
  const fields = root.object(rootKeys, { hints: formerKeys });
  if (fields === undefined) return undefined;
  fields.kind.constant(kind);
  // oc-mirror accepts any version.
  fields.apiVersion.optionalText();
  const archiveBytes = readArchiveSize(root.field('archiveSize'));
  const listed = fields[key].isPresent
    ? fields[key].object(sections, { hints: formerKeys })
    : fields[key].missing(`list the catalogs below ${key}.operators`);
  if (listed === undefined) return undefined;
  const operators = readOperators(listed.operators.optionalList());
  const additionalImages = readItems(listed.additionalImages.optionalList(), readAdditionalImage);
  const helm = readHelmConfig(listed.helm);
  const releases = listed.platform.isPresent ? readReleaseSection(listed.platform) : undefined;
  const blocked = key === 'mirror' ? root.field(key).field('blockedImages').optionalList() : [];
  const hasItems = ({ value }: Field): boolean => Array.isArray(value) && value.length > 0;
  const hasImages = [listed.operators, listed.additionalImages].some(hasItems);
  if (!hasImages && hasOnlyKeys(fields[key], sections) && !isFilled(listed.helm) && releases === undefined) {
    fields[key].fail(`nothing to ${key}`, { hint: `list catalogs below ${key}.operators` });
  }
  return {
    file,
    archiveBytes,
    operators,
    additionalImages,
    helm,
    releases,
    blockedImages: readItems(blocked, readBlockedImage),
    warnings: [
      ...(isFilled(listed.samples) ? [formatNoEffect(listed.samples, file, 'as with oc-mirror')] : []),
      ...(isFilled(listed.platform) && releases === undefined
        ? [formatNoEffect(listed.platform, file, 'it has neither channels nor a release')]
        : []),
    ],
  };
}

function formatNoEffect({ place: { line, column }, path }: Field, file: string, reason: string): string {
  return `${file}:${line}:${column}: ${path.join('.')}: no effect, ${reason}`;
}

/** Reads the catalogs; reports those with one target. */
function readOperators(items: readonly Field[]): OperatorConfig[] {
  const seen = new Map<string, OperatorConfig>();
  return readItems(items, (item) => {
    const operator = readOperator(item);
    if (operator === undefined) return undefined;
    const { repository, tag = operator.reference.digest } = getCatalogTarget(operator);
    if (!isRepositoryName(repository)) {
      const problem = `${quoteGo(repository)} is not a repository path`;
      item.field('catalog').fail(problem, { hint: 'set one with targetCatalog' });
    }
    const target = `${repository}:${tag}`;
    const first = getOrAdd(seen, target, () => operator);
    if (first !== operator) {
      const problem = `same target ${target} as ${first.catalog} on line ${first.place.line}`;
      item.fail(problem, {
        code: 'conflict',
        hint: 'set another targetCatalog or targetTag for one of them',
      });
    }
    return operator;
  });
}

function readOperator(item: Field) {
  const fields = openItem(item, operatorKeys, 'catalog', formerKeys);
  if (fields === undefined) return undefined;
  const catalog = fields.catalog.text();
  const reference = catalog === undefined ? undefined : fields.catalog.parsed(parseSource);
  const full = fields.full.optionalBoolean();
  // No effect, as with oc-mirror.
  fields.skipDependencies.optionalBoolean();
  const items = fields.packages.optionalList();
  const packages = readNamed(items, 'package', (field) => readPackage(field, full));
  const operator = {
    /** Selects all bundles instead of channel heads. */
    full,
    /** Undefined for all packages. */
    packages: items.length === 0 ? undefined : packages,
    /** Path at the target; default that of the catalog. */
    targetCatalog: fields.targetCatalog.optionalMatching(isRepositoryName, 'a repository path'),
    targetTag: fields.targetTag.optionalMatching(isTag, 'a tag'),
    /** File of a CatalogSource with further fields. */
    targetCatalogSourceTemplate: fields.targetCatalogSourceTemplate.optionalText(),
    platforms: readPlatforms(fields.platforms),
    place: item.place,
  };
  return catalog === undefined || reference === undefined ? undefined : { ...operator, catalog, reference };
}

function readPackage(item: Field, full: boolean) {
  const keys = ['name', 'channels', 'defaultChannel', 'minVersion', 'maxVersion'] as const;
  const fields = openItem(item, keys, 'name', formerKeys);
  if (fields === undefined) return undefined;
  const name = fields.name.text();
  const bounds = readBounds(fields);
  const items = fields.channels.optionalList();
  const channels = readNamed(items, 'channel', readChannel);
  const hasChannelBounds = channels.some(hasBounds);
  if (hasBounds(bounds) && hasChannelBounds) {
    const hint = 'set them for the package, or for each channel';
    item.fail('versions are set for the package and for its channels', { code: 'exclusive-fields', hint });
  }
  if (full && (hasBounds(bounds) || hasChannelBounds) && name !== undefined) {
    const hint = 'remove either full or the versions';
    item.fail('versions cannot be combined with full: true', { code: 'exclusive-fields', hint });
  }
  const defaultChannel = fields.defaultChannel.optionalText();
  if (name === undefined) return undefined;
  return {
    name,
    ...bounds,
    defaultChannel,
    place: item.place,
    /** Undefined for all channels. */
    channels: items.length === 0 ? undefined : channels,
  };
}

function readChannel(item: Field) {
  const fields = openItem(item, ['name', 'minVersion', 'maxVersion'], 'name', formerKeys);
  if (fields === undefined) return undefined;
  const name = fields.name.text();
  const bounds = readBounds(fields);
  return name === undefined ? undefined : { name, ...bounds, place: item.place };
}

function readAdditionalImage(item: Field) {
  const keys = ['name', 'targetRepo', 'targetTag', 'platforms'] as const;
  const fields = openItem(item, keys, 'name', formerKeys);
  if (fields === undefined) return undefined;
  const name = fields.name.text();
  const reference = name === undefined ? undefined : fields.name.parsed(parseSource);
  const rest = {
    targetRepo: fields.targetRepo.optionalMatching(isRepositoryName, 'a repository path'),
    targetTag: fields.targetTag.optionalMatching(isTag, 'a tag'),
    platforms: readPlatforms(fields.platforms),
    place: item.place,
  };
  if (
    reference !== undefined &&
    !fields.targetRepo.isSet &&
    !isRepositoryName(getTargetRepository(reference))
  ) {
    fields.name.fail(`${quoteGo(getTargetRepository(reference))} is not a repository path`, {
      hint: 'set one with targetRepo',
    });
  }
  return name === undefined || reference === undefined ? undefined : { name, reference, ...rest };
}

/** Reports whether a section has content. */
function isFilled({ value }: Field): boolean {
  return value !== undefined && (typeof value !== 'object' || Object.keys(value as object).length > 0);
}

function readArchiveSize(field: Field): number {
  const gigabytes = field.optionalInteger(0, 2 ** 20) ?? 0;
  return (gigabytes === 0 ? defaultArchiveGiB : gigabytes) * gibibyte;
}

/** Reports whether a version range is limited. */
export function hasBounds({ minVersion, maxVersion }: VersionBounds): boolean {
  return minVersion !== undefined || maxVersion !== undefined;
}

/** Reads a pattern as written, and as an expression that matches any part of a reference. */
function readBlockedImage(item: Field) {
  return openItem(item, ['name'], 'name')?.name.parsed((name) => {
    try {
      // Go's flags come first; the syntax that image patterns need is otherwise equal.
      const [, flags = '', rest = name] = /^\(\?([ims]+)\)(.*)$/s.exec(name) ?? [];
      return { name, pattern: new RegExp(rest, flags) };
    } catch {
      throw new OpmateError('INVALID', `invalid regular expression ${quoteGo(name)}`);
    }
  });
}

/** Parses a registry reference, or `oci://DIR` of a layout. */
function parseSource(text: string): Reference {
  const reference = parseReference(text.replace(/^oci:\/\//, 'oci:'));
  if (reference.transport === 'docker' || reference.transport === 'oci') return reference;
  throw new OpmateError('UNSUPPORTED', `unsupported transport ${quoteGo(reference.transport)}`, {
    hint: 'use a registry reference or oci://DIR',
  });
}

/** Returns repository path and tag of a catalog at the target; no tag for a catalog with a digest only. */
export function getCatalogTarget(operator: OperatorConfig): { repository: string; tag: string | undefined } {
  const { reference, targetCatalog, targetTag } = operator;
  const isLayout = reference.transport !== 'docker';
  const defaultTag = isLayout || reference.digest === undefined ? 'latest' : undefined;
  return {
    repository: targetCatalog ?? getTargetRepository(reference),
    tag: targetTag ?? (isLayout ? undefined : reference.tag) ?? defaultTag,
  };
}
