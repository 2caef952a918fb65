import { addContext } from '../core/diagnostics-error.js';
import { OpmateError } from '../core/errors.js';
import { findBase64Error } from '../core/text/base64.js';
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

/**
 * Reads the value of a field at `path` of the blob, in an object of the Go type `struct`; `before` is its value so
 * far.
 */
type Reader = (value: JsonValue, struct: string, path: string, before?: unknown) => unknown;

interface Field {
  read: Reader;
  /** Shape of its object or of the objects in its list. */
  inner?: StructShape | undefined;
}

interface NamedField extends Field {
  name: string;
}

/** An object of the format. */
export interface StructShape<T extends object = object> {
  name: string;
  /** Go type with its package. */
  type: string;
  empty: () => T;
  /** Fields by name, in output order. */
  fields: ReadonlyMap<string, Field>;
  /** Fields with their names, in byte order and by folded name. */
  sorted: readonly NamedField[];
  folded: ReadonlyMap<string, NamedField>;
}

function shape<T extends object>(
  name: string,
  empty: () => T,
  fields: Readonly<Record<string, Field>>,
): StructShape<T> {
  const type = `${name === 'Property' ? 'property' : 'declcfg'}.${name}`;
  const names = Object.keys(fields).sort(compareBytes);
  const sorted = names.map((key): NamedField => ({ name: key, ...(fields[key] as Field) }));
  const folded = new Map(sorted.map((field) => [foldFieldName(field.name), field]));
  return { name, type, empty, fields: new Map(Object.entries(fields)), sorted, folded };
}

function decodeStruct<T extends object>(
  struct: StructShape,
  target: T,
  value: JsonValue,
  path: string,
  parent = struct.name,
): T {
  if (value === null) return target;
  if (!isJsonObject(value)) throw kindFault(value, parent, path, struct.type);
  const read = (key: string, field: NamedField | undefined): void => {
    const item = value[key];
    if (item === undefined || field === undefined) return;
    const out = target as Record<string, unknown>;
    const where = path === '' ? field.name : `${path}.${field.name}`;
    out[field.name] = field.read(item, struct.name, where, out[field.name]);
  };
  const { fields, sorted, folded } = struct;
  const keys = Object.keys(value);
  // opm decodes keys in byte order: it reports the first wrong value, and of keys that differ in case the last one
  // takes precedence.
  if (keys.some((key) => !fields.has(key) && folded.has(foldFieldName(key)))) {
    for (const key of keys.sort(compareBytes)) read(key, folded.get(foldFieldName(key)));
  } else for (const field of sorted) read(field.name, field);
  return target;
}

function kindFault(value: JsonValue, struct: string, path: string, type: string): OpmateError {
  const into = path === '' ? `Go value of type ${type}` : `Go struct field ${struct}.${path} of type ${type}`;
  return new OpmateError('INVALID', `json: cannot unmarshal ${getGoKind(value)} into ${into}`);
}

const text: Field = {
  read: (value, struct, path) => {
    if (typeof value === 'string') return value;
    if (value === null) return '';
    throw kindFault(value, struct, path, 'string');
  },
};

/** Base64, encoded again, as opm does. */
const base64: Field = {
  read: (value, struct, path) => {
    if (typeof value !== 'string') throw kindFault(value, struct, path, '[]uint8');
    const fault = findBase64Error(value);
    if (fault !== undefined) throw new OpmateError('INVALID', `illegal base64 data at input byte ${fault}`);
    return Buffer.from(value, 'base64').toString('base64');
  },
};

const unread: Field = { read: (_value, _struct, _path, before) => before };

const objectOf = (inner: StructShape): Field => ({
  inner,
  read: (value, struct, path, before) =>
    decodeStruct(inner, (before ?? inner.empty()) as object, value, path, struct),
});

const listOf = ({ read, inner }: Field, type = inner?.type): Field => ({
  inner,
  read: (value, struct, path) => {
    if (value === null) return [];
    if (!Array.isArray(value)) throw kindFault(value, struct, path, `[]${type}`);
    return value.map((item) => read(item, struct, path));
  },
});

/** A field whose value `null` is read as another one. */
const withNull = ({ read, inner }: Field, ofNull: null | undefined): Field => ({
  inner,
  read: (value, struct, path) => (value === null ? ofNull : read(value, struct, path)),
});

/** Value of a property until it is read. */
const noValue: JsonObject = {};

const propertyShape = shape<Property>('Property', () => ({ type: '', value: noValue }), {
  type: text,
  value: { read: (value) => sortKeysDeep(value) },
});

const properties = listOf({
  inner: propertyShape,
  read: (value, struct, path): Property => {
    const property = decodeStruct(propertyShape, propertyShape.empty(), value, path, struct);
    return property.value === noValue ? { type: property.type, value: null, valueMissing: true } : property;
  },
});

const iconShape = shape<PackageIcon>('Icon', () => ({ base64data: null, mediatype: '' }), {
  base64data: withNull(base64, null),
  mediatype: text,
});

const entryShape = shape<ChannelEntry>(
  'ChannelEntry',
  () => ({ name: '', replaces: '', skips: [], skipRange: '' }),
  { name: text, replaces: text, skips: listOf(text, 'string'), skipRange: text },
);

const relatedImageShape = shape<RelatedImage>('RelatedImage', () => ({ name: '', image: '' }), {
  name: text,
  image: text,
});

const referenceShape = shape('PackageScopedReference', () => ({ schema: '', name: '' }), {
  schema: text,
  name: text,
});

const deprecationShape = shape<DeprecationEntry>(
  'DeprecationEntry',
  () => ({ reference: referenceShape.empty(), message: '' }),
  { reference: objectOf(referenceShape), message: text },
);

/** Shapes of blobs by kind. */
export const blobShapes = {
  package: shape<PackageBlob>(
    'Package',
    () => ({ schema: schemas.package, name: '', defaultChannel: '', description: '', properties: [] }),
    {
      schema: unread,
      name: text,
      defaultChannel: text,
      icon: withNull(objectOf(iconShape), undefined),
      description: text,
      properties: properties,
    },
  ),
  channel: shape<ChannelBlob>(
    'Channel',
    () => ({ schema: schemas.channel, name: '', package: '', entries: null, properties: [] }),
    {
      schema: unread,
      name: text,
      package: text,
      entries: withNull(listOf(objectOf(entryShape)), null),
      properties: properties,
    },
  ),
  bundle: shape<BundleBlob>(
    'Bundle',
    () => ({ schema: schemas.bundle, name: '', package: '', image: '', properties: [], relatedImages: [] }),
    {
      schema: unread,
      name: text,
      package: text,
      image: text,
      properties: properties,
      relatedImages: listOf(objectOf(relatedImageShape)),
    },
  ),
  deprecations: shape<DeprecationsBlob>(
    'Deprecation',
    () => ({ schema: schemas.deprecations, package: '', entries: null }),
    { schema: unread, package: text, entries: withNull(listOf(objectOf(deprecationShape)), null) },
  ),
};

function decoder<T extends object>(noun: string, blob: StructShape<T>): (value: JsonObject) => T {
  return (value) => {
    try {
      return decodeStruct(blob, blob.empty(), value, '');
    } catch (error) {
      if (!(error instanceof OpmateError)) throw error;
      throw addContext(error, { subject: `parse ${noun}` });
    }
  };
}

/** Decodes an `olm.package` blob. Throws OpmateError INVALID, `parse package: …`. */
export const decodePackage = decoder('package', blobShapes.package);

/** Decodes an `olm.channel` blob. Throws OpmateError INVALID, `parse channel: …`. */
export const decodeChannel = decoder('channel', blobShapes.channel);

/** Decodes an `olm.bundle` blob; its objects stay encoded. Throws OpmateError INVALID, `parse bundle: …`. */
export const decodeBundle = decoder('bundle', blobShapes.bundle);

/** Decodes an `olm.deprecations` blob. Throws OpmateError INVALID, `parse deprecation: …`. */
export const decodeDeprecations = decoder('deprecation', blobShapes.deprecations);
