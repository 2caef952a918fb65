import { parseImageTemplate } from '../bundle/image-template.js';
import { renderReferences } from '../source/render.js';
import type { Session } from '../source/session.js';
import { type CatalogOutput, resolveOutput } from './catalog-output.js';

/** Options of `render`. */
export interface RenderCatalogOptions extends CatalogOutput {
  /** Template of image references for bundles in directories. */
  imageTemplate?: string | undefined;
}

/**
 * Renders bundles and catalogs from any source as one catalog, in the bytes of `opm render`, one piece per blob. All
 * sources are read and checked before the first piece. Throws OpmateError.
 */
export async function* render(
  references: readonly string[],
  session: Session,
  { imageTemplate, ...output }: RenderCatalogOptions = {},
): AsyncGenerator<Buffer | string, void, undefined> {
  const { format, migrationLevel } = resolveOutput(output);
  if (imageTemplate !== undefined) parseImageTemplate(imageTemplate);
  const rendered = await renderReferences(references, session, { format, migrationLevel, imageTemplate });
  try {
    yield* rendered.assembly.write({ signal: session.signal });
  } finally {
    await rendered.close();
  }
}
