import { keepOpen } from '../../core/concurrency.js';
import type { Assembly } from '../../catalog/assemble.js';
import { type OpenFile } from '../../catalog/documents.js';
import { openFile } from '../../catalog/file-access.js';
import { readTemplate } from '../../catalog/template/read.js';
import type { TemplateType } from '../../catalog/template/template.js';
import type { Diagnostic } from '../../core/diagnostic.js';
import { logDiagnostic } from '../../core/log.js';
import type { CatalogDiagnostic } from '../../model/catalog-diagnostic.js';
import type { CatalogFacts } from '../../model/facts.js';
import type { Session } from '../../source/session.js';
import { renderTemplateCatalog } from '../../source/template.js';
import { type CatalogOutput, resolveOutput } from '../catalog-output.js';

/** Options of `renderTemplate`. */
export interface RenderTemplateOptions extends CatalogOutput {
  /** Default: detected from the schema of the first document. */
  type?: TemplateType | undefined;
}

/** Catalog that a template renders to. `close` it at the end. */
export interface RenderedTemplate {
  /** Warnings about the template; also logged. */
  warnings: Diagnostic[];
  /** Names, edges and versions; `drawGraph` draws them. */
  facts: CatalogFacts;
  /** Returns the problems that make the catalog invalid, with file and line as far as the template has the blob. */
  validate(): Promise<CatalogDiagnostic[]>;
  /** Returns the catalog piece by piece. */
  write: Assembly['write'];
  close(): Promise<void>;
}

/**
 * Renders a template of any type as a catalog: a file by name, or one that is open and stays open until the result is
 * closed. Every image that is unavailable is reported. Throws OpmateError with file and line.
 */
export async function renderTemplate(
  input: string | OpenFile,
  session: Session,
  options: RenderTemplateOptions = {},
): Promise<RenderedTemplate> {
  if (typeof input !== 'string') return renderOpen(input, session, options);
  return keepOpen(openFile(input, input), async (handle) => {
    const { size } = await handle.stat();
    const rendered = await renderOpen({ handle, label: input, size }, session, options);
    return {
      ...rendered,
      close: async () => {
        await rendered.close();
        await handle.close();
      },
    };
  });
}

async function renderOpen(
  input: OpenFile,
  session: Session,
  { type, ...output }: RenderTemplateOptions,
): Promise<RenderedTemplate> {
  const { format, migrationLevel } = resolveOutput(output);
  const template = await readTemplate(input, type, session);
  const warnings: Diagnostic[] = [];
  for (const warning of template.warnings) {
    const placed = { ...warning, line: await template.findLine(warning.path ?? []) };
    warnings.push(placed);
    logDiagnostic(session.logger, placed);
  }
  const rendered = await renderTemplateCatalog(template, session, { format, migrationLevel });
  const { assembly, facts, validate, close } = rendered;
  return { warnings, facts, validate, write: (written) => assembly.write(written), close };
}
