import path from 'node:path';
import { pathToFileURL } from 'node:url';
import type { Diagnostic, Severity } from '../../core/diagnostic.js';
import { formatCatalogMessage, getSubjects } from '../../model/catalog-diagnostic.js';

/** A kind of finding. */
export interface ReportRule {
  id: string;
  level: Severity;
  summary: string;
}

const levels = { error: 'error', warning: 'warning', notice: 'note' } as const;

/** Returns findings as a SARIF log of one run; relative paths stay relative. (Source: SARIF 2.1.0, OASIS.) */
export function encodeSarif(
  items: readonly Diagnostic[],
  rules: readonly ReportRule[],
  tool: { name: string; version: string },
): string {
  const indexes = new Map(rules.map(({ id }, index) => [id, index]));
  const log = {
    $schema: 'https://json.schemastore.org/sarif-2.1.0.json',
    version: '2.1.0',
    runs: [
      {
        tool: {
          driver: {
            ...tool,
            rules: rules.map(({ id, level, summary }) => ({
              id,
              shortDescription: { text: summary },
              defaultConfiguration: { level: levels[level] },
            })),
          },
        },
        columnKind: 'utf16CodeUnits',
        results: items.map((item) => toResult(item, indexes)),
      },
    ],
  };
  return `${JSON.stringify(log, null, 2)}\n`;
}

function toResult(item: Diagnostic, indexes: ReadonlyMap<string, number>): object {
  const { code, severity, hint, file, line, column } = item;
  const names = getSubjects(item);
  const message = formatCatalogMessage(item);
  const index = indexes.get(code);
  const physicalLocation = file !== undefined && {
    physicalLocation: {
      artifactLocation: { uri: toUri(file) },
      ...(line !== undefined && {
        region: { startLine: line, ...(column !== undefined && { startColumn: column }) },
      }),
    },
  };
  const logicalLocations = names.length > 0 && {
    logicalLocations: names.map(({ kind, name }, position) => ({
      name,
      fullyQualifiedName: names
        .slice(0, position + 1)
        .map((entry) => entry.name)
        .join('/'),
      kind,
    })),
  };
  const location = { ...physicalLocation, ...logicalLocations };
  return {
    ruleId: code,
    ...(index !== undefined && { ruleIndex: index }),
    level: levels[severity],
    message: { text: hint === undefined ? message : `${message}\nHint: ${hint}` },
    ...(Object.keys(location).length > 0 && { locations: [location] }),
  };
}

function toUri(file: string): string {
  if (path.isAbsolute(file)) return pathToFileURL(file).href;
  return file
    .replace(/^(\.\/)+/, '')
    .split('/')
    .map(encodeURIComponent)
    .join('/');
}
