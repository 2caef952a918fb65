import { createHash } from 'node:crypto';
import { openFile } from '../catalog/file-access.js';
import { readTemplate } from '../catalog/template/read.js';
import type { Template, TemplateType } from '../catalog/template/template.js';
import { withOpen } from '../core/concurrency.js';
import { LimitError } from '../core/errors.js';
import { logDiagnostic, silentLogger } from '../core/log.js';
import { writeNewFile } from '../files/write-new-file.js';
import type { CatalogFacts } from '../model/facts.js';
import type { SourceSession } from '../source/session.js';
import { renderTemplateCatalog } from '../source/template.js';
import type { BundleStore } from './bundle-store.js';
import type { CatalogLevel } from './catalog-level.js';

/** A template rendered to a file. */
export interface RenderedTemplateFile {
  /** File with the catalog. */
  file: string;
  /** SHA-256 of its bytes, in hexadecimal. */
  sha256: string;
  facts: CatalogFacts;
}

interface RenderToFileOptions {
  type: TemplateType;
  level: CatalogLevel;
  bundles: Pick<BundleStore, 'read'>;
  /** Name of the template in messages; default: its path. */
  label?: string | undefined;
  /** New file. */
  target: string;
  /** End the file with exactly one line break, as the shell script of `make catalogs` does. */
  trimsEnd?: boolean | undefined;
  /** Log warnings of the template; default true. */
  warns?: boolean | undefined;
}

/** Maximum size of a template: a hundred thousand images. */
export const maxTemplateSize = 16 * 1024 * 1024;

/**
 * Reads a template file and calls `work` while it is open; `label` is its name in messages. Throws OpmateError, LIMIT
 * without reading a file of more than 16 MiB.
 */
export async function withTemplate<T>(
  file: string,
  session: SourceSession,
  { type, label = file }: Pick<RenderToFileOptions, 'type' | 'label'>,
  work: (template: Template) => T | Promise<T>,
): Promise<T> {
  return withOpen(openFile(file, label), async (handle) => {
    const { size } = await handle.stat();
    if (size > maxTemplateSize) {
      throw new LimitError(`a template of more than ${maxTemplateSize} bytes`, { about: label });
    }
    return work(await readTemplate({ handle, label, size }, type, session));
  });
}

/** Renders a template file as YAML to a new file. Throws OpmateError with file and line. */
export async function renderTemplateToFile(
  file: string,
  session: SourceSession,
  { type, level, bundles, label, target, trimsEnd = false, warns = true }: RenderToFileOptions,
): Promise<RenderedTemplateFile> {
  return withTemplate(file, session, { type, label }, async (template) => {
    const { logger = silentLogger } = session;
    for (const warning of warns ? template.warnings : []) {
      logDiagnostic(logger, { ...warning, line: await template.findLine(warning.path ?? []) });
    }
    const readBundle = (image: string) => bundles.read(image);
    const rendering = renderTemplateCatalog(template, session, {
      format: 'yaml',
      migrationLevel: level,
      readBundle,
    });
    return withOpen(rendering, async ({ assembly, facts }) => {
      const hash = createHash('sha256');
      const pieces = assembly.write(session);
      await writeNewFile(target, hashed(trimsEnd ? withOneLineBreak(pieces) : pieces, hash));
      return { file: target, sha256: hash.digest('hex'), facts };
    });
  });
}

async function* hashed(
  pieces: AsyncIterable<Buffer | string>,
  hash: ReturnType<typeof createHash>,
): AsyncGenerator<Buffer | string, void, undefined> {
  for await (const piece of pieces) {
    hash.update(piece);
    yield piece;
  }
}

/** Yields text with exactly one line break at its end. */
async function* withOneLineBreak(
  pieces: AsyncIterable<Buffer | string>,
): AsyncGenerator<string, void, undefined> {
  let breaks = 0;
  for await (const piece of pieces) {
    const text = piece.toString();
    const body = text.replace(/\n+$/, '');
    if (body !== '') {
      yield '\n'.repeat(breaks) + body;
      breaks = 0;
    }
    breaks += text.length - body.length;
  }
  yield '\n';
}
