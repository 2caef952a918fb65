import { keepOpen } from '../../core/concurrency.js';
import type { Assembly } from '../../catalog/assemble.js';
import type { OpenFile } from '../../catalog/documents.js';
import { readTemplate } from '../../catalog/template/read.js';
import type { TemplateType } from '../../catalog/template/template.js';
import type { Diagnostic } from '../../core/diagnostic.js';
import { logDiagnostic } from '../../core/log.js';
import type { CatalogDiagnostic } from '../../model/catalog-diagnostic.js';
import type { CatalogFacts } from '../../model/facts.js';
import type { Session } from '../../source/session.js';
import { renderTemplateCatalog } from '../../source/template.js';
import { type CatalogOutput, resolveOutput } from '../catalog-output.js';
import { type TemplateInput, openInput } from './template-input.js';

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
 * Renders a template of any type as a catalog. Every image that is unavailable is reported. Throws OpmateError with file
 * and line.
 */
export async function renderTemplate(
  input: TemplateInput,
  session: Session,
  options: RenderTemplateOptions = {},
): Promise<RenderedTemplate> {
  const output = resolveOutput(options);
  return keepOpen(openInput(input, session), async (opened) => {
    const { close, ...rendered } = await renderOpen(opened, session, options.type, output);
    return {
      ...rendered,
      close: async () => {
        await close();
        await opened.close();
      },
    };
  });
}

async function renderOpen(
  input: OpenFile,
  session: Session,
  type: TemplateType | undefined,
  { format, migrationLevel }: ReturnType<typeof resolveOutput>,
): Promise<RenderedTemplate> {
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
