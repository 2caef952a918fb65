import { readdir } from 'node:fs/promises';
import path from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { OpmateError, UsageError, messageOf, throwIfCancelled } from '../../core/errors.js';
import { encodeGoJson, parseGoJson, quoteGo } from '../../document/go-json.js';
import { type JsonObject, type JsonValue, isJsonObject } from '../../document/json.js';
import { encodeYaml } from '../../document/yaml.js';
import { CatalogRecords, contentsOf, readServerUrl } from '../../serve/catalogs/catalog-records.js';
import { catalogStatus } from '../../serve/catalogs/catalog-status.js';
import type { CommandContext } from '../context.js';
import type { GlobalOptions } from '../command/global-flags.js';
import { writeAll } from '../output.js';
import { printableLine } from '../printable.js';
import { formatTable } from '../table.js';
import { storageOf, storagesOf } from './catalogs.js';

export interface CatalogsOptions extends GlobalOptions {
  /** What `serve --catalogs` writes to. */
  storage?: string;
  /** The directory of manifests, to find that by. */
  catalogs?: string;
  /** A server, instead. */
  url?: string;
  externalUrl?: string;
  output?: string;
}

interface WaitOptions extends CatalogsOptions {
  for?: string;
  timeout?: number;
}

/** `opmate catalogs status`: how the catalogs of a server fare. */
export async function catalogsStatus(
  context: CommandContext,
  names: readonly string[],
  options: CatalogsOptions,
): Promise<number> {
  const { output = 'table' } = options;
  if (!['json', 'yaml', 'table'].includes(output)) {
    throw new UsageError(`invalid --output value ${quoteGo(output)}, expected (json|yaml|table)`);
  }
  const all = await readStatuses(context, options);
  const chosen = names.length === 0 ? all : names.map((name) => requireNamed(all, name));
  await writeAll(context.stdout, formatStatuses(chosen, output), context.signal);
  return 0;
}

/** `opmate catalogs wait`: ends with 0 as soon as the catalogs, all of them unless named, have the condition. */
export async function catalogsWait(
  context: CommandContext,
  names: readonly string[],
  options: WaitOptions,
): Promise<number> {
  const [wanted, state = 'True'] = (options.for ?? 'Serving').split('=');
  if (!['Serving', 'Progressing'].includes(wanted ?? '') || !['True', 'False'].includes(state)) {
    throw new UsageError(`--for ${options.for}: not a condition`, { hint: 'write Serving or Progressing' });
  }
  const until = context.now().getTime() + (options.timeout ?? 60_000);
  for (;;) {
    throwIfCancelled(context.signal);
    let missing: string;
    try {
      const all = await readStatuses(context, options);
      const waited = names.length === 0 ? all.map(nameOf) : names;
      const left = waited.filter((name) => {
        const found = all.find((one) => nameOf(one) === name);
        return found === undefined || conditionOf(found, wanted as string)?.['status'] !== state;
      });
      if (waited.length > 0 && left.length === 0) return 0;
      missing = left.length === 0 ? 'there are no catalogs' : `${left.join(', ')}: not ${wanted}=${state}`;
    } catch (error) {
      // A server that has not begun yet is what one waits for.
      if (!(error instanceof OpmateError) || error.code === 'USAGE') throw error;
      missing = messageOf(error);
    }
    if (context.now().getTime() >= until) {
      throw new OpmateError('NOT_FOUND', `${missing} within the time`, {
        hint: 'see opmate catalogs status for the reason; --timeout sets the time',
      });
    }
    await sleep(200, undefined, { signal: context.signal }).catch(() => undefined);
  }
}

function lineOf({ catalog, name }: { catalog: string; name: string }): string {
  return printableLine(`${catalog}/${name}`);
}

/** `opmate catalogs packages`: which packages the catalogs have, each as CATALOG/PACKAGE. */
export async function catalogsPackages(
  context: CommandContext,
  name: string | undefined,
  options: CatalogsOptions & { catalog?: string; selector?: string },
): Promise<number> {
  const { catalog, selector } = options;
  const found =
    options.url === undefined
      ? await packagesStored(context, options)
      : await packagesServed(context, options.url);
  const labels = parseSelector(selector);
  const [qualifier, plain] = name?.includes('/') === true ? name.split('/', 2) : [undefined, name];
  const chosen = found
    .filter((one) => (catalog ?? one.catalog) === one.catalog && (qualifier ?? one.catalog) === one.catalog)
    .filter((one) => (plain ?? one.name) === one.name)
    .filter((one) =>
      labels.every(([key, value]) => Object.hasOwn(one.labels, key) && one.labels[key] === value),
    );
  if (plain !== undefined) {
    if (chosen.length === 0) throw new OpmateError('NOT_FOUND', `${name}: no catalog has such a package`);
    const most = Math.max(...chosen.map(({ priority }) => priority));
    const best = chosen.filter(({ priority }) => priority === most);
    if (best.length > 1) {
      const where = best.map((one) => `${one.catalog}/${one.name}`).join(', ');
      throw new OpmateError('INVALID', `${plain}: several catalogs of the same priority have it: ${where}`, {
        hint: 'name the catalog as in CATALOG/PACKAGE, or choose with --catalog or --selector',
      });
    }
    await writeAll(context.stdout, `${best.map(lineOf).join('\n')}\n`);
    return 0;
  }
  const lines = chosen.map(lineOf);
  await writeAll(context.stdout, lines.length === 0 ? '' : `${lines.join('\n')}\n`, context.signal);
  return 0;
}

interface FoundPackage {
  catalog: string;
  name: string;
  labels: Readonly<Record<string, string>>;
  priority: number;
}

async function packagesStored(context: CommandContext, options: CatalogsOptions): Promise<FoundPackage[]> {
  const storage = await findStorage(context, options);
  const { openContent } = await import('../../serve/catalogs/content-store.js');
  const found: FoundPackage[] = [];
  for (const { name, labels, priority, contentHash } of await new CatalogRecords(storage).list()) {
    throwIfCancelled(context.signal);
    if (contentHash === undefined) continue;
    const content = await openContent(contentHash, { directory: contentsOf(storage) });
    if (content === undefined) continue;
    for (const one of content.packages) found.push({ catalog: name, name: one, labels, priority });
    await content.close();
  }
  return found;
}

async function packagesServed(context: CommandContext, url: string): Promise<FoundPackage[]> {
  const root = url.replace(/\/+$/, '').replace(/\/catalogs$/, '');
  const found: FoundPackage[] = [];
  for (const one of await listing(context, root)) {
    const name = textAt(one, 'name');
    const text = await fetchText(context, `${root}/catalogs/${name}/api/v1/metas?schema=olm.package`);
    for (const line of text.split('\n').filter((line) => line !== '')) {
      const value = parseGoJson(line);
      if (!isJsonObject(value)) continue;
      found.push({
        catalog: name,
        name: textAt(value, 'name'),
        labels: labelsAt(one),
        priority: typeof one['priority'] === 'number' ? one['priority'] : 0,
      });
    }
  }
  return found.sort((a, b) =>
    a.catalog < b.catalog ? -1 : a.catalog > b.catalog ? 1 : a.name < b.name ? -1 : 1,
  );
}

/** `key=value,key=value`. Throws UsageError. */
function parseSelector(text: string | undefined): [string, string][] {
  return (text ?? '')
    .split(',')
    .filter((part) => part.trim() !== '')
    .map((part) => {
      const [, key, value] = /^\s*([^=!\s]+)\s*={1,2}\s*([^=\s]*)\s*$/.exec(part) ?? [];
      if (key !== undefined && value !== undefined) return [key, value];
      throw new UsageError(`--selector ${part}: not of the form KEY=VALUE`);
    });
}

/** The storage directory of the server that is meant; of the only one where none is named. */
async function findStorage(context: CommandContext, options: CatalogsOptions): Promise<string> {
  const { storage, catalogs } = options;
  if (storage !== undefined || catalogs !== undefined) {
    return storageOf(context, { storage, catalogs: catalogs ?? '' });
  }
  const root = storagesOf(context);
  const names = await readdir(root).catch(() => []);
  const [only, ...more] = names.filter((name) => /^[0-9a-f]{16}$/.test(name));
  if (only !== undefined && more.length === 0) return path.join(root, only);
  if (only === undefined) {
    throw new OpmateError('NOT_FOUND', `${root}: no server keeps catalogs here`, {
      hint: 'start opmate serve --catalogs DIR, or name its --storage or --url',
    });
  }
  throw new UsageError('there have been several servers of catalogs here', {
    hint: 'say which one with --catalogs, --storage or --url',
  });
}

async function readStatuses(context: CommandContext, options: CatalogsOptions): Promise<JsonObject[]> {
  if (options.url !== undefined && options.storage !== undefined) {
    throw new UsageError('--url and --storage exclude each other');
  }
  if (options.url !== undefined) return statusesOfServer(context, options.url);
  const storage = await findStorage(context, options);
  const url = options.externalUrl ?? (await readServerUrl(storage));
  if (url === undefined) {
    throw new OpmateError('NOT_FOUND', `${storage}: no server keeps catalogs here`, {
      hint: 'start opmate serve --catalogs DIR, or name its --storage or --url',
    });
  }
  const records = await new CatalogRecords(storage).list();
  return records.map((record) => catalogStatus(record, url.replace(/\/+$/, '')) as JsonObject);
}

/** What a server tells of its catalogs: of those that it serves at least. */
async function statusesOfServer(context: CommandContext, url: string): Promise<JsonObject[]> {
  const root = url.replace(/\/+$/, '').replace(/\/catalogs$/, '');
  const statuses = await statusesOf(context, root);
  if (statuses !== undefined) return statuses;
  return (await listing(context, root)).map((one) => {
    const changedAt = `${textAt(one, 'changedAt').slice(0, 19)}Z`;
    const urls = isJsonObject(one['urls'] ?? null) ? (one['urls'] as JsonObject) : {};
    const message = 'the catalog is served';
    return {
      apiVersion: 'olm.operatorframework.io/v1',
      kind: 'ClusterCatalog',
      metadata: { name: textAt(one, 'name'), labels: labelsAt(one) },
      spec: { availabilityMode: 'Available', priority: one['priority'] ?? 0 },
      status: {
        conditions: [
          { type: 'Serving', status: 'True', reason: 'Available', message, lastTransitionTime: changedAt },
        ],
        urls: { base: textAt(urls, 'base') },
        contentURL: textAt(urls, 'all'),
        contentHash: textAt(one, 'hash'),
        lastUnpacked: changedAt,
      },
    };
  });
}

/** The statuses that `serve --catalogs` has; undefined where the server serves without them. */
async function statusesOf(context: CommandContext, root: string): Promise<JsonObject[] | undefined> {
  const url = `${root}/api/v1/catalogs`;
  const text = await fetchText(context, url, true);
  if (text === undefined) return undefined;
  const value = parseJson(text, url);
  const items = isJsonObject(value) ? value['items'] : undefined;
  const isStatus = (one: JsonValue): one is JsonObject =>
    isJsonObject(one) && isJsonObject(one['metadata'] ?? null) && isJsonObject(one['status'] ?? null);
  return Array.isArray(items) ? items.filter(isStatus) : undefined;
}

async function listing(context: CommandContext, root: string): Promise<JsonObject[]> {
  const url = `${root}/catalogs`;
  const value = parseJson(await fetchText(context, url), url);
  const catalogs = isJsonObject(value) ? value['catalogs'] : undefined;
  if (!Array.isArray(catalogs)) {
    throw new OpmateError('INVALID', `${url}: no list of catalogs`, {
      hint: 'name the server of opmate serve',
    });
  }
  return catalogs.filter((one): one is JsonObject => isJsonObject(one));
}

function parseJson(text: string, subject: string): JsonValue {
  try {
    return parseGoJson(text);
  } catch (error) {
    throw new OpmateError('SYNTAX', `${subject}: ${messageOf(error)}`, { cause: error });
  }
}

const maxAnswerBytes = 64 * 1024 * 1024;

async function fetchText(context: CommandContext, url: string): Promise<string>;
async function fetchText(
  context: CommandContext,
  url: string,
  mayBeAbsent: true,
): Promise<string | undefined>;
async function fetchText(
  context: CommandContext,
  url: string,
  mayBeAbsent = false,
): Promise<string | undefined> {
  if (!URL.canParse(url) || !/^https?:/.test(url))
    throw new UsageError(`--url ${url}: not an http or https URL`);
  const signal = AbortSignal.any([context.signal, AbortSignal.timeout(30_000)]);
  try {
    const answer = await fetch(url, { signal });
    if (answer.status === 404 && mayBeAbsent) return undefined;
    if (!answer.ok) throw new OpmateError('NETWORK', `${url}: the server answered ${answer.status}`);
    const chunks: Uint8Array[] = [];
    let size = 0;
    for await (const chunk of answer.body ?? []) {
      size += (chunk as Uint8Array).length;
      if (size > maxAnswerBytes)
        throw new OpmateError('LIMIT', `${url}: answers more than ${maxAnswerBytes} bytes`);
      chunks.push(chunk as Uint8Array);
    }
    return Buffer.concat(chunks).toString();
  } catch (error) {
    throwIfCancelled(context.signal);
    if (error instanceof OpmateError) throw error;
    const cause = error instanceof Error && error.cause !== undefined ? error.cause : error;
    throw new OpmateError('NETWORK', `${url}: ${messageOf(cause)}`, { cause: error });
  }
}

function formatStatuses(statuses: readonly JsonObject[], output: string): string {
  if (output === 'table') return table(statuses);
  const list = { apiVersion: 'v1', kind: 'List', items: [...statuses] };
  return output === 'yaml' ? encodeYaml(list) : `${encodeGoJson(list, { indent: 4 })}\n`;
}

function table(statuses: readonly JsonObject[]): string {
  const header = ['NAME', 'SERVING', 'PROGRESSING', 'LAST UNPACKED', 'CONTENT', 'RESOLVED', 'MESSAGE'];
  const rows = statuses.map((one) => {
    const { status } = one;
    const { lastUnpacked, contentHash, resolvedSource } = status as JsonObject;
    return [
      nameOf(one),
      shownCondition(conditionOf(one, 'Serving')),
      shownCondition(conditionOf(one, 'Progressing')),
      typeof lastUnpacked === 'string' ? lastUnpacked : '-',
      typeof contentHash === 'string' ? contentHash.slice(0, 19) : '-',
      resolvedRef(resolvedSource) ?? '-',
      troubleOf(one) ?? '-',
    ];
  });
  return formatTable(header, rows);
}

const maxMessage = 200;

/** Why a catalog is not as it should be; undefined where it is. */
function troubleOf(status: JsonObject): string | undefined {
  const progressing = conditionOf(status, 'Progressing');
  const serving = conditionOf(status, 'Serving');
  const isTroubled = ['Retrying', 'Blocked'].includes(textAt(progressing ?? {}, 'reason'));
  const troubled = isTroubled ? progressing : serving?.['status'] === 'False' ? serving : undefined;
  if (troubled === undefined) return undefined;
  const text = textAt(troubled, 'message').replace(/\s+/g, ' ');
  return text.length > maxMessage ? `${text.slice(0, maxMessage)}…` : text;
}

function shownCondition(condition: JsonObject | undefined): string {
  return condition === undefined ? '-' : `${textAt(condition, 'status')} (${textAt(condition, 'reason')})`;
}

function resolvedRef(source: JsonValue | undefined): string | undefined {
  if (!isJsonObject(source ?? null)) return undefined;
  const member = Object.values(source as JsonObject).find((value) => isJsonObject(value));
  return isJsonObject(member ?? null) ? textAt(member as JsonObject, 'ref') : undefined;
}

function requireNamed(all: readonly JsonObject[], name: string): JsonObject {
  const found = all.find((one) => nameOf(one) === name);
  if (found !== undefined) return found;
  throw new OpmateError('NOT_FOUND', `${name}: no such catalog`, {
    hint: all.length === 0 ? undefined : `there is ${all.map(nameOf).join(', ')}`,
  });
}

function nameOf(status: JsonObject): string {
  return textAt(status['metadata'] as JsonObject, 'name');
}

function conditionOf(status: JsonObject, type: string): JsonObject | undefined {
  const conditions = (status['status'] as JsonObject)['conditions'] as JsonObject[];
  return conditions.find((condition) => condition['type'] === type);
}

function textAt(object: JsonObject, key: string): string {
  const value = object[key];
  return typeof value === 'string' ? value : '';
}

function labelsAt(object: JsonObject): Record<string, string> {
  const labels = object['labels'];
  if (!isJsonObject(labels ?? null)) return {};
  return Object.fromEntries(
    Object.entries(labels as JsonObject).filter(([, value]) => typeof value === 'string'),
  ) as Record<string, string>;
}
