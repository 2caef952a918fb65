import { isBundleDirectory } from '../bundle/read.js';
import type { Assembly } from '../catalog/assemble.js';
import { Spool } from '../catalog/spool.js';
import type { Template } from '../catalog/template/template.js';
import { withOpen } from '../core/concurrency.js';
import { OpmateError } from '../core/errors.js';
import { quoteGo } from '../document/go-json.js';
import { parseRegistryImage } from '../core/reference.js';
import type { BundleBlob } from '../model/declarative-config.js';
import type { CatalogDiagnostic } from '../model/catalog-diagnostic.js';
import type { CatalogFacts } from '../model/facts.js';
import { validateCatalog } from '../graph/validate.js';
import { renderBundleSource } from './render.js';
import { statIfPresent } from '../files/file-status.js';
import type { SourceSession } from './session.js';
import { openPlace } from './resolve-place.js';
import { renderBasic } from './template/render-basic.js';
import { renderSemver } from './template/render-semver.js';
import { SubstitutesRendering } from './template/render-substitutes.js';
import { TemplateRun, type TemplateRunOptions, findEntryPath } from './template/template-run.js';

interface TemplateOptions extends Omit<TemplateRunOptions, 'readBundle'> {
  /** Reads the bundle in an image without migrating it; default: `readBundleImage` for each. */
  readBundle?: ((image: string) => Promise<BundleBlob>) | undefined;
}

/** A rendered template. `close` it at the end. */
interface RenderedTemplate {
  assembly: Assembly;
  facts: CatalogFacts;
  /** Returns the problems of the catalog, with the lines of its entries in the template. */
  validate(): Promise<CatalogDiagnostic[]>;
  close(): Promise<void>;
}

/**
 * Renders a template as a catalog. Each image is fetched once, several in parallel; memory does not grow with their
 * content. Throws OpmateError with file and line for all unavailable images or all invalid bundles, with an
 * AggregateError as cause if there are several. (Source: Render of alpha/template in operator-registry.)
 */
export async function renderTemplateCatalog(
  template: Template,
  session: SourceSession,
  { readBundle = (image) => readBundleImage(image, session), ...options }: TemplateOptions,
): Promise<RenderedTemplate> {
  const run = new TemplateRun(template, session, { ...options, readBundle });
  const { assembly, facts } = run;
  try {
    if (template.type === 'basic') await renderBasic(run, template);
    else if (template.type === 'substitutes') await new SubstitutesRendering(run, template).render();
    else await withOpen(new Spool(session.temporaryDirectory), (spool) => renderSemver(run, template, spool));
    return {
      assembly,
      facts,
      validate: () => findProblems(template, facts),
      close: () => assembly.close(),
    };
  } catch (error) {
    await assembly.close().catch(() => undefined);
    throw error;
  }
}

async function findProblems(template: Template, facts: CatalogFacts): Promise<CatalogDiagnostic[]> {
  const { problems } = validateCatalog(facts);
  if (template.type === 'semver') return problems;
  return Promise.all(
    problems.map(async (problem) => {
      const path = findEntryPath(template.entries, problem);
      if (path === undefined) return problem;
      return { ...problem, origin: undefined, file: template.file, line: await template.findLine(path) };
    }),
  );
}

/**
 * Reads the bundle in a registry image without migrating it. Templates come from others, so local files, repositories and
 * URLs are refused unread; directories in the words of `opm`. Throws OpmateError.
 */
export async function readBundleImage(image: string, session: SourceSession): Promise<BundleBlob> {
  try {
    parseRegistryImage(image);
  } catch (error) {
    throw (await findDirectoryFault(image)) ?? error;
  }
  const place = { kind: 'image', ref: image } as const;
  return withOpen(openPlace(place, session, { bundles: true, catalogs: false }), (source) => {
    if (source.kind === 'bundle') return renderBundleSource(source, image, { migrationLevel: 'none' });
    throw new OpmateError('UNSUPPORTED', 'is a catalog, not a bundle');
  });
}

async function findDirectoryFault(image: string): Promise<OpmateError | undefined> {
  const stats = await statIfPresent(image).catch(() => undefined);
  if (stats?.isDirectory() !== true) return undefined;
  const kind = (await isBundleDirectory(image)) ? 'bundle' : 'declarative config';
  const problem =
    kind === 'bundle'
      ? `cannot render bundle directory ${quoteGo(image)}: not allowed`
      : 'cannot render declarative config directory: not allowed';
  return new OpmateError('UNSUPPORTED', problem, { hint: 'use an image that clusters can pull' });
}
