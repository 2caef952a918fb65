import { diagnosticsFrom } from '../core/diagnostics-error.js';
import { type Diagnostic, formatMessage } from '../core/diagnostic.js';
import type { OpmateError } from '../core/errors.js';
import { quoteGo } from '../core/go-json-quote.js';
import type { BlobOrigin } from './facts.js';

/**
 * A diagnostic about a part of a catalog. With `origin`, its place is still to be found: `path` and `line` are relative
 * to that blob.
 */
export interface CatalogDiagnostic<Code extends string = string> extends Diagnostic {
  code: Code;
  package?: string | undefined;
  channel?: string | undefined;
  bundle?: string | undefined;
  origin?: BlobOrigin | undefined;
}

/** Subject and place of a diagnostic of a catalog. */
export type CatalogSubject = Pick<CatalogDiagnostic, 'package' | 'channel' | 'bundle' | 'origin' | 'path'>;

/** Returns the diagnostics of unreadable blobs. */
export function diagnoseFaults(faults: readonly OpmateError[]): CatalogDiagnostic<'invalid'>[] {
  return faults
    .flatMap(diagnosticsFrom)
    .map((diagnostic) => ({ ...diagnostic, severity: 'error' as const, code: 'invalid' as const }));
}

/** Returns the package, channel and bundle that a diagnostic names, from the widest to the narrowest. */
export function getSubjects(diagnostic: Diagnostic): { kind: string; name: string }[] {
  return (['package', 'channel', 'bundle'] as const).flatMap((kind) => {
    const name = (diagnostic as CatalogDiagnostic)[kind];
    return name === undefined ? [] : [{ kind, name }];
  });
}

/** Returns the message of a diagnostic, preceded by the names that it does not quote: `package "p", bundle "b": problem`. */
export function formatCatalogMessage(diagnostic: Diagnostic): string {
  const message = formatMessage(diagnostic);
  const names = getSubjects(diagnostic)
    .filter(({ name }) => !message.includes(quoteGo(name)))
    .map(({ kind, name }) => `${kind} ${quoteGo(name)}`);
  return names.length === 0 ? message : `${names.join(', ')}: ${message}`;
}
