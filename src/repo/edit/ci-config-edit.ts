import { isDeepStrictEqual } from 'node:util';
import {
  type Document,
  type ParsedNode,
  type YAMLSeq,
  YAMLMap,
  isMap,
  isScalar,
  isSeq,
  parseDocument,
} from 'yaml';
import type { CiConfig } from '../ci-config.js';

/**
 * Adds a catalog to the first mapping that names another one. Returns the new text of `ci.yaml`, of which other lines
 * are kept; undefined if no mapping names the other catalog or one names the new catalog already.
 */
export function addCatalogToMapping(config: CiConfig, source: string, target: string): string | undefined {
  const names = config.mappings.map(({ catalogNames }) => catalogNames);
  const index = names.findIndex((list) => list.includes(source));
  if (index < 0 || names.some((list) => list.includes(target))) return undefined;
  const { text } = config.document;
  const document = parseDocument(text);
  const list = document.getIn(['fbc', 'catalog_mapping', index, 'catalog_names']);
  if (!isSeq(list)) return undefined;
  const inserted = insertItem(text, list as YAMLSeq<ParsedNode>, target);
  list.add(document.createNode(target));
  const isSame = inserted !== undefined && isDeepStrictEqual(parseDocument(inserted).toJS(), document.toJS());
  return isSame ? inserted : emitConfig(document, text);
}

/** Returns a text with an item at the end of a list, in the style of the last one; undefined for unusual forms. */
function insertItem(text: string, list: YAMLSeq<ParsedNode>, value: string): string | undefined {
  const last = list.items.at(-1);
  if (!isScalar(last)) return undefined;
  const [start, end] = last.range;
  const quote = last.type === 'QUOTE_DOUBLE' ? '"' : last.type === 'QUOTE_SINGLE' ? "'" : '';
  const item = quote + value + quote;
  if (list.flow === true) return `${text.slice(0, end)}, ${item}${text.slice(end)}`;
  const lineStart = text.lastIndexOf('\n', start - 1) + 1;
  const [dash] = /^ *- +$/.exec(text.slice(lineStart, start)) ?? [];
  if (dash === undefined) return undefined;
  const newline = text.indexOf('\n', end);
  const at = newline < 0 ? text.length : newline;
  const carriage = text[at - 1] === '\r' ? '\r' : '';
  return `${text.slice(0, at)}\n${dash}${item}${carriage}${text.slice(at)}`;
}

/** Mapping of a template to one catalog. */
export interface NewMapping {
  template_name: string;
  catalog_names: string[];
  type: string;
}

/** Returns the text of `ci.yaml` with file-based catalogs enabled, and without an update graph; other keys are kept. */
export function enableCatalogs(text: string, mappings: readonly NewMapping[]): string {
  const document: Document = parseDocument(text);
  if (!isMap(document.contents)) document.contents = new YAMLMap();
  const root = document.contents;
  if (!isMap(root)) return text;
  root.delete('updateGraph');
  root.delete('fbc');
  const fbc = { enabled: true, catalog_mapping: mappings };
  root.add(document.createPair('fbc', fbc, { aliasDuplicateObjects: false }));
  return emitConfig(document, text);
}

/** A list at the column of its key. */
const plainList = /^( *)[^\s#-][^\n]*:[ \t]*(?:#[^\n]*)?\r?\n\1- /m;
/** A list below the column of its key. */
const indentedList = /^( *)[^\s#-][^\n]*:[ \t]*(?:#[^\n]*)?\r?\n\1 +- /m;

/** Writes `ci.yaml` with comments, quotes, and the indentation of its first list. */
function emitConfig(document: Document, text: string): string {
  const indentSeq = !plainList.test(text) && indentedList.test(text);
  const written = document.toString({
    lineWidth: 0,
    indentSeq,
    flowCollectionPadding: /[[{] /.test(text),
  });
  return text.includes('\r\n') ? written.replaceAll('\n', '\r\n') : written;
}
