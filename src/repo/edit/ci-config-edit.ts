import { type Document, YAMLMap, isMap, isSeq, parseDocument } from 'yaml';
import { emitTemplate } from './template-emitter.js';
import type { CiConfig } from '../ci-config.js';

/**
 * Adds a catalog to the first mapping that names another one. Returns the new text of `ci.yaml`; undefined if no mapping
 * names the other catalog or one names the new catalog already.
 */
export function addCatalogToMapping(config: CiConfig, source: string, target: string): string | undefined {
  const names = config.mappings.map(({ catalogNames }) => catalogNames);
  const index = names.findIndex((list) => list.includes(source));
  if (index < 0 || names.some((list) => list.includes(target))) return undefined;
  const { text } = config.document;
  const document = parseDocument(text);
  const list = document.getIn(['fbc', 'catalog_mapping', index, 'catalog_names']);
  if (!isSeq(list)) return undefined;
  list.add(document.createNode(target));
  return emitTemplate(document, text);
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
  return emitTemplate(document, text);
}
