import type { Assembly } from '../catalog/assemble.js';
import { type OpenFile } from '../catalog/documents.js';
import { openFile } from '../catalog/file-access.js';
import { readTemplate } from '../catalog/template/read.js';
import type { TemplateType } from '../catalog/template/template.js';
import { type Diagnostic, formatDiagnostic } from '../core/diagnostic.js';
import type { CatalogDiagnostic } from '../model/catalog-diagnostic.js';
import type { CatalogFormat } from '../model/encode.js';
import type { CatalogFacts } from '../model/facts.js';
import { resolveMigrationLevel } from '../model/migrations.js';
import type { Session } from '../source/session.js';
import { renderTemplate as renderRead } from '../source/template.js';

/** Options of `renderTemplate`. */
export interface RenderTemplateOptions {
  /** Default: detected from the schema of the first document. */
  type?: TemplateType | undefined;
  /** Default `json`. */
  format?: CatalogFormat | undefined;
  /** Migration level by name for fetched bundles; default none. */
  migrateLevel?: string | undefined;
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
  file: string,
  session: Session,
  options: RenderTemplateOptions = {},
): Promise<RenderedTemplate> {
  const handle = await openFile(file, file);
  try {
    const { size } = await handle.stat();
    const rendered = await renderOpenTemplate({ handle, label: file, size }, session, options);
    return {
      ...rendered,
      close: async () => {
        await rendered.close();
        await handle.close();
      },
    };
  } catch (error) {
    await handle.close();
    throw error;
  }
}

/** Renders a template from a file that is open; it stays open until the result is closed. */
export async function renderOpenTemplate(
  input: OpenFile,
  session: Session,
  { type, format = 'json', migrateLevel = '' }: RenderTemplateOptions,
): Promise<RenderedTemplate> {
  const migrationLevel = resolveMigrationLevel(migrateLevel);
  const template = await readTemplate(input, type, session);
  const warnings: Diagnostic[] = [];
  for (const warning of template.warnings) {
    const line = await template.findLine(warning.path ?? []);
    warnings.push({ ...warning, line });
    session.logger.log('warn', formatDiagnostic({ ...warning, line }));
  }
  const rendered = await renderRead(template, session, { format, migrationLevel });
  const { assembly, facts, validate, close } = rendered;
  return { warnings, facts, validate, write: (written) => assembly.write(written), close };
}
