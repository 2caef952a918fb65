import path from 'node:path';
import { pathToFileURL } from 'node:url';
import type { ReportItem, ReportRule } from './report.js';

/** Who reports. */
export interface ReportTool {
  name: string;
  version: string;
}

const levels = { error: 'error', warning: 'warning', notice: 'note' } as const;

/**
 * Findings as a SARIF log of one run, which code hosts show beside the changed lines. Paths stay relative where they
 * are. (Source: SARIF 2.1.0, OASIS.)
 */
export function encodeSarif(
  items: readonly ReportItem[],
  rules: readonly ReportRule[],
  tool: ReportTool,
): string {
  const indexes = new Map(rules.map(({ id }, index) => [id, index]));
  const log = {
    $schema: 'https://json.schemastore.org/sarif-2.1.0.json',
    version: '2.1.0',
    runs: [
      {
        tool: {
          driver: {
            name: tool.name,
            version: tool.version,
            rules: rules.map(({ id, level, summary }) => ({
              id,
              shortDescription: { text: summary },
              defaultConfiguration: { level: levels[level] },
            })),
          },
        },
        columnKind: 'utf16CodeUnits',
        results: items.map((item) => resultOf(item, indexes)),
      },
    ],
  };
  return `${JSON.stringify(log, null, 2)}\n`;
}

function resultOf(item: ReportItem, indexes: ReadonlyMap<string, number>): object {
  const { rule, level, message, hint, names, file, line } = item;
  const index = indexes.get(rule);
  const physicalLocation = file !== undefined && {
    physicalLocation: {
      artifactLocation: { uri: uriOf(file) },
      ...(line !== undefined && { region: { startLine: line } }),
    },
  };
  const logicalLocations = names.length > 0 && {
    logicalLocations: names.map(({ kind, name }, at) => ({
      name,
      fullyQualifiedName: names
        .slice(0, at + 1)
        .map((one) => one.name)
        .join('/'),
      kind,
    })),
  };
  const location = { ...physicalLocation, ...logicalLocations };
  return {
    ruleId: rule,
    ...(index !== undefined && { ruleIndex: index }),
    level: levels[level],
    message: { text: hint === undefined ? textOf(item, message) : `${textOf(item, message)}\nHint: ${hint}` },
    ...(Object.keys(location).length > 0 && { locations: [location] }),
  };
}

/** Viewers show the message without the names beside it. */
function textOf({ names }: ReportItem, message: string): string {
  const missing = names.filter(({ name }) => !message.includes(JSON.stringify(name)));
  if (missing.length === 0) return message;
  return `${missing.map(({ kind, name }) => `${kind} ${JSON.stringify(name)}`).join(', ')}: ${message}`;
}

function uriOf(file: string): string {
  if (path.isAbsolute(file)) return pathToFileURL(file).href;
  return file
    .replace(/^(\.\/)+/, '')
    .split('/')
    .map(encodeURIComponent)
    .join('/');
}
