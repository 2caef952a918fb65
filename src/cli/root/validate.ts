import type { Catalog } from '../../catalog/catalog.js';
import { collectFacts } from '../../catalog/facts.js';
import { findLines } from '../../catalog/locate.js';
import { OpmateError, UsageError, redact } from '../../core/errors.js';
import { encodeGoJson, quoteGo } from '../../document/go-json.js';
import type { JsonObject } from '../../document/json.js';
import { encodeYaml } from '../../document/yaml.js';
import type { Problem, WarningKind } from '../../model/facts.js';
import { validateCatalog } from '../../graph/validate.js';
import { isDatabaseFile } from '../../sqlite/schema/database.js';
import { statIfExists } from '../../files/stat.js';
import { openSource } from '../../source/source.js';
import type { CommandContext, GlobalOptions } from '../context.js';
import { exitCodes } from '../exit-codes.js';
import { writeAll } from '../output.js';
import { countMore, printable } from '../printable.js';
import { useSession } from '../session.js';

interface ValidateCommandOptions extends GlobalOptions {
  output?: string;
}

/** A problem with its place in the file, as it is printed. */
interface Finding {
  kind?: WarningKind | undefined;
  message: string;
  package?: string | undefined;
  channel?: string | undefined;
  bundle?: string | undefined;
  file?: string | undefined;
  line?: number | undefined;
  hint?: string | undefined;
}

/** What checking a catalog has found. */
export interface Verdict {
  /** The message of `opm validate`; undefined when the catalog passes. */
  message: string | undefined;
  problems: Finding[];
  warnings: Finding[];
}

const outputs: ReadonlySet<string> = new Set(['text', 'json', 'yaml']);

/**
 * `opmate validate`: every problem of a catalog. Without `-o` the findings go to stderr and stdout stays
 * empty; with it the verdict is data on stdout. Exit code 1 when the catalog is not valid, as `opm` has it.
 */
export async function validate(
  context: CommandContext,
  directory: string,
  options: ValidateCommandOptions,
): Promise<number> {
  const { output } = options;
  if (output !== undefined && !outputs.has(output)) {
    throw new UsageError(`invalid --output value ${quoteGo(output)}, expected (text|json|yaml)`);
  }
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
      if (output === 'json' || output === 'yaml')
        await writeAll(context.stdout, encodeVerdict(verdict, output));
      else if (output === 'text') await writeAll(context.stdout, describeVerdict(verdict));
      else if (verdict.message !== undefined || verdict.warnings.length > 0) {
        await writeAll(context.stderr, describeVerdict(verdict));
      }
      return verdict.message === undefined ? exitCodes.done : exitCodes.failed;
    } finally {
      await source.close();
    }
  });
}

/**
 * `opm` validates directories only; here an image or the file of a sqlite index will do as well, but a path
 * that does not exist will not.
 */
async function checkDirectory(reference: string): Promise<void> {
  const found = await statIfExists(reference);
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
    const problems = faults.map(({ message, file, line, hint }) => ({ message, file, line, hint }));
    return { message: problems[0]?.message, problems, warnings: [] };
  }
  const report = validateCatalog(facts);
  return {
    message: report.passed ? undefined : report.message,
    problems: await place(catalog, report.problems),
    warnings: await place(catalog, report.warnings ?? []),
  };
}

async function place(catalog: Catalog, problems: readonly Problem[]): Promise<Finding[]> {
  const lines = await findLines(catalog, problems);
  return problems.map(({ kind, message, package: packageName, channel, bundle, hint, origin }, index) => {
    const place = { file: origin?.file, line: lines[index] };
    return { kind, message, package: packageName, channel, bundle, ...place, hint };
  });
}

/** How many findings are printed as text. */
const maxShown = 20;

/** A verdict as text for people; empty where there is nothing to tell. */
export function describeVerdict(verdict: Verdict): string {
  const lines: string[] = [];
  if (verdict.message !== undefined) lines.push(verdict.message, '');
  const findings = [
    ...verdict.problems.map((finding) => ({ finding, prefix: '' })),
    ...verdict.warnings.map((finding) => ({ finding, prefix: 'warning: ' })),
  ];
  for (const { finding, prefix } of findings.slice(0, maxShown))
    lines.push(...describeFinding(finding, prefix));
  const more = findings.length - maxShown;
  if (more > 0) lines.push(`… and ${countMore(more, 'finding')}; opmate validate -o json shows all`);
  return lines.map((line) => `${printable(redact(line))}\n`).join('');
}

function describeFinding(finding: Finding, prefix: string): string[] {
  const place =
    finding.file === undefined
      ? ''
      : `${finding.file}:${finding.line === undefined ? '' : `${finding.line}:`} `;
  // What cannot be read at all names its file itself.
  const shown = finding.message.startsWith(place) ? '' : place;
  const lines = [`${shown}${prefix}${subjectOf(finding)}${finding.message}`];
  if (finding.hint !== undefined) lines.push(`  hint: ${finding.hint}`);
  return lines;
}

/** The names that the message itself does not say. */
function subjectOf(finding: Finding): string {
  const names = (['package', 'channel', 'bundle'] as const)
    .filter((kind) => finding[kind] !== undefined && !finding.message.includes(quoteGo(finding[kind])))
    .map((kind) => `${kind} ${quoteGo(finding[kind] as string)}`);
  return names.length === 0 ? '' : `${names.join(', ')}: `;
}

/** The shape is `schemas/validate-output.schema.json`. */
function encodeVerdict(verdict: Verdict, format: 'json' | 'yaml'): string {
  const value: JsonObject = { passed: verdict.message === undefined };
  if (verdict.message !== undefined) {
    value['error'] = { message: redact(verdict.message) };
    value['problems'] = verdict.problems.map(findingValue);
  }
  if (verdict.warnings.length > 0) value['warnings'] = verdict.warnings.map(findingValue);
  return format === 'json'
    ? `${encodeGoJson(value, { indent: 2, escapeHtml: true })}\n`
    : `${encodeYaml(value)}\n`;
}

function findingValue(finding: Finding): JsonObject {
  const value: JsonObject = {};
  for (const key of ['message', 'package', 'channel', 'bundle', 'file', 'line', 'hint'] as const) {
    const field = finding[key];
    if (field !== undefined) value[key] = typeof field === 'string' ? redact(field) : field;
  }
  return value;
}
