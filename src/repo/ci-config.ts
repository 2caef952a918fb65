import type { DocumentPath, TextPosition } from '../core/diagnostic.js';
import { createFault } from '../core/diagnostic.js';
import { DiagnosticsError } from '../core/diagnostics-error.js';
import { OpmateError, UsageError } from '../core/errors.js';
import { quoteGo } from '../core/go-json-quote.js';
import { type Field, findNearest, quoteShort } from '../document/field.js';
import { getObject, getValue } from '../document/json-fields.js';
import { type OperatorRepository, pathIn } from './repository.js';
import { type RepositoryDocument, readRepositoryFile } from './repository-file.js';

/** Catalogs that one template of an operator renders to. */
export interface CatalogMapping {
  templateName: string;
  catalogNames: string[];
  /** Schema of the template, as written: `olm.template.basic` or `olm.semver`. */
  type: string;
  place: TextPosition;
}

/** The part of `ci.yaml` about file-based catalogs. (Source: ci-schema.json of operator-pipelines.) */
export interface CiConfig {
  file: string;
  document: RepositoryDocument;
  isFbcEnabled: boolean;
  /** As written; undefined means `review-needed`. */
  promotionStrategy: string | undefined;
  mappings: CatalogMapping[];
}

/** Template types by the schema that `ci.yaml` names. */
export const templateTypes = { 'olm.template.basic': 'basic', 'olm.semver': 'semver' } as const;

/** Keys below `fbc`. */
const fbcKeys = ['enabled', 'version_promotion_strategy', 'catalog_mapping'] as const;

/** Other keys at the top: those of the schema, and those that repositories use. */
const otherKeys: readonly string[] = [
  'updateGraph',
  'reviewers',
  'merge',
  'cert_project_id',
  'addReviewers',
  'packagemanifestClusterVersionLabel',
  'preflight-trigger',
  'upload-artifacts',
];

/** Maximum number of templates and of catalogs of an operator. */
const maxMappings = 1000;

/**
 * Reads the document of `ci.yaml` of an operator; undefined if it is missing. Its diagnostics have duplicate keys, further
 * documents and misspelled `fbc`. Throws OpmateError for an unreadable file.
 */
export async function readCiDocument(
  repository: OperatorRepository,
  operator: string,
): Promise<RepositoryDocument | undefined> {
  const document = await readRepositoryFile(repository, ['operators', operator, 'ci.yaml'], 'configuration');
  if (document?.root.field('fbc').isPresent === false) reportMisspelledFbc(document.root);
  return document;
}

/** Reports keys that `fbc` or its keys were meant by, in a file without `fbc`: it would have no catalogs. */
function reportMisspelledFbc(root: Field): void {
  const object = getObject(root.value);
  const isEmpty = Object.hasOwn(object, 'fbc');
  for (const [key, value] of Object.entries(object)) {
    if (key === 'fbc' || otherKeys.includes(key)) continue;
    // Other tools may have a key `enabled` of their own, but not below an empty `fbc`.
    const isMoved = (fbcKeys as readonly string[]).includes(key) && (isEmpty || key !== 'enabled');
    const isRenamed =
      findNearest(key, ['fbc']) !== undefined || getValue(value, 'catalog_mapping') !== undefined;
    if (!isMoved && !isRenamed) continue;
    const hint = isMoved ? 'move it below fbc' : `use ${quoteGo('fbc')}`;
    root.field(key).fail('unknown field', { code: 'unknown-field', hint });
  }
}

/**
 * Reads `ci.yaml` of an operator; undefined if it is missing. Unknown keys are ignored at the top and below `fbc`, where
 * those similar to known ones are errors, and so are those at the top of a file without `fbc`. Throws DiagnosticsError
 * with all problems.
 */
export async function readCiConfig(
  repository: OperatorRepository,
  operator: string,
): Promise<CiConfig | undefined> {
  const document = await readCiDocument(repository, operator);
  if (document === undefined) return undefined;
  const { root, diagnostics, name } = document;
  const fbc = root.isPresent ? root.field('fbc') : undefined;
  if (root.isPresent) root.jsonObject();
  const fields = fbc?.optionalObject(fbcKeys, { unknown: 'warn' });
  const mappings = (fields?.catalog_mapping.optionalList(maxMappings) ?? []).flatMap(
    (field) => readMapping(field) ?? [],
  );
  const config = {
    file: name,
    document,
    isFbcEnabled: fields?.enabled.optionalBoolean() ?? false,
    promotionStrategy: fields?.version_promotion_strategy.optionalText(),
    mappings,
  };
  diagnostics.throwIfErrors();
  return config;
}

/** Reads `ci.yaml` with at least one mapping. Throws DiagnosticsError, and OpmateError NOT_FOUND. */
export async function requireMappings(repository: OperatorRepository, operator: string): Promise<CiConfig> {
  const config = await readCiConfig(repository, operator);
  if (config === undefined) {
    throw new OpmateError('NOT_FOUND', 'no such file or directory', {
      about: pathIn(repository, 'operators', operator, 'ci.yaml'),
      hint: 'add ci.yaml with fbc.catalog_mapping',
    });
  }
  if (config.mappings.length > 0) return config;
  const hint = 'add a mapping with template_name, catalog_names and type';
  throw failAt(config, ['fbc', 'catalog_mapping'], 'missing', hint);
}

/** Returns an error at a place in `ci.yaml`. */
function failAt(
  { file, document }: Pick<CiConfig, 'file' | 'document'>,
  path: DocumentPath,
  problem: string,
  hint?: string,
): DiagnosticsError {
  const { line, column } = document.findPlace(path);
  const subject = path.filter((key) => typeof key === 'string').join('.');
  return new DiagnosticsError([
    createFault('invalid-value', problem, { subject, file, line, column, path, hint }),
  ]);
}

function readMapping(field: Field): CatalogMapping | undefined {
  const { place } = field;
  const fields = field.object(['template_name', 'catalog_names', 'type'], {
    unknown: 'warn',
    hints: { catalogs_names: 'rename it to catalog_names' },
  });
  if (fields === undefined) return undefined;
  const templateName = fields.template_name.matching(isRelativeName, 'a file below catalog-templates');
  const type = fields.type.text();
  const catalogNames = readCatalogNames(fields.catalog_names);
  if (type !== undefined && !Object.hasOwn(templateTypes, type)) {
    const hint = `use ${Object.keys(templateTypes).join(' or ')}`;
    fields.type.fail(`unsupported value ${quoteShort(type)}`, { hint });
    return undefined;
  }
  if (templateName === undefined || type === undefined || catalogNames === undefined) return undefined;
  return { templateName, catalogNames, type, place };
}

function readCatalogNames(field: Field): string[] | undefined {
  if (!field.isPresent) return field.missing('list at least one catalog, e.g. v4.18');
  const items = field.list(maxMappings);
  if (items === undefined) return undefined;
  if (items.length === 0) return field.fail('empty list', { hint: 'list at least one catalog, e.g. v4.18' });
  return items.flatMap((item) => {
    const name = item.matching(isPlainName, 'the name of a catalog directory');
    const meant = name === undefined ? undefined : findMeantCatalog(name);
    if (name !== undefined && meant !== undefined) {
      item.warn(describeUnread(name), { code: 'catalog-name', hint: `use ${meant}` });
    }
    return name ?? [];
  });
}

/** Returns the catalog that a name is a misspelling of, such as `4.22` or `V4.22`; undefined for others. */
export function findMeantCatalog(name: string): string | undefined {
  const [, version] = /^\s*v?(\d+\.\d+)\s*$/i.exec(name) ?? [];
  return version === undefined || name === `v${version}` ? undefined : `v${version}`;
}

/** Returns the problem of a misspelled catalog. */
export function describeUnread(name: string): string {
  return `directory ${quoteGo(`catalogs/${name}`)} is not read by pipelines`;
}

/** Throws UsageError for a name that pipelines read no catalog of, and that no directory can have. */
export function requireCatalogName(name: string): void {
  const meant = findMeantCatalog(name);
  if (isPlainName(name) && meant === undefined) return;
  throw new UsageError(`invalid catalog ${quoteGo(name)}`, { hint: `use ${meant ?? 'v4.18'}` });
}

/** Maximum length of a component of a path, in bytes. */
const maxNameLength = 255;

/** Reports whether a name is a single component of a path, without control characters. */
export function isPlainName(name: string): boolean {
  const isComponent = /^[^/\\\0-\x1f\x7f]+$/.test(name) && !name.startsWith('.');
  return isComponent && Buffer.byteLength(name) <= maxNameLength;
}

function isRelativeName(name: string): boolean {
  return name.split('/').every(isPlainName);
}
