import { argument, defineCommand } from '../command/declaration.js';
import { reportOutput } from '../command/shared-flags.js';
import { catalogForms } from '../../api/open-catalog.js';
import type { Catalog } from '../../catalog/catalog.js';
import { collectFacts } from '../../catalog/facts.js';
import { placeDiagnostics } from '../../catalog/locate.js';
import { formatPlace } from '../../core/diagnostic.js';
import { OpmateError, redact } from '../../core/errors.js';
import { quoteGo } from '../../document/go-json.js';
import type { JsonObject } from '../../document/json.js';
import {
  type CatalogDiagnostic,
  diagnoseFaults,
  formatCatalogMessage,
} from '../../model/catalog-diagnostic.js';
import { validateCatalog } from '../../graph/validate.js';
import { isDatabaseFile } from '../../sqlite/schema/database.js';
import { statIfPresent } from '../../files/file-status.js';
import { openSource } from '../../source/source.js';
import type { LogLevel } from '../../core/log.js';
import { exitCodes } from '../exit-codes.js';
import { levelOf } from '../logger.js';
import { writeAll } from '../output.js';
import { countMore, printable } from '../printable.js';
import { type Report, pickFields, writeReport } from '../reports/report.js';
import { useSession } from '../session.js';

/** What checking a catalog has found. */
interface Verdict {
  /** The message of `opm validate`; undefined when the catalog passes. */
  message: string | undefined;
  problems: CatalogDiagnostic[];
  warnings: CatalogDiagnostic[];
}

/**
 * `opmate validate`: every problem of a catalog. Without `-o` the findings go to stderr and stdout stays
 * empty; with it the verdict is data on stdout. Exit code 1 when the catalog is not valid, as `opm` has it.
 */
export const command = defineCommand({
  summary: 'check a catalog and report every problem',
  tool: 'opm',
  arguments: [argument('<directory>', `catalog: ${catalogForms}`)],
  flags: { output: reportOutput },
  examples: [
    ['Check a catalog directory', 'opmate validate ./catalog'],
    ['Annotate a pull request on GitHub', 'opmate validate ./catalog -o github'],
    ['Check the catalog in an image', 'opmate validate registry.example.com/demo/catalog:v1'],
  ],
  async run({ context, args: [directory], options }) {
    const { output: format } = options;
    return useSession(context, options, async (session) => {
      await checkDirectory(directory);
      const source = await openSource(directory, session);
      try {
        if (source.kind === 'bundle') {
          throw new OpmateError('UNSUPPORTED', `${directory}: is a bundle, not a catalog`, {
            hint: 'opmate render shows whether a bundle can be read',
          });
        }
        const verdict = await judge(source.catalog, session);
        session.logger.close();
        if (format !== undefined) await writeReport(context, toReport(verdict), format);
        else await writeAll(context.stderr, describeVerdict(verdict, levelOf(options)));
        return verdict.message === undefined ? exitCodes.done : exitCodes.failed;
      } finally {
        await source.close();
      }
    });
  },
});

/**
 * `opm` validates directories only; here an image or the file of a sqlite index will do as well, but a path
 * that does not exist will not.
 */
async function checkDirectory(reference: string): Promise<void> {
  const found = await statIfPresent(reference);
  if (found?.isDirectory() === true) return;
  if (found?.isFile() === true && (await isDatabaseFile(reference))) return;
  if (found !== undefined) {
    throw new OpmateError('UNSUPPORTED', `${quoteGo(reference)} is not a directory`, {
      hint: 'give the directory that holds the catalog',
    });
  }
  if (!/[:@]/.test(reference)) {
    throw new OpmateError('NOT_FOUND', `stat ${reference}: no such file or directory`);
  }
}

/** Checks a catalog as `opmate validate` does. Throws what reading throws that is no fault of the catalog. */
export async function judge(
  catalog: Catalog,
  options: { signal?: AbortSignal | undefined },
): Promise<Verdict> {
  const faults: OpmateError[] = [];
  const onFault = (fault: OpmateError): unknown => faults.push(fault);
  const facts = await collectFacts(catalog, { ...options, withoutManifests: false, onFault });
  if (faults.length > 0) {
    // What the unreadable parts hold is not known, so what the rest lacks cannot be told either.
    return { message: faults[0]?.message, problems: diagnoseFaults(faults), warnings: [] };
  }
  const report = validateCatalog(facts);
  return {
    message: report.passed ? undefined : report.message,
    problems: await placeDiagnostics(catalog, report.problems),
    warnings: await placeDiagnostics(catalog, report.warnings),
  };
}

/** How many findings are printed as text. */
const maxShown = 20;

/** A verdict as text for people; empty where there is nothing to tell. */
export function describeVerdict(verdict: Verdict, level: LogLevel = 'info'): string {
  const lines: string[] = [];
  if (verdict.message !== undefined) lines.push(verdict.message, '');
  const findings = [...verdict.problems, ...(level === 'error' ? [] : verdict.warnings)];
  for (const finding of findings.slice(0, maxShown)) lines.push(...describeFinding(finding));
  const more = findings.length - maxShown;
  if (more > 0) lines.push(`… and ${countMore(more, 'finding')}; opmate validate -o json shows all`);
  return lines.map((line) => `${printable(redact(line))}\n`).join('');
}

function describeFinding(finding: CatalogDiagnostic): string[] {
  const message = formatCatalogMessage(finding);
  const place = formatPlace(finding);
  const shown = place === undefined ? '' : `${place}: `;
  const lines = [`${shown}${finding.severity === 'warning' ? 'warning: ' : ''}${message}`];
  if (finding.hint !== undefined) lines.push(`  hint: ${finding.hint}`);
  return lines;
}

function toReport(verdict: Verdict): Report {
  return {
    command: 'opmate validate',
    diagnostics: [...verdict.problems, ...verdict.warnings],
    text: () => describeVerdict(verdict),
    value: () => toValue(verdict),
    escapeHtml: true,
  };
}

/** The shape is `schemas/validate-output.schema.json`. */
function toValue({ message, problems, warnings }: Verdict): JsonObject {
  const list = (findings: readonly CatalogDiagnostic[]): JsonObject[] =>
    findings.map((one) =>
      pickFields(one, ['message', 'package', 'channel', 'bundle', 'file', 'line', 'hint']),
    );
  return {
    passed: message === undefined,
    ...(message !== undefined && { error: { message: redact(message) }, problems: list(problems) }),
    ...(warnings.length > 0 && { warnings: list(warnings) }),
  };
}
