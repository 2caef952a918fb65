import { diagnosticsFrom } from '../core/diagnostics-error.js';
import { type Diagnostic, formatMessage } from '../core/diagnostic.js';
import type { OpmateError } from '../core/errors.js';
import { quoteGo } from '../document/go-json.js';
import type { BlobOrigin } from './facts.js';

/**
 * A diagnostic about a part of a catalog. As long as it has an `origin`, its place is not known yet: `path` leads there
 * from the root of that blob, and `line`, where it is set, counts from the first line of it.
 */
export interface CatalogDiagnostic<Code extends string = string> extends Diagnostic {
  code: Code;
  package?: string | undefined;
  channel?: string | undefined;
  bundle?: string | undefined;
  origin?: BlobOrigin | undefined;
}

/** What a diagnostic of a catalog is about, and where that is. */
export type CatalogSubject = Pick<CatalogDiagnostic, 'package' | 'channel' | 'bundle' | 'origin' | 'path'>;

/** Returns the diagnostics of blobs that cannot be read. */
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

/** Returns the message of a finding of a catalog or of anything else, after the names that it does not quote itself: `package "p", bundle "b": problem`. */
export function formatCatalogMessage(diagnostic: Diagnostic): string {
  const message = formatMessage(diagnostic);
  const names = getSubjects(diagnostic)
    .filter(({ name }) => !message.includes(quoteGo(name)))
    .map(({ kind, name }) => `${kind} ${quoteGo(name)}`);
  return names.length === 0 ? message : `${names.join(', ')}: ${message}`;
}
