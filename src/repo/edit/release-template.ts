import {
  Document,
  type ParsedNode,
  type Scalar,
  type YAMLMap,
  type YAMLSeq,
  isMap,
  isSeq,
  parseDocument,
} from 'yaml';
import { OpmateError } from '../../core/errors.js';
import { encodeGoJson } from '../../document/go-json.js';
import type { JsonValue } from '../../document/json.js';
import { emitTemplate } from './template-emitter.js';

/** Place of a bundle in one template. (Source: release-config-schema.json of operator-pipelines.) */
export interface TemplateRelease {
  templateName: string;
  channels: string[];
  defaultChannel?: string | undefined;
  replaces?: string | undefined;
  skips?: string[] | undefined;
  skipRange?: string | undefined;
}

/** A bundle to add to templates. */
export interface ReleasedBundle {
  packageName: string;
  name: string;
  image: string;
}

/** Adds a bundle to a basic template, or creates one. Throws OpmateError for a template of another form. */
export function addToBasicTemplate(
  source: string | undefined,
  file: string,
  bundle: ReleasedBundle,
  release: TemplateRelease,
): string {
  const edge = {
    name: bundle.name,
    ...(release.replaces !== undefined && { replaces: release.replaces }),
    ...(release.skips !== undefined && { skips: release.skips }),
    ...(release.skipRange !== undefined && { skipRange: release.skipRange }),
  };
  const image = { schema: 'olm.bundle', image: bundle.image };
  if (source === undefined) {
    const [first = ''] = release.channels;
    const channels = release.channels.map((name) => newChannel(bundle.packageName, name, [edge]));
    const defaultChannel = release.defaultChannel ?? first;
    const head = { schema: 'olm.package', name: bundle.packageName, defaultChannel };
    return createTemplate({ schema: 'olm.template.basic', entries: [head, ...channels, image] });
  }
  const document = readTemplateDocument(source, file);
  const entries = document.get('entries');
  if (!isSeq(entries)) throw new OpmateError('INVALID', 'entries: expected a list', { about: file });
  const blobs = entries.items.filter((item): item is YAMLMap => isMap(item));
  for (const name of release.channels) {
    if (findBlob(blobs, 'olm.channel', 'name', name) !== undefined) continue;
    const channel = document.createNode(newChannel(bundle.packageName, name, [])) as YAMLMap;
    entries.add(channel);
    blobs.push(channel);
  }
  if (findBlob(blobs, 'olm.bundle', 'image', bundle.image) === undefined)
    entries.add(document.createNode(image));
  for (const name of release.channels) {
    const list = findBlob(blobs, 'olm.channel', 'name', name)?.get('entries');
    if (!isSeq(list))
      throw new OpmateError('INVALID', `channel ${name}: entries: expected a list`, { about: file });
    addUnlessEqual(document, list, edge);
  }
  return emitTemplate(document, source);
}

/** Adds a bundle to channels of a semver template, or creates one. Throws OpmateError. */
export function addToSemverTemplate(
  source: string | undefined,
  file: string,
  bundle: ReleasedBundle,
  { channels }: TemplateRelease,
): string {
  const item = { Image: bundle.image };
  if (source === undefined) {
    return createTemplate({
      Schema: 'olm.semver',
      GenerateMajorChannels: true,
      GenerateMinorChannels: true,
      ...Object.fromEntries(channels.map((name) => [name, { Bundles: [item] }])),
    });
  }
  const document = readTemplateDocument(source, file);
  const { contents } = document;
  if (!isMap(contents)) throw new OpmateError('INVALID', 'expected an object', { about: file });
  for (const name of channels) {
    const list = contents.getIn([name, 'Bundles']);
    if (isSeq(list)) addUnlessEqual(document, list, item);
    else (contents as YAMLMap).set(document.createNode(name), document.createNode({ Bundles: [item] }));
  }
  return emitTemplate(document, source);
}

function newChannel(packageName: string, name: string, entries: JsonValue[]): JsonValue {
  return { schema: 'olm.channel', name, package: packageName, entries };
}

function createTemplate(value: JsonValue): string {
  return emitTemplate(new Document(value, { aliasDuplicateObjects: false }), '');
}

/** Maximum number of aliases that a template may expand. */
const maxAliases = 1000;

function readTemplateDocument(source: string, file: string): Document<ParsedNode> {
  const document = parseDocument(source, { keepSourceTokens: false });
  const [error] = document.errors;
  if (error !== undefined) {
    const line = error.linePos?.[0].line;
    throw new OpmateError('SYNTAX', error.message.split('\n')[0] as string, { about: file, line });
  }
  document.toJS({ maxAliasCount: maxAliases });
  return document;
}

function findBlob(
  blobs: readonly YAMLMap[],
  schema: string,
  key: string,
  value: string,
): YAMLMap | undefined {
  return blobs.find((blob) => blob.get('schema') === schema && blob.get(key) === value);
}

function addUnlessEqual(document: Document<ParsedNode>, list: YAMLSeq, value: JsonValue): void {
  const text = encodeGoJson(value, { indent: 0 });
  const sorted = (item: unknown): string => JSON.stringify(sortKeys(item));
  const wanted = sorted(JSON.parse(text));
  const isThere = list.items.some((item) => sorted((item as Scalar).toJS(document)) === wanted);
  if (isThere) return;
  // A list in flow style stays one only while it is empty.
  if (list.items.length === 0) list.flow = false;
  list.add(document.createNode(value));
}

function sortKeys(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(sortKeys);
  if (typeof value !== 'object' || value === null) return value;
  return Object.fromEntries(
    Object.entries(value)
      .sort(([a], [b]) => (a < b ? -1 : 1))
      .map(([key, item]) => [key, sortKeys(item)]),
  );
}
