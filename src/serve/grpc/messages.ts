import { OpmateError } from '../../core/errors.js';
import { quoteGo } from '../../document/go-json.js';
import type { JsonValue } from '../../document/json.js';
import { isJsonObject } from '../../document/json.js';
import { MessageWriter, encodeMessage, readTexts } from './protobuf.js';
import type { ApiName, ChannelEntryAnswer, PackageAnswer } from './registry-answers.js';

/** The messages of `schemas/registry.proto` but for bundles, which are encoded where they are made. */

/** Deepest nesting of a custom blob that can be sent; readers of protocol buffers give up at about this. */
const maxStructDepth = 1000;

export function encodePackageName(name: string): Buffer {
  return encodeMessage((message) => message.text(1, name));
}

export function encodePackage(answer: PackageAnswer): Buffer {
  return encodeMessage((message) => {
    message.text(1, answer.name);
    for (const channel of answer.channels) {
      message.message(2, (inner) => {
        inner.text(1, channel.name).text(2, channel.csvName);
        writeDeprecation(inner, 3, channel.deprecation);
      });
    }
    message.text(3, answer.defaultChannelName);
    writeDeprecation(message, 4, answer.deprecation);
  });
}

/** Writes an `api.Deprecation`, where there is one. */
export function writeDeprecation(
  message: MessageWriter,
  field: number,
  deprecation: { message: string } | undefined,
): void {
  if (deprecation !== undefined) message.message(field, (inner) => inner.text(1, deprecation.message));
}

export function encodeChannelEntry(entry: ChannelEntryAnswer): Buffer {
  return encodeMessage((message) =>
    message
      .text(1, entry.packageName)
      .text(2, entry.channelName)
      .text(3, entry.bundleName)
      .text(4, entry.replaces),
  );
}

/** A `google.protobuf.Struct`; its numbers are doubles. Throws OpmateError LIMIT where it is nested too deep. */
export function encodeStruct(value: Readonly<Record<string, unknown>>): Buffer {
  return encodeMessage((message) => writeStruct(message, value as Record<string, JsonValue>, 0));
}

function writeStruct(message: MessageWriter, value: Record<string, JsonValue>, depth: number): void {
  if (depth > maxStructDepth) throw new OpmateError('LIMIT', 'blob is nested too deep to be sent');
  for (const key of Object.keys(value)) {
    message.message(1, (entry) => {
      entry.text(1, key).message(2, (inner) => writeValue(inner, value[key] as JsonValue, depth + 1));
    });
  }
}

function writeValue(message: MessageWriter, value: JsonValue, depth: number): void {
  if (depth > maxStructDepth) throw new OpmateError('LIMIT', 'blob is nested too deep to be sent');
  if (value === null) message.varint(1, 0);
  else if (typeof value === 'number' || typeof value === 'bigint') message.double(2, Number(value));
  else if (typeof value === 'string') message.item(3, value);
  else if (typeof value === 'boolean') message.varint(4, value ? 1 : 0);
  else if (isJsonObject(value)) message.message(5, (inner) => writeStruct(inner, value, depth + 1));
  else {
    message.message(6, (inner) => {
      for (const item of value) inner.message(1, (one) => writeValue(one, item, depth + 1));
    });
  }
}

/** The fields of a request that are texts, in the order of their numbers; what is not there is empty. */
export function readRequest(bytes: Uint8Array, fields: number): string[] {
  const texts = readTexts(bytes);
  return Array.from({ length: fields }, (_, index) => texts.get(index + 1) ?? '');
}

/** How messages of upstream write an API. */
export function apiText({ group, version, kind }: ApiName): string {
  return `group:${quoteGo(group)} version:${quoteGo(version)} kind:${quoteGo(kind)}`;
}
