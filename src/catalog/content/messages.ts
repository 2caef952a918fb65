import { quoteGo } from '../../document/go-json.js';
import { type JsonObject, type JsonValue, isJsonObject, setJsonKey } from '../../document/json.js';
import { type Encodable, messageType } from './protobuf.js';
import type { ApiKey, ApiName } from '../../model/csv.js';

/** Messages of `schemas/registry.proto`, as sent by the server and read by the client. */

interface TypedText {
  type: string;
  /** JSON */
  value: string;
}

interface DeprecationMessage {
  message: string;
}

/** `api.Bundle` */
export interface BundleMessage {
  csvName: string;
  packageName: string;
  channelName: string;
  /** ClusterServiceVersion as JSON; empty where servers omit it for its size. */
  csvJson: string;
  /** All manifests as JSON, omitted as `csvJson` is. */
  object: string[];
  /** Reference of the bundle image. */
  bundlePath: string;
  providedApis: ApiKey[];
  requiredApis: ApiKey[];
  version: string;
  skipRange: string;
  dependencies: TypedText[];
  properties: TypedText[];
  replaces: string;
  skips: string[];
  deprecation: DeprecationMessage | undefined;
}

/** `api.Package` */
export interface PackageMessage {
  name: string;
  channels: { name: string; csvName: string; deprecation: DeprecationMessage | undefined }[];
  defaultChannelName: string;
  deprecation: DeprecationMessage | undefined;
}

/** `api.ChannelEntry` */
export interface ChannelEntryMessage {
  packageName: string;
  channelName: string;
  bundleName: string;
  replaces: string;
}

interface StructMessage {
  fields: { key: string; value: ValueMessage | undefined }[];
}

interface ValueMessage {
  nullValue: number | undefined;
  numberValue: number | undefined;
  stringValue: string | undefined;
  boolValue: boolean | undefined;
  structValue: StructMessage | undefined;
  listValue: { values: ValueMessage[] } | undefined;
}

export const packageNameType = messageType<{ name: string }>('api.PackageName');
export const packageType = messageType<PackageMessage>('api.Package');
export const bundleType = messageType<BundleMessage>('api.Bundle');
export const channelEntryType = messageType<ChannelEntryMessage>('api.ChannelEntry');
const structType = messageType<StructMessage>('google.protobuf.Struct');

/** Requests of `api.Registry` and `api.ExperimentalRegistry` by the names of their messages. */
export const requestTypes = {
  getPackage: messageType<{ name: string }>('api.GetPackageRequest'),
  getBundle: messageType<Record<'pkgName' | 'channelName' | 'csvName', string>>('api.GetBundleRequest'),
  getBundleInChannel: messageType<Record<'pkgName' | 'channelName', string>>('api.GetBundleInChannelRequest'),
  getAllReplacements: messageType<{ csvName: string }>('api.GetAllReplacementsRequest'),
  getReplacement:
    messageType<Record<'csvName' | 'pkgName' | 'channelName', string>>('api.GetReplacementRequest'),
  getAllProviders: messageType<ApiKey>('api.GetAllProvidersRequest'),
  getLatestProviders: messageType<ApiKey>('api.GetLatestProvidersRequest'),
  getDefaultProvider: messageType<ApiKey>('api.GetDefaultProviderRequest'),
  listBundles: messageType<object>('api.ListBundlesRequest'),
  listPackages: messageType<object>('api.ListPackageRequest'),
  listCustomSchemas: messageType<Record<'schema' | 'packageName', string>>(
    'api.ExperimentalListPackageCustomSchemasRequest',
  ),
} as const;

/** Encodes a blob as `google.protobuf.Struct`; its numbers become doubles. Throws OpmateError LIMIT. */
export function encodeStruct(blob: Readonly<Record<string, unknown>>): Buffer {
  return structType.encode(toStruct(blob as JsonObject));
}

/** Decodes a `google.protobuf.Struct`. Throws OpmateError SYNTAX or LIMIT. */
export function decodeStruct(bytes: Uint8Array): JsonObject {
  return toObject(structType.decode(bytes));
}

function toStruct(object: JsonObject): Encodable<StructMessage> {
  return { fields: Object.keys(object).map((key) => ({ key, value: toValue(object[key] as JsonValue) })) };
}

function toValue(value: JsonValue): Encodable<ValueMessage> {
  if (value === null) return { nullValue: 0 };
  switch (typeof value) {
    case 'number':
    case 'bigint':
      return { numberValue: Number(value) };
    case 'string':
      return { stringValue: value };
    case 'boolean':
      return { boolValue: value };
    default:
      return isJsonObject(value)
        ? { structValue: toStruct(value) }
        : { listValue: { values: value.map(toValue) } };
  }
}

function toObject({ fields }: StructMessage): JsonObject {
  const object: JsonObject = {};
  for (const { key, value } of fields) setJsonKey(object, key, value === undefined ? null : toJson(value));
  return object;
}

function toJson(value: ValueMessage): JsonValue {
  const { structValue, listValue } = value;
  if (structValue !== undefined) return toObject(structValue);
  if (listValue !== undefined) return listValue.values.map(toJson);
  return value.numberValue ?? value.stringValue ?? value.boolValue ?? null;
}

/** Formats an API as messages of upstream do. */
export function formatApi({ group, version, kind }: ApiName): string {
  return `group:${quoteGo(group)} version:${quoteGo(version)} kind:${quoteGo(kind)}`;
}
