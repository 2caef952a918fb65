import { copyFile, mkdir } from 'node:fs/promises';
import path from 'node:path';
import { ErrorList } from '../core/diagnostics-error.js';
import { OpmateError } from '../core/errors.js';
import { quoteGo } from '../core/go-json-quote.js';
import { suggestOneOf } from '../core/suggest.js';
import { changeDirectory } from '../files/change-directory.js';
import { listDirectory } from '../files/file-status.js';
import { writeNewFile } from '../files/write-new-file.js';
import { addCatalogToMapping } from './edit/ci-config-edit.js';
import { type CiConfig, readCiConfig } from './ci-config.js';
import { catalogFile } from './write-catalogs.js';
import type { ChangedFile } from './changed-file.js';
import {
  type OperatorRepository,
  findCatalogFile,
  isFile,
  listSubdirectories,
  pathIn,
  requireInRepository,
  requirePlaceInRepository,
} from './repository.js';

/** Handling of an operator when the catalog of the next OpenShift version is created. */
type Promotion = 'always' | 'review' | 'never';

/** An operator with what its promotion changes. */
export interface PromotedOperator {
  operator: string;
  promotion: Promotion;
  /** Reason for a skipped operator, or for a catalog that is not mapped. */
  note?: string | undefined;
  /** Copies the catalog; false if the target has it. */
  copiesCatalog: boolean;
  config: ChangedFile | undefined;
  /** Configuration with the target in the mapping of the source; undefined if none names the source. */
  mapped?: CiConfig | undefined;
}

const strategies: Readonly<Record<string, Promotion>> = {
  always: 'always',
  'review-needed': 'review',
  never: 'never',
};

/**
 * Plans the catalogs of a new OpenShift version from those of another one. Throws OpmateError NOT_FOUND if the source
 * has no operators, and all errors of `ci.yaml`. (Source: promote-catalog.py of operator-pipelines.)
 */
export async function planPromotion(
  repository: OperatorRepository,
  source: string,
  target: string,
): Promise<PromotedOperator[]> {
  const operators = await listSubdirectories(repository, 'catalogs', source);
  if (operators.length === 0) {
    const catalogs = await listSubdirectories(repository, 'catalogs');
    throw new OpmateError('NOT_FOUND', 'the catalog has no operators', {
      about: pathIn(repository, 'catalogs', source),
      hint: catalogs.length === 0 ? undefined : suggestOneOf(catalogs),
    });
  }
  const errors = new ErrorList();
  const planned: PromotedOperator[] = [];
  for (const operator of operators) {
    const item = await errors.try(() => planOperator(repository, operator, source, target));
    if (item !== undefined) planned.push(item);
  }
  errors.throwIfAny();
  return planned;
}

async function planOperator(
  repository: OperatorRepository,
  operator: string,
  source: string,
  target: string,
): Promise<PromotedOperator> {
  const config = await readCiConfig(repository, operator);
  const strategy = config?.promotionStrategy ?? 'review-needed';
  const promotion = strategies[strategy];
  if (promotion === undefined || promotion === 'never') {
    const note =
      promotion === undefined ? `unknown version_promotion_strategy ${quoteGo(strategy)}` : undefined;
    return { operator, promotion: 'never', note, copiesCatalog: false, config: undefined };
  }
  const copiesCatalog = (await findCatalogFile(repository, target, operator)) === undefined;
  if (copiesCatalog) {
    await requirePlaceInRepository(repository, path.join('catalogs', target, operator));
    await listCopiedFiles(repository, source, operator);
  }
  const mapped = config === undefined ? undefined : mapTarget(config, source, target);
  const note = mapped === undefined ? `no mapping names ${source}` : undefined;
  const after = config === undefined ? undefined : addCatalogToMapping(config, source, target);
  const changed =
    config === undefined || after === undefined
      ? undefined
      : { path: path.join('operators', operator, 'ci.yaml'), before: config.document.text, after };
  return { operator, promotion, note, copiesCatalog, config: changed, mapped };
}

/** Returns a configuration that maps a catalog by the template of another one; undefined if none has that one. */
function mapTarget(config: CiConfig, source: string, target: string): CiConfig | undefined {
  const index = config.mappings.findIndex(({ catalogNames }) => catalogNames.includes(source));
  if (index < 0 || config.mappings.some(({ catalogNames }) => catalogNames.includes(target))) {
    return index < 0 ? undefined : config;
  }
  const mappings = config.mappings.map((mapping, at) =>
    at === index ? { ...mapping, catalogNames: [...mapping.catalogNames, target] } : mapping,
  );
  return { ...config, mappings };
}

/** Returns the files of a catalog of an operator. Throws OpmateError, UNSAFE for a link that leads out of the checkout. */
async function listCopiedFiles(
  repository: OperatorRepository,
  catalog: string,
  operator: string,
): Promise<string[]> {
  const directory = pathIn(repository, 'catalogs', catalog, operator);
  const files: string[] = [];
  for (const { name } of await listDirectory(directory)) {
    const file = path.join(directory, name);
    await requireInRepository(repository, file);
    if (await isFile(file)) files.push(file);
  }
  if (files.length > 0) return files;
  throw new OpmateError('NOT_FOUND', 'the operator has no catalog file', { about: directory });
}

/** Writes rendered catalogs, copies others, and adds mappings, all or none. */
export async function writePromotion(
  repository: OperatorRepository,
  operators: readonly PromotedOperator[],
  { source, target, rendered }: { source: string; target: string; rendered: ReadonlyMap<string, string> },
): Promise<void> {
  const changed = operators.filter(
    ({ operator, copiesCatalog, config }) => copiesCatalog || config !== undefined || rendered.has(operator),
  );
  if (changed.length === 0) return;
  for (const { config } of changed) {
    if (config !== undefined) await requirePlaceInRepository(repository, config.path);
  }
  await changeDirectory(repository.root, { subject: repository.root }, async (change) => {
    for (const [index, { operator, copiesCatalog, config }] of changed.entries()) {
      const catalog = rendered.get(operator);
      if (copiesCatalog || catalog !== undefined) {
        const staged = path.join(change.staging, String(index));
        await mkdir(staged);
        if (catalog !== undefined) await copyFile(catalog, path.join(staged, catalogFile));
        else {
          for (const file of await listCopiedFiles(repository, source, operator))
            await copyFile(file, path.join(staged, path.basename(file)));
        }
        change.put(staged, path.join('catalogs', target, operator));
      }
      if (config === undefined) continue;
      const file = path.join(change.staging, `config-${index}`);
      await writeNewFile(file, config.after);
      change.put(file, config.path);
    }
  });
}
