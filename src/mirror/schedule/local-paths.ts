import type { TextPosition } from '../../core/diagnostic.js';
import { ErrorList } from '../../core/diagnostics-error.js';
import { OpmateError } from '../../core/errors.js';
import { quoteGo } from '../../core/go-json-quote.js';
import type { ImageSetConfiguration } from '../image-set/image-set-config.js';

/** Throws OpmateError with all files and directories that an image set names: a pod has none of them. */
export function refuseLocalPaths({ file, operators, additionalImages, helm }: ImageSetConfiguration): void {
  const errors = new ErrorList();
  const refuse = (noun: string, path: string, { line, column }: TextPosition, hint: string): void =>
    errors.add(
      new OpmateError('UNSUPPORTED', `${noun} ${quoteGo(path)} is a local path, which no pod has`, {
        subject: `${file}:${line}:${column}`,
        hint,
      }),
    );
  for (const { catalog, reference, targetCatalogSourceTemplate: template, place } of operators) {
    if (reference.transport !== 'docker') refuse('catalog', catalog, place, push);
    if (template !== undefined) refuse('template', template, place, 'remove targetCatalogSourceTemplate');
  }
  for (const { name, reference, place } of additionalImages) {
    if (reference.transport !== 'docker') refuse('image', name, place, push);
  }
  for (const { path, place } of helm.local) {
    refuse('chart', path, place, 'push it to a registry, and list it below helm.repositories');
  }
  errors.throwIfAny();
}

const push = 'copy it to a registry, and name it there';
