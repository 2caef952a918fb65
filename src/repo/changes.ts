import path from 'node:path';
import { OpmateError } from '../core/errors.js';
import { createFault, type Diagnostic } from '../core/diagnostic.js';
import { joinNames } from '../core/suggest.js';
import { quoteGo } from '../core/go-json-quote.js';
import { sortedByBytes } from '../core/order.js';
import { parseYamlFile } from '../document/document.js';
import { getText, getValue } from '../document/json-fields.js';
import { readCheckedFile } from './checks/bundle-model.js';
import { listCatalogBundles } from './catalog-bundles.js';
import type { GitTree } from './git-tree.js';
import type { SourceSession } from '../source/session.js';
import {
  type OperatorRepository,
  hasBundle,
  isFile,
  findCatalogFile,
  listBundleDirectories,
  listCatalogsOf,
  listSubdirectories,
  pathIn,
} from './repository.js';

type Kind = 'operators' | 'bundles' | 'catalog_operators' | 'catalogs';
type State = 'affected' | 'added' | 'modified' | 'deleted' | 'added_or_modified';

/** Changes of a repository, in the form of the pipeline: bundles are `OPERATOR/VERSION`. */
type ChangeSet = Record<`${State}_${Kind}`, string[]> & {
  catalogs_with_added_or_modified_operators: string[];
  extra_files: string[];
  operator_name: string;
  operator_path: string;
  bundle_version: string;
  bundle_path: string;
};

/** Changes and the rules that they break. */
export interface RepositoryChanges {
  result: ChangeSet;
  problems: Diagnostic[];
}

/** What exists on one side of a comparison. */
interface Side {
  has(kind: Kind, name: string): boolean | Promise<boolean>;
}

/**
 * Compares the working tree with a base. `files` are the changed paths. (Source: detect-changed-operators of
 * operator-pipelines.)
 */
export async function compareWithBase(
  repository: OperatorRepository,
  git: GitTree,
  files: readonly string[],
  session: SourceSession,
): Promise<RepositoryChanges> {
  const head = headSide(repository);
  const touched = splitPaths(files);
  const base = await baseSide(git, touched.paths);
  const names: Record<Kind, string[]> = { operators: [], bundles: [], catalog_operators: [], catalogs: [] };
  const lists = {} as Record<`${State}_${Kind}`, string[]>;
  for (const kind of Object.keys(names) as Kind[]) {
    const changed = await classify(touched[kind], kind, base, head);
    for (const [state, list] of Object.entries(changed)) lists[`${state as State}_${kind}`] = list;
  }
  const known = new Set([...lists.affected_operators, ...lists.affected_catalog_operators.map(operatorOf)]);
  const extra = files.filter((file) => !touched.explains(file, known));
  const [bundle] = lists.added_or_modified_bundles;
  const [operator] = sortedByBytes(known);
  const catalogNames = lists.added_or_modified_catalog_operators.map((name) => name.split('/')[0] as string);
  const result: ChangeSet = {
    ...lists,
    catalogs_with_added_or_modified_operators: sortedByBytes(new Set(catalogNames)),
    extra_files: extra,
    operator_name: operator ?? '',
    operator_path: operator === undefined ? '' : `operators/${operator}`,
    bundle_version: bundle?.split('/')[1] ?? '',
    bundle_path: bundle === undefined ? '' : `operators/${bundle}`,
  };
  return {
    result,
    problems: [...checkRules(result), ...(await checkDeletions(repository, git, result, session))],
  };
}

const operatorOf = (catalogOperator: string): string => catalogOperator.split('/')[1] as string;

/** Splits changed paths into the names that they may be part of. */
function splitPaths(files: readonly string[]) {
  const found: Record<Kind, Set<string>> = {
    operators: new Set(),
    bundles: new Set(),
    catalog_operators: new Set(),
    catalogs: new Set(),
  };
  const paths = new Set<string>();
  for (const file of files) {
    const [top, first, second, ...rest] = file.split('/');
    if (first === undefined || second === undefined) continue;
    if (top === 'operators') {
      found.operators.add(first);
      paths.add(`operators/${first}`);
      if (rest.length > 0) found.bundles.add(`${first}/${second}`);
    } else if (top === 'catalogs' && rest.length > 0) {
      found.catalogs.add(first);
      found.catalog_operators.add(`${first}/${second}`);
      paths.add(`catalogs/${first}`);
    }
  }
  return {
    operators: sortedByBytes(found.operators),
    bundles: sortedByBytes(found.bundles),
    catalog_operators: sortedByBytes(found.catalog_operators),
    catalogs: sortedByBytes(found.catalogs),
    paths: [...paths],
    /** Reports whether a file belongs to an operator, or to the catalog of one. */
    explains(file: string, operators: ReadonlySet<string>): boolean {
      const [top, first = '', second = '', ...rest] = file.split('/');
      if (top === 'operators') return operators.has(first) && second !== '';
      return top === 'catalogs' && rest.length > 0 && operators.has(second);
    },
  };
}

async function classify(
  names: readonly string[],
  kind: Kind,
  base: Side,
  head: Side,
): Promise<Record<State, string[]>> {
  const lists: Record<State, string[]> = {
    affected: [],
    added: [],
    modified: [],
    deleted: [],
    added_or_modified: [],
  };
  for (const name of names) {
    const [before, after] = [await base.has(kind, name), await head.has(kind, name)];
    if (!before && !after) continue;
    lists.affected.push(name);
    if (after) lists.added_or_modified.push(name);
    lists[!before ? 'added' : !after ? 'deleted' : 'modified'].push(name);
  }
  return lists;
}

function headSide(repository: OperatorRepository): Side {
  return {
    async has(kind, name) {
      const [first = '', second = ''] = name.split('/');
      switch (kind) {
        case 'operators': {
          const hasConfig = await isFile(pathIn(repository, 'operators', first, 'ci.yaml'));
          return hasConfig || (await listBundleDirectories(repository, first)).length > 0;
        }
        case 'bundles':
          return hasBundle(repository, first, second);
        case 'catalog_operators':
          return (await findCatalogFile(repository, first, second)) !== undefined;
        case 'catalogs':
          return (await listSubdirectories(repository, 'catalogs')).includes(first);
      }
    },
  };
}

async function baseSide(git: GitTree, paths: readonly string[]): Promise<Side> {
  const names: Record<Kind, Set<string>> = {
    operators: new Set(),
    bundles: new Set(),
    catalog_operators: new Set(),
    catalogs: new Set(),
  };
  const parts = new Map<string, Set<string>>();
  for (const file of await git.listBaseFiles(paths)) {
    const [top, first = '', second = '', third = '', ...rest] = file.split('/');
    if (top === 'operators' && second === 'ci.yaml' && third === '') names.operators.add(first);
    if (top === 'operators' && rest.length > 0 && (third === 'manifests' || third === 'metadata')) {
      const bundle = `${first}/${second}`;
      const present = parts.get(bundle) ?? new Set();
      parts.set(bundle, present.add(third));
      if (present.size === 2) {
        names.bundles.add(bundle);
        names.operators.add(first);
      }
    }
    if (top === 'catalogs') names.catalogs.add(first);
    if (top === 'catalogs' && rest.length === 0 && /^catalog\.(?:ya?ml|json)$/.test(third)) {
      names.catalog_operators.add(`${first}/${second}`);
    }
  }
  return { has: (kind, name) => names[kind].has(name) };
}

/** Returns the broken rules of a pull request. */
function checkRules(result: ChangeSet): Diagnostic[] {
  const problems: Diagnostic[] = [];
  const fail = (code: string, problem: string, hint: string): void =>
    void problems.push(createFault(code, problem, { hint }));
  const bundles = result.affected_bundles;
  if (result.extra_files.length > 0) {
    const hint = 'move them to a pull request of their own';
    fail('extra-files', `files of no operator: ${joinNames(result.extra_files)}`, hint);
  }
  if (result.affected_operators.length > 1 && bundles.length > 0) {
    const hint = 'split the change by operator';
    fail('several-operators', `several operators: ${joinNames(result.affected_operators)}`, hint);
  }
  if (result.modified_bundles.length > 0) {
    const hint = 'publish a new version instead';
    fail('bundle-modified', `existing bundles are changed: ${joinNames(result.modified_bundles)}`, hint);
  }
  if (result.added_bundles.length > 1) {
    const hint = 'add one bundle per pull request';
    fail('several-bundles', `several bundles are added: ${joinNames(result.added_bundles)}`, hint);
  }
  if (result.added_bundles.length > 0 && result.deleted_bundles.length > 0) {
    const hint = 'split added and deleted bundles';
    fail('bundle-added-and-deleted', `bundles are added and deleted: ${joinNames(bundles)}`, hint);
  }
  if (bundles.length > 0 && result.affected_catalog_operators.length > 0) {
    const catalogs = joinNames(result.affected_catalog_operators);
    const hint = 'split bundles and catalogs';
    fail(
      'bundle-and-catalog',
      `bundles (${joinNames(bundles)}) and catalogs (${catalogs}) are changed`,
      hint,
    );
  }
  return problems;
}

/** Reports deleted bundles that catalogs contain, or whose operator has no catalogs. */
async function checkDeletions(
  repository: OperatorRepository,
  git: GitTree,
  { deleted_bundles: deleted }: ChangeSet,
  session: SourceSession,
): Promise<Diagnostic[]> {
  const problems: Diagnostic[] = [];
  for (const bundle of deleted) {
    const [operator = '', version = ''] = bundle.split('/');
    const config = await readCheckedFile(repository, pathIn(repository, 'operators', operator, 'ci.yaml'));
    const directory = path.posix.join('operators', operator, version);
    if (getValue(config.value, 'fbc', 'enabled') !== true) {
      const problem = `bundle ${quoteGo(bundle)} is deleted, and its operator has no file-based catalogs`;
      const hint = 'restore it, or enable file-based catalogs first';
      problems.push(createFault('bundle-deleted', problem, { file: directory, hint }));
      continue;
    }
    const name = await readBaseName(git, directory);
    const catalogs = name === undefined ? [] : await findUses(repository, operator, name, session);
    if (catalogs.length === 0) continue;
    const problem = `deleted bundle ${quoteGo(bundle)} is in catalogs: ${joinNames(catalogs)}`;
    const hint = 'remove it from the catalogs first';
    problems.push(createFault('bundle-in-use', problem, { file: directory, hint }));
  }
  return problems;
}

/** Returns the name of a bundle at the base; undefined if it had none. */
async function readBaseName(git: GitTree, directory: string): Promise<string | undefined> {
  const files = await git.listBaseFiles([`${directory}/manifests`]);
  const file = files.find((name) => /\.clusterserviceversion\.ya?ml$/.test(name));
  if (file === undefined) return undefined;
  try {
    return getText(parseYamlFile((await git.readBaseFile(file)).toString(), file), 'metadata', 'name');
  } catch (error) {
    if (error instanceof OpmateError && error.code === 'SYNTAX') return undefined;
    throw error;
  }
}

/** Returns the catalogs of an operator that contain a bundle. */
async function findUses(
  repository: OperatorRepository,
  operator: string,
  bundle: string,
  session: SourceSession,
): Promise<string[]> {
  const uses: string[] = [];
  for (const catalog of await listCatalogsOf(repository, operator)) {
    const file = await findCatalogFile(repository, catalog, operator);
    if (file === undefined) continue;
    const bundles = await listCatalogBundles(pathIn(repository, file), session);
    if (bundles.some(({ name }) => name === bundle)) uses.push(catalog);
  }
  return uses;
}
