import path from 'node:path';
import { ErrorList } from '../../core/diagnostics-error.js';
import { OpmateError, throwFileError } from '../../core/errors.js';
import { quoteGo } from '../../document/go-json.js';
import type { JsonObject } from '../../document/json.js';
import { decodeFile, readDocument } from '../../document/document.js';
import { warnOfUnknown } from '../../document/field.js';
import { isWithin } from '../../core/text/paths.js';
import { type LinkOptions, requireWithin } from '../../files/directory-root.js';
import { readRegularFile } from '../../files/read-file.js';
import type { ImageSetLock } from '../lock/lock.js';

const maxTemplateBytes = 1024 * 1024;

/** Fields of a CatalogSource in addition to name, namespace, source type and image. */
export interface CatalogSourceTemplate {
  /** Text of the file. */
  text: string;
  labels: Record<string, string> | undefined;
  annotations: Record<string, string> | undefined;
  spec: JsonObject;
}

/**
 * Reads the templates of a configuration, by file as written there, relative to `directory`. Throws OpmateError with all
 * invalid templates; UNSAFE for a link that leaves the directory, unless `followLinks`.
 */
export async function readCatalogSourceTemplates(
  operators: readonly { targetCatalogSourceTemplate?: string | undefined }[],
  { directory, followLinks }: { directory: string } & LinkOptions,
): Promise<Map<string, CatalogSourceTemplate>> {
  const templates = new Map<string, CatalogSourceTemplate>();
  const errors = new ErrorList();
  for (const { targetCatalogSourceTemplate: file } of operators) {
    if (file === undefined || templates.has(file)) continue;
    await errors.try(async () => {
      const place = path.resolve(directory, file);
      const root = isWithin(directory, place) ? directory : path.dirname(place);
      await requireWithin(root, place, { label: file, followLinks });
      templates.set(file, parseTemplate(await readTemplateFile(place, file), file));
    });
  }
  errors.throwIfAny();
  return templates;
}

/**
 * Returns the templates of a lock, by file. Throws OpmateError with all invalid templates, including those that the lock
 * has no text of, and two of one file.
 */
export function readLockedTemplates(lock: ImageSetLock, subject: string): Map<string, CatalogSourceTemplate> {
  const templates = new Map<string, CatalogSourceTemplate>();
  const errors = new ErrorList();
  for (const { targetCatalogSourceTemplate: template } of lock.catalogs) {
    if (template === undefined) continue;
    const { file, text } = template;
    const name = `${subject}: template ${quoteGo(file)}`;
    const known = templates.get(file);
    if (text === undefined) {
      const hint =
        'specify the configuration with options.config to read its templates, or mirror to disk again';
      errors.add(new OpmateError('INVALID', 'only its path is in the lock', { subject: name, hint }));
    } else if (known === undefined) {
      try {
        templates.set(file, parseTemplate(text, name));
      } catch (error) {
        if (!(error instanceof OpmateError)) throw error;
        errors.add(error);
      }
    } else if (known.text !== text)
      errors.add(new OpmateError('INVALID', 'duplicate, with other content', { subject: name }));
  }
  errors.throwIfAny();
  return templates;
}

/** Throws OpmateError INVALID with all templates that differ from those of a lock. */
export function requireSameTemplates(
  lock: ImageSetLock,
  templates: ReadonlyMap<string, CatalogSourceTemplate>,
): void {
  const changed = new Set<string>();
  for (const { targetCatalogSourceTemplate: template } of lock.catalogs) {
    const now = template && templates.get(template.file)?.text;
    if (now !== undefined && template?.text !== undefined && now !== template.text)
      changed.add(template.file);
  }
  const errors = new ErrorList();
  for (const file of changed) {
    const hint = 'mirror without mirror.locked to create a new lock';
    errors.add(new OpmateError('INVALID', 'differs from the template in the lock', { about: file, hint }));
  }
  errors.throwIfAny();
}

async function readTemplateFile(place: string, file: string): Promise<string> {
  const reading = readRegularFile(place, maxTemplateBytes, { name: file });
  return decodeFile(await reading.catch(throwFileError(file, { file })), file);
}

function parseTemplate(text: string, file: string): CatalogSourceTemplate {
  const { root, diagnostics } = readDocument(text, file, { maxLength: maxTemplateBytes, noun: 'template' });
  const fields = root.object(['apiVersion', 'kind', 'metadata', 'spec', 'status'], warnOfUnknown);
  fields?.apiVersion.constant('operators.coreos.com/v1alpha1');
  fields?.kind.constant('CatalogSource');
  const spec = fields?.spec.isPresent ? fields.spec.jsonObject() : undefined;
  fields?.spec.field('sourceType').optionalChoice(['grpc']);
  const configMap = fields?.spec.field('configMap');
  if (configMap?.isSet) configMap.fail('not in a mirrored catalog, which is an image', { hint: 'remove it' });
  const metadata = fields?.metadata.optionalObject(['labels', 'annotations'], { unknown: 'ignore' });
  const [labels, annotations] = [metadata?.labels, metadata?.annotations].map((field) =>
    field?.optionalTexts(),
  );
  diagnostics.throwIfErrors();
  return { text, labels, annotations, spec: spec ?? {} };
}
