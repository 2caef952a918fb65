import { type Diagnostic, encodeDiagnostic, formatLocation } from '../../core/diagnostic.js';
import { redactUrls } from '../../core/errors.js';
import { severityLevels } from '../../core/log.js';
import { formatCatalogMessage } from '../../model/catalog-diagnostic.js';
import { withFlags } from './option-words.js';

/** Returns an object as a line of JSON without a line feed, and without the credentials of URLs in its texts. */
export function encodeJsonLine(fields: object): string {
  return JSON.stringify(fields, (_key, value: unknown) =>
    typeof value === 'string' ? redactUrls(withFlags(value)) : value,
  );
}

/** Returns a diagnostic as fields of a JSON line, those of an error. */
export function encodeLine(diagnostic: Diagnostic): object {
  const { severity, code, file, line, column, hint } = diagnostic;
  const place = formatLocation(diagnostic);
  const message = formatCatalogMessage(diagnostic);
  return {
    level: severityLevels[severity],
    message: place === undefined ? message : `${place}: ${message}`,
    code,
    file,
    line,
    column,
    hint,
    diagnostics: [encodeDiagnostic(diagnostic)],
  };
}
