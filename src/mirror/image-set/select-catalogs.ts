import type { Catalog } from '../../catalog/catalog.js';
import { collectFacts } from '../../catalog/facts.js';
import { type CancelOptions, withOpen } from '../../core/concurrency.js';
import type { ErrorList } from '../../core/diagnostics-error.js';
import { OpmateError, throwIfCancelled } from '../../core/errors.js';
import { type Logger } from '../../core/log.js';
import type { Reference } from '../../core/reference.js';
import { openReference } from '../../oci/image/open.js';
import type { SourceSession } from '../../source/session.js';
import { openSource } from '../../source/source.js';
import type { DependencyCatalog } from '../selection/growing-catalog.js';
import { selectOperators } from '../selection/select-operators.js';
import type { ImageSetConfiguration, OperatorConfig } from './image-set-config.js';
import { formatSource } from '../naming/mirror-target.js';

/** A catalog opened for planning. */
export interface OpenedCatalog {
  catalog: Catalog;
  digest: string;
  close(): Promise<void>;
}

interface SelectOptions extends CancelOptions {
  openCatalog: (reference: Reference) => Promise<OpenedCatalog>;
  logger?: Logger | undefined;
}

/** A catalog with its selection. */
export interface SelectedCatalog extends DependencyCatalog, OpenedCatalog {}

/**
 * Opens catalogs one after the other, as they share layers, and filters each while the next is opened. Opened catalogs
 * are added to `opened` and stay open. Errors in the content of catalogs are added to `errors`; others are thrown.
 */
export async function selectCatalogs(
  config: ImageSetConfiguration,
  options: SelectOptions,
  opened: Pick<OpenedCatalog, 'close'>[],
  errors: ErrorList,
): Promise<SelectedCatalog[]> {
  const selections: Promise<SelectedCatalog | undefined>[] = [];
  try {
    for (const operator of config.operators) {
      throwIfCancelled(options.signal);
      const opening = options.openCatalog(operator.reference);
      // Errors are in the order of the configuration.
      await Promise.allSettled([opening, selections.at(-1)]);
      const catalog = await errors.try(() => opening, isAboutContent);
      if (catalog !== undefined) opened.push(catalog);
      await selections.at(-1);
      if (catalog === undefined) continue;
      const selection = errors.try(() => selectCatalog(catalog, operator, config, options), isAboutContent);
      // It may fail before it is awaited.
      selection.catch(() => undefined);
      selections.push(selection);
    }
  } finally {
    // Nothing may be read when the catalogs are closed, even after a failure to open one.
    await Promise.allSettled(selections);
  }
  const selected = await Promise.all(selections);
  return selected.filter((catalog) => catalog !== undefined);
}

async function selectCatalog(
  opened: OpenedCatalog,
  operator: OperatorConfig,
  config: ImageSetConfiguration,
  options: SelectOptions,
): Promise<SelectedCatalog> {
  const { bundles, ...others } = await collectFacts(opened.catalog, options);
  // Image references are checked when images are collected, where they may be blocked or skipped.
  const facts = { ...others, bundles: bundles.map((bundle) => ({ ...bundle, imageFaults: [] })) };
  return { ...opened, operator, facts, selection: selectOperators(facts, operator, config.file) };
}

/** Reports whether an error concerns the content of a catalog, not the whole run. */
export function isAboutContent({ code }: OpmateError): boolean {
  return code === 'INVALID' || code === 'NOT_FOUND' || code === 'UNSUPPORTED';
}

/** Opens a catalog by the digest that its tag has now. Throws OpmateError, as opening a source does. */
export async function openPinnedCatalog(
  reference: Reference,
  session: SourceSession,
): Promise<OpenedCatalog> {
  const named =
    reference.transport === 'docker' && reference.digest === undefined
      ? { ...reference, tag: reference.tag ?? 'latest' }
      : reference;
  const digest = await withOpen(openReference(named, session), async (opened) => {
    const { descriptor } = await opened.repository.getManifest(opened.reference, session);
    return descriptor.digest;
  });
  const text = formatSource({ ...reference, digest });
  const source = await openSource(text, session, { catalogs: true, bundles: false });
  if (source.kind === 'catalog') return { catalog: source.catalog, digest, close: () => source.close() };
  await source.close();
  throw new OpmateError('INVALID', 'not a catalog', { subject: reference.text });
}
