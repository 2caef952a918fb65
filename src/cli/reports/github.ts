import type { Diagnostic } from '../../core/diagnostic.js';
import { formatCatalogMessage } from '../../model/catalog-diagnostic.js';
import { printable } from '../printable.js';

/**
 * Returns findings as workflow commands of GitHub Actions, one a line, which it shows as annotations beside the changed
 * lines. (Source: workflow commands for GitHub Actions; actions/toolkit, command.ts.)
 */
export function encodeGitHub(diagnostics: readonly Diagnostic[]): string {
  return diagnostics.map((diagnostic) => `${encodeCommand(diagnostic)}\n`).join('');
}

function encodeCommand(diagnostic: Diagnostic): string {
  const { severity, code, file, line, column, hint } = diagnostic;
  const properties = Object.entries({ file, line, col: column, title: code })
    .filter(([, value]) => value !== undefined)
    .map(([key, value]) => `${key}=${escapeProperty(String(value))}`);
  const message = formatCatalogMessage(diagnostic);
  const text = hint === undefined ? message : `${message}\nhint: ${hint}`;
  return `::${severity} ${properties.join(',')}::${escapeData(text)}`;
}

function escapeData(text: string): string {
  return printable(text).replaceAll('%', '%25').replaceAll('\r', '%0D').replaceAll('\n', '%0A');
}

function escapeProperty(text: string): string {
  return escapeData(text).replaceAll(':', '%3A').replaceAll(',', '%2C');
}
