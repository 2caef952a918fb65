import type { Catalog } from '../../catalog/catalog.js';
import { collectFacts } from '../../catalog/facts.js';
import { type CancelOptions } from '../../core/concurrency.js';
import { combineErrors } from '../../core/diagnostics-error.js';
import { OpmateError, throwIfCancelled } from '../../core/errors.js';
import { type Logger } from '../../core/log.js';
import type { Reference } from '../../core/reference.js';
import { openReference } from '../../oci/image/open.js';
import type { SourceSession } from '../../source/session.js';
import { openSource } from '../../source/source.js';
import type { DependencyCatalog } from '../selection/dependencies.js';
import { selectOperators } from '../selection/select-operators.js';
import type { ImageSetConfiguration, OperatorConfig } from './image-set-config.js';
import { sourceText } from './image-set-names.js';

/** A catalog that is open for planning. */
export interface OpenedCatalog {
  catalog: Catalog;
  digest: string;
  close(): Promise<void>;
}

interface SelectOptions extends CancelOptions {
  openCatalog: (reference: Reference) => Promise<OpenedCatalog>;
  logger?: Logger | undefined;
}

export interface SelectedCatalog extends DependencyCatalog, OpenedCatalog {}

/**
 * Opens the catalogs one after the other, as they share layers that are fetched once, and selects of each while the
 * next is opened. What was opened is added to `opened`, and stays open. Throws the faults of all catalogs together.
 */
export async function selectCatalogs(
  config: ImageSetConfiguration,
  options: SelectOptions,
  opened: OpenedCatalog[],
): Promise<SelectedCatalog[]> {
  const outcomes: Promise<SelectedCatalog | OpmateError>[] = [];
  try {
    for (const operator of config.operators) {
      throwIfCancelled(options.signal);
      const catalog = await orFault(options.openCatalog(operator.reference));
      if (!(catalog instanceof OpmateError)) opened.push(catalog);
      await outcomes.at(-1);
      outcomes.push(
        catalog instanceof OpmateError
          ? Promise.resolve(catalog)
          : orFault(selectCatalog(catalog, operator, config, options)),
      );
    }
  } finally {
    // Also where opening has failed: nothing may be read when the catalogs are closed.
    await Promise.allSettled(outcomes);
  }
  const settled = await Promise.all(outcomes);
  const faults = settled.filter((outcome) => outcome instanceof OpmateError);
  if (faults.length > 0) throw combineErrors(faults);
  return settled.filter((outcome) => !(outcome instanceof OpmateError)) as SelectedCatalog[];
}

/** The error where it is about the content of a catalog: those of other catalogs are of interest, too. */
function orFault<T>(work: Promise<T>): Promise<T | OpmateError> {
  const outcome = work.catch((error: unknown) => {
    if (error instanceof OpmateError && isAboutContent(error)) return error;
    throw error;
  });
  // It may fail long before it is awaited.
  outcome.catch(() => undefined);
  return outcome;
}

async function selectCatalog(
  opened: OpenedCatalog,
  operator: OperatorConfig,
  config: ImageSetConfiguration,
  options: SelectOptions,
): Promise<SelectedCatalog> {
  const facts = await collectFacts(opened.catalog, options);
  return { ...opened, operator, facts, selection: selectOperators(facts, operator, config.file) };
}

/** Whether an error says that a catalog is wrong, not that the run cannot go on. */
export function isAboutContent({ code }: OpmateError): boolean {
  return code === 'INVALID' || code === 'NOT_FOUND' || code === 'UNSUPPORTED';
}

/**
 * Opens the catalog that a reference names, pinned: what a tag means is looked up once, and everything is read by
 * that digest. Throws OpmateError, as opening a source does.
 */
export async function openPinnedCatalog(
  reference: Reference,
  session: SourceSession,
): Promise<OpenedCatalog> {
  const named =
    reference.transport === 'docker' && reference.digest === undefined
      ? { ...reference, tag: reference.tag ?? 'latest' }
      : reference;
  const opened = await openReference(named, session);
  let digest: string;
  try {
    digest = (await opened.repository.getManifest(opened.reference, session)).descriptor.digest;
  } finally {
    await opened.close();
  }
  const text = sourceText({ ...reference, digest });
  const source = await openSource(text, session, { catalogs: true, bundles: false });
  if (source.kind === 'catalog') return { catalog: source.catalog, digest, close: () => source.close() };
  await source.close();
  throw new OpmateError('INVALID', 'not a catalog', { subject: reference.text });
}
