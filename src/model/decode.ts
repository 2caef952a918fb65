import { addContext } from '../core/diagnostics-error.js';
import { OpmateError } from '../core/errors.js';
import { findBase64Error } from '../core/base64.js';
import { getGoKind, sortKeysDeep } from '../document/go-json.js';
import { foldFieldName } from '../document/go-json-fold.js';
import { type JsonObject, type JsonValue, isJsonObject } from '../document/json.js';
import { compareBytes } from '../core/order.js';
import {
  type BundleBlob,
  type ChannelBlob,
  type ChannelEntry,
  type DeprecationEntry,
  type DeprecationsBlob,
  type PackageBlob,
  type PackageIcon,
  type Property,
  type RelatedImage,
  schemas,
} from './declarative-config.js';

/**
 * Decoders of the catalog format's own schemas, equal to Go's decoder in `opm`: field names match in any case, `null`
 * is the zero value, unknown fields are dropped, and errors for values of the wrong type have Go's text. (Source:
 * encoding/json; declcfg of operator-registry.)
 */

type FieldReaders<T> = Record<string, (target: T, value: JsonValue, path: string) => void>;

interface StructShape<T> {
  name: string;
  /** Go type with its package. */
  type: string;
  readers: FieldReaders<T>;
  /** Field names in byte order. */
  fields: readonly string[];
  folded: Map<string, string>;
}

function shape<T>(name: string, readers: FieldReaders<T>): StructShape<T> {
  const fields = Object.keys(readers).sort(compareBytes);
  const type = `${name === 'Property' ? 'property' : 'declcfg'}.${name}`;
  return { name, type, readers, fields, folded: new Map(fields.map((key) => [foldFieldName(key), key])) };
}

function decodeStruct<T>(
  struct: StructShape<T>,
  target: T,
  value: JsonValue,
  path: string,
  parent?: string,
): T {
  if (value === null) return target;
  if (!isJsonObject(value)) throw kindFault(value, parent ?? struct.name, path, struct.type);
  const { readers, fields, folded } = struct;
  const inexact = Object.keys(value).some(
    (key) => !Object.hasOwn(readers, key) && folded.has(foldFieldName(key)),
  );
  // opm decodes keys in byte order: it reports the first wrong value, and of keys that differ in case the last one
  // takes precedence.
  for (const key of inexact ? Object.keys(value).sort(compareBytes) : fields) {
    if (!Object.hasOwn(value, key)) continue;
    const field = Object.hasOwn(readers, key) ? key : folded.get(foldFieldName(key));
    if (field === undefined) continue;
    readers[field]?.(target, value[key] as JsonValue, path === '' ? field : `${path}.${field}`);
  }
  return target;
}

function kindFault(value: JsonValue, struct: string, path: string, type: string): OpmateError {
  const into = path === '' ? `Go value of type ${type}` : `Go struct field ${struct}.${path} of type ${type}`;
  return new OpmateError('INVALID', `json: cannot unmarshal ${getGoKind(value)} into ${into}`);
}

function text(value: JsonValue, struct: string, path: string, type = 'string'): string {
  if (typeof value === 'string') return value;
  if (value === null) return '';
  throw kindFault(value, struct, path, type);
}

function list<T>(
  value: JsonValue,
  struct: string,
  path: string,
  type: string,
  item: (value: JsonValue, path: string) => T,
): T[] {
  if (value === null) return [];
  if (!Array.isArray(value)) throw kindFault(value, struct, path, `[]${type}`);
  return value.map((element) => item(element, path));
}

const entryShape = shape<ChannelEntry>('ChannelEntry', {
  name: (entry, value, path) => (entry.name = text(value, 'ChannelEntry', path)),
  replaces: (entry, value, path) => (entry.replaces = text(value, 'ChannelEntry', path)),
  skips: (entry, value, path) =>
    (entry.skips = list(value, 'ChannelEntry', path, 'string', (item) => text(item, 'ChannelEntry', path))),
  skipRange: (entry, value, path) => (entry.skipRange = text(value, 'ChannelEntry', path)),
});

const propertyShape = shape<Property>('Property', {
  type: (property, value, path) => (property.type = text(value, 'Property', path)),
  value: (property, value) => (property.value = sortKeysDeep(value)),
});

const relatedImageShape = shape<RelatedImage>('RelatedImage', {
  name: (related, value, path) => (related.name = text(value, 'RelatedImage', path)),
  image: (related, value, path) => (related.image = text(value, 'RelatedImage', path)),
});

const iconShape = shape<PackageIcon>('Icon', {
  base64data: (icon, value, path) =>
    (icon.base64data = value === null ? null : base64(text(value, 'Icon', path, '[]uint8'))),
  mediatype: (icon, value, path) => (icon.mediatype = text(value, 'Icon', path)),
});

const referenceShape = shape<{ schema: string; name: string }>('PackageScopedReference', {
  schema: (reference, value, path) => (reference.schema = text(value, 'PackageScopedReference', path)),
  name: (reference, value, path) => (reference.name = text(value, 'PackageScopedReference', path)),
});

const deprecationShape = shape<DeprecationEntry>('DeprecationEntry', {
  reference: (entry, value, path) =>
    decodeStruct(referenceShape, entry.reference, value, path, 'DeprecationEntry'),
  message: (entry, value, path) => (entry.message = text(value, 'DeprecationEntry', path)),
});

/** Returns a reader of properties of `parent`. */
const getProperty =
  (parent: string) =>
  (value: JsonValue, path: string): Property => {
    const decoded = decodeStruct(propertyShape, { type: '', value: noValue }, value, path, parent);
    return decoded.value === noValue ? { type: decoded.type, value: null, valueMissing: true } : decoded;
  };

/** Value of a property until it is read. */
const noValue: JsonObject = {};

function base64(data: string): string {
  const fault = findBase64Error(data);
  if (fault !== undefined) throw new OpmateError('INVALID', `illegal base64 data at input byte ${fault}`);
  // Encoded again, as opm does.
  return Buffer.from(data, 'base64').toString('base64');
}

const packageShape = shape<PackageBlob>('Package', {
  name: (blob, value, path) => (blob.name = text(value, 'Package', path)),
  defaultChannel: (blob, value, path) => (blob.defaultChannel = text(value, 'Package', path)),
  icon: (blob, value, path) => {
    if (value === null) delete blob.icon;
    else blob.icon = decodeStruct(iconShape, { base64data: null, mediatype: '' }, value, path, 'Package');
  },
  description: (blob, value, path) => (blob.description = text(value, 'Package', path)),
  properties: (blob, value, path) =>
    (blob.properties = list(value, 'Package', path, 'property.Property', getProperty('Package'))),
});

const channelShape = shape<ChannelBlob>('Channel', {
  name: (blob, value, path) => (blob.name = text(value, 'Channel', path)),
  package: (blob, value, path) => (blob.package = text(value, 'Channel', path)),
  entries: (blob, value, path) => {
    blob.entries =
      value === null
        ? null
        : list(value, 'Channel', path, 'declcfg.ChannelEntry', (item, where) =>
            decodeStruct(
              entryShape,
              { name: '', replaces: '', skips: [], skipRange: '' },
              item,
              where,
              'Channel',
            ),
          );
  },
  properties: (blob, value, path) =>
    (blob.properties = list(value, 'Channel', path, 'property.Property', getProperty('Channel'))),
});

const bundleShape = shape<BundleBlob>('Bundle', {
  name: (blob, value, path) => (blob.name = text(value, 'Bundle', path)),
  package: (blob, value, path) => (blob.package = text(value, 'Bundle', path)),
  image: (blob, value, path) => (blob.image = text(value, 'Bundle', path)),
  properties: (blob, value, path) =>
    (blob.properties = list(value, 'Bundle', path, 'property.Property', getProperty('Bundle'))),
  relatedImages: (blob, value, path) =>
    (blob.relatedImages = list(value, 'Bundle', path, 'declcfg.RelatedImage', (item, where) =>
      decodeStruct(relatedImageShape, { name: '', image: '' }, item, where, 'Bundle'),
    )),
});

const deprecationsShape = shape<DeprecationsBlob>('Deprecation', {
  package: (blob, value, path) => (blob.package = text(value, 'Deprecation', path)),
  entries: (blob, value, path) => {
    blob.entries =
      value === null
        ? null
        : list(value, 'Deprecation', path, 'declcfg.DeprecationEntry', (item, where) =>
            decodeStruct(
              deprecationShape,
              { reference: { schema: '', name: '' }, message: '' },
              item,
              where,
              'Deprecation',
            ),
          );
  },
});

function withSubject<T>(noun: string, decode: () => T): T {
  try {
    return decode();
  } catch (error) {
    if (!(error instanceof OpmateError)) throw error;
    throw addContext(error, { subject: `parse ${noun}` });
  }
}

/** Decodes an `olm.package` blob. Throws OpmateError INVALID, `parse package: …`. */
export function decodePackage(value: JsonObject): PackageBlob {
  const blob: PackageBlob = {
    schema: schemas.package,
    name: '',
    defaultChannel: '',
    description: '',
    properties: [],
  };
  return withSubject('package', () => decodeStruct(packageShape, blob, value, ''));
}

/** Decodes an `olm.channel` blob. Throws OpmateError INVALID, `parse channel: …`. */
export function decodeChannel(value: JsonObject): ChannelBlob {
  const blob: ChannelBlob = { schema: schemas.channel, name: '', package: '', entries: null, properties: [] };
  return withSubject('channel', () => decodeStruct(channelShape, blob, value, ''));
}

/** Decodes an `olm.bundle` blob; its objects stay encoded. Throws OpmateError INVALID, `parse bundle: …`. */
export function decodeBundle(value: JsonObject): BundleBlob {
  const blob: BundleBlob = {
    schema: schemas.bundle,
    name: '',
    package: '',
    image: '',
    properties: [],
    relatedImages: [],
  };
  return withSubject('bundle', () => decodeStruct(bundleShape, blob, value, ''));
}

/** Decodes an `olm.deprecations` blob. Throws OpmateError INVALID, `parse deprecation: …`. */
export function decodeDeprecations(value: JsonObject): DeprecationsBlob {
  const blob: DeprecationsBlob = { schema: schemas.deprecations, package: '', entries: null };
  return withSubject('deprecation', () => decodeStruct(deprecationsShape, blob, value, ''));
}
