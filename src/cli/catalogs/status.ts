import { findCondition, readCatalogStatuses } from '../../api/served/catalog-statuses.js';
import { type Diagnostic, createFault } from '../../core/diagnostic.js';
import { formatFindingText } from '../reports/option-words.js';
import { OpmateError } from '../../core/errors.js';
import { type JsonObject, isJsonObject } from '../../document/json.js';
import { getObject, getObjects, getText } from '../../document/json-fields.js';
import { argument, defineCommand } from '../command/declaration.js';
import { flag, grouped, text } from '../command/flags.js';
import { outputFormat } from '../command/shared-flags.js';
import { createLogger } from '../logger.js';
import { encodeData } from '../reports/encode-data.js';
import { writeAll } from '../output.js';
import { count, printableLine } from '../printable.js';
import { useSession } from '../session.js';
import { formatTable } from '../table.js';
import { findServed, serverFlags } from './server-state.js';

/** `opmate catalogs status`. */
export const command = defineCommand({
  summary: 'print the status of catalogs as ClusterCatalogs',
  arguments: [argument('[name...]', 'catalogs (default: all)')],
  flags: {
    output: outputFormat(['table', 'json', 'yaml'], { default: 'table' }),
    ...grouped('Output', {
      failed: flag('print only catalogs that are not served in their latest state'),
      externalUrl: text('url', 'base URL of catalogs (default: as the server was started)', {
        excludes: ['url'],
      }),
    }),
    ...serverFlags,
  },
  examples: {
    'Show the catalogs of the server on this machine': 'opmate catalogs status',
    'Show failed catalogs, each problem with file and line': 'opmate catalogs status --failed',
    'Show one catalog of a server as YAML': 'opmate catalogs status demo --url http://127.0.0.1:8080 -o yaml',
  },
  async run({ context, args: [names], options }) {
    const all = await useSession(context, options, async (session) =>
      readCatalogStatuses(await findServed(context, options), session),
    );
    const chosen = names.length === 0 ? all : names.map((name) => requireNamed(all, name));
    const failed = chosen.filter((status) => findTrouble(status) !== undefined);
    const shown = options.failed ? failed : chosen;
    await writeAll(context.stdout, formatStatuses(shown, options.output), context.signal);
    if (options.output === 'table' && (failed.length > 0 || options.failed || chosen.length > maxUncounted)) {
      const more = failed.length === 0 || options.failed ? '' : '; list them with --failed';
      const counts = `${count(chosen.length, 'catalog')}, ${failed.length.toLocaleString('en')} failed`;
      createLogger(context, options).log('info', `${counts}${more}`);
    }
    return 0;
  },
});

function formatStatuses(statuses: readonly JsonObject[], output: 'table' | 'json' | 'yaml'): string {
  if (output === 'table') return table(statuses);
  const list = { apiVersion: 'v1', kind: 'List', items: [...statuses] };
  return encodeData(list, output, { indent: 4 });
}

function table(statuses: readonly JsonObject[]): string {
  const header = ['NAME', 'SERVING', 'PROGRESSING', 'LAST UNPACKED', 'CONTENT', 'RESOLVED', 'MESSAGE'];
  const rows = statuses.map((value) => [
    getObjectName(value),
    shownCondition(findCondition(value, 'Serving')),
    shownCondition(findCondition(value, 'Progressing')),
    getText(value, 'status', 'lastUnpacked') || '-',
    getText(value, 'status', 'contentHash').slice(0, 19) || '-',
    findResolvedRef(value) ?? '-',
    findTrouble(value) ?? '-',
  ]);
  const lists = statuses.map((status) => formatProblems(status)).filter((list) => list !== '');
  return [formatTable(header, rows), ...lists].join('\n');
}

/** Maximum number of catalogs in a table without a total. */
const maxUncounted = 20;
const maxMessage = 200;

/** Returns the problems of a catalog with several, one per line; else an empty text. */
function formatProblems(status: JsonObject): string {
  const problems = readProblems(status);
  if (problems.length < 2) return '';
  const lines = problems.map((problem) => `  ${printableLine(formatFindingText(problem))}\n`);
  return `${getObjectName(status)}: ${count(problems.length, 'problem')}\n${lines.join('')}`;
}

function readProblems(status: JsonObject): Diagnostic[] {
  return getObjects(status, 'status', 'problems').map((problem) => {
    const { line, column } = problem;
    return createFault('', getText(problem, 'message'), {
      file: getText(problem, 'file') || undefined,
      line: typeof line === 'number' ? line : undefined,
      column: typeof column === 'number' ? column : undefined,
      hint: getText(problem, 'hint') || undefined,
    });
  });
}

/** Returns the reason why a catalog is not served in its latest state, if any. */
function findTrouble(status: JsonObject): string | undefined {
  const progressing = findCondition(status, 'Progressing');
  const serving = findCondition(status, 'Serving');
  const isTroubled = ['Retrying', 'Blocked'].includes(getText(progressing ?? {}, 'reason'));
  const troubled = isTroubled ? progressing : serving?.['status'] === 'False' ? serving : undefined;
  if (troubled === undefined) return undefined;
  const [first = '', ...others] = getText(troubled, 'message').split('\n');
  const message = first.replace(/\s+/g, ' ');
  const shown = message.length > maxMessage ? `${message.slice(0, maxMessage)}…` : message;
  return others.length === 0 ? shown : `${shown} (and ${others.length} more)`;
}

function shownCondition(condition: JsonObject | undefined): string {
  return condition === undefined ? '-' : `${getText(condition, 'status')} (${getText(condition, 'reason')})`;
}

function findResolvedRef(status: JsonObject): string | undefined {
  const member = Object.values(getObject(status, 'status', 'resolvedSource')).find(isJsonObject);
  return member && getText(member, 'ref');
}

function getObjectName(value: JsonObject): string {
  return getText(value, 'metadata', 'name');
}

function requireNamed(all: readonly JsonObject[], name: string): JsonObject {
  const status = all.find((value) => getObjectName(value) === name);
  if (status !== undefined) return status;
  throw new OpmateError('NOT_FOUND', `${name}: no such catalog`, {
    hint: all.length === 0 ? undefined : `use one of ${all.map(getObjectName).join(', ')}`,
  });
}
