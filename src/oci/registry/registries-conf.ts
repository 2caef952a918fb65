import { join } from 'node:path';
import { type DocumentPath, formatPath } from '../../core/diagnostic.js';
import { OpmateError, fileError, getMessage } from '../../core/errors.js';
import { sortedByBytes } from '../../core/order.js';
import { decodeFile, openValue } from '../../document/document.js';
import { type Field, quoteShort, warnOfUnknown } from '../../document/field.js';
import type { JsonObject, JsonValue } from '../../document/json.js';
import { readdirIfPresent } from '../../files/file-status.js';
import { readNamedFile } from '../../files/read-file.js';
import type { Environment } from '../../files/run-program.js';

/** A `[[registry]]` table. (Source: containers-registries.conf(5), format 2.) */
export interface RegistryRule {
  /** `host[/path]`, or `*.domain`. */
  prefix: string;
  /** Replacement for the prefix. */
  location?: string;
  insecure: boolean;
  blocked: boolean;
  mirrors: { location: string; insecure: boolean; pull: 'all' | 'digest-only' | 'tag-only' }[];
  file: string;
}

/** A location to try: `registry` is `host[:port]`. */
export interface ResolvedLocation {
  registry: string;
  repository: string;
  insecure: boolean;
  isMirror: boolean;
}

/** Name of Docker Hub in references, and the host of its requests. */
export const dockerHub = { registry: 'docker.io', host: 'registry-1.docker.io' };

/** Returns `host[:port]` of requests to a registry. */
export function getHost({ registry }: Pick<ResolvedLocation, 'registry'>): string {
  return registry === dockerHub.registry ? dockerHub.host : registry;
}

export interface RegistriesConfOptions {
  environment: Environment;
  homeDirectory: string;
  /** Directory of system-wide configuration, such as `/etc`. */
  systemDirectory: string;
  /** Takes precedence over CONTAINERS_REGISTRIES_CONF. */
  registriesConfFile?: string | undefined;
}

/**
 * Reads registries.conf: the named file or that of CONTAINERS_REGISTRIES_CONF, else `~/.config/containers/registries.conf`,
 * else that of the system; then `registries.conf.d/*.conf` of system and home by name, whose tables replace those of the
 * same prefix. Throws OpmateError with file and line.
 */
export async function readRegistriesConf(options: RegistriesConfOptions): Promise<RegistryRule[]> {
  const user = join(options.homeDirectory, '.config/containers');
  const system = join(options.systemDirectory, 'containers');
  const named = options.registriesConfFile ?? (options.environment.CONTAINERS_REGISTRIES_CONF || undefined);
  const main =
    named === undefined ? [join(user, 'registries.conf'), join(system, 'registries.conf')] : [named];
  const rules = new Map<string, RegistryRule>();
  for (const file of main) {
    const text = await readConf(file, named !== undefined);
    if (text === undefined) continue;
    for (const rule of await parseRegistriesConf(text, file)) rules.set(rule.prefix, rule);
    break;
  }
  for (const file of [...(await listDropIns(system)), ...(await listDropIns(user))]) {
    const text = await readConf(file, true);
    for (const rule of await parseRegistriesConf(text ?? '', file)) rules.set(rule.prefix, rule);
  }
  return [...rules.values()];
}

async function listDropIns(directory: string): Promise<string[]> {
  const folder = join(directory, 'registries.conf.d');
  const names = (await readdirIfPresent(folder)).filter((name) => name.endsWith('.conf'));
  return sortedByBytes(names).map((name) => join(folder, name));
}

const maxConfBytes = 16 * 1024 * 1024;

async function readConf(file: string, required: boolean): Promise<string | undefined> {
  try {
    return decodeFile(await readNamedFile(file, maxConfBytes), file);
  } catch (error) {
    const failure = fileError(file, error, { file });
    if (failure.code === 'NOT_FOUND' && !required) return undefined;
    throw failure;
  }
}

/** Parses a file of format 2, or of the older format 1. Throws OpmateError SYNTAX or INVALID. */
export async function parseRegistriesConf(text: string, file: string): Promise<RegistryRule[]> {
  const { parse, TomlError } = await import('smol-toml');
  let document: JsonObject;
  try {
    document = parse(text.replace(/^\uFEFF/, '')) as JsonObject;
  } catch (error) {
    const line = error instanceof TomlError ? error.line : undefined;
    const reason = getMessage(error)
      .split('\n')[0]
      ?.replace(/^Invalid TOML document: /, '');
    const where = line === undefined ? file : `${file}:${line}`;
    throw new OpmateError('SYNTAX', `not valid TOML: ${reason}`, {
      subject: where,
      file,
      line,
      cause: error,
    });
  }
  const root: Field<never> = openValue(document, {
    name: file,
    findPlace: (path) => {
      const { value } = path.reduce((field, key) => field.field(key), root);
      return findPlace(text, path, value);
    },
  });
  const format1 = root.field('registries');
  const tables = root.field('registry');
  if (!format1.isPresent) return tables.optionalList().map((table) => readTable(table, file));
  if (tables.isPresent)
    root.fail('[registries.…] of format 1 cannot be combined with [[registry]] of format 2');
  return readFormat1(format1, file);
}

const tableFields = ['prefix', 'location', 'insecure', 'blocked', 'mirror', 'mirror-by-digest-only'] as const;

function readTable(table: Field<never>, file: string): RegistryRule {
  const { prefix, location, ...fields } = table.object(tableFields, warnOfUnknown);
  const written = prefix.optionalText() ?? location.optionalText();
  if (written === undefined) return location.missing();
  const isWildcard = written.startsWith('*.');
  if (isWildcard ? written.includes('/') : written.includes('*')) {
    prefix.fail('a wildcard is allowed as *.domain only');
  }
  if (!location.isSet && !isWildcard) prefix.fail('requires location, unless it is *.domain');
  const digestOnly = fields['mirror-by-digest-only'].optionalBoolean();
  return {
    prefix: readLocation(prefix.isSet ? prefix : location),
    ...(location.isSet && { location: readLocation(location) }),
    insecure: fields.insecure.optionalBoolean(),
    blocked: fields.blocked.optionalBoolean(),
    mirrors: fields.mirror.optionalList().map((mirror) => readMirror(mirror, digestOnly)),
    file,
  };
}

const pulls = ['all', 'digest-only', 'tag-only'] as const;

function readMirror(mirror: Field<never>, digestOnly: boolean): RegistryRule['mirrors'][number] {
  const fields = mirror.object(['location', 'insecure', 'pull-from-mirror'], warnOfUnknown);
  return {
    location: readLocation(fields.location),
    insecure: fields.insecure.optionalBoolean(),
    pull: fields['pull-from-mirror'].optionalChoice(pulls) ?? (digestOnly ? 'digest-only' : 'all'),
  };
}

function readFormat1(registries: Field<never>, file: string): RegistryRule[] {
  const sections = registries.object(['insecure', 'block'], { unknown: 'ignore' });
  const rules = new Map<string, RegistryRule>();
  for (const kind of ['insecure', 'block'] as const) {
    const section = sections[kind].optionalObject(['registries'], { unknown: 'ignore' });
    for (const entry of section?.registries.optionalList() ?? []) {
      const prefix = readLocation(entry);
      const rule = rules.get(prefix) ?? { prefix, insecure: false, blocked: false, mirrors: [], file };
      rules.set(prefix, { ...rule, [kind === 'block' ? 'blocked' : 'insecure']: true });
    }
  }
  return [...rules.values()];
}

/** A host, which may be an IPv6 address in brackets, and a port. */
const hostPattern = /^(?:\[[0-9A-Fa-f:.]+\]|[A-Za-z0-9](?:[\w.-]*[A-Za-z0-9])?\.?)(?::\d{1,5})?$/;
const pathPattern = /^(?:\/(?!\.{1,2}(?:\/|$))[\w.-]+)*$/;

function readLocation(field: Field<never>): string {
  const text = field.text();
  const clean = text.replace(/\/+$/, '');
  const [, host = '', below = ''] = /^([^/]*)(.*)$/s.exec(clean) ?? [];
  if (/:\/\/|[\s@?#]/.test(clean) || !pathPattern.test(below)) {
    field.fail(`expected host[:port][/path] without scheme, got ${quoteShort(text)}`);
  }
  const plain = host.replace(/^\*\./, '');
  const url =
    hostPattern.test(plain) && URL.canParse(`https://${plain}/`) ? new URL(`https://${plain}/`) : undefined;
  if (url === undefined || url.port === '0') field.fail(`invalid host or port in ${quoteShort(text)}`);
  return clean;
}

/**
 * Returns the line of a value in tables with one key per line, else that of its table. The TOML parser keeps no places.
 */
function findPlace(text: string, path: DocumentPath, value: JsonValue | undefined): { line?: number } {
  const lines = text.split('\n');
  const isOnPath = (other: DocumentPath): boolean => other.every((key, index) => key === path[index]);
  const lastIndexes = new Map<string, number>();
  let table: DocumentPath = [];
  let nearest: { line?: number } = {};
  for (const [index, line] of lines.entries()) {
    const [, brackets, names = ''] = /^\s*(\[\[?)\s*([\w. -]+?)\s*\]/.exec(line) ?? [];
    const key = /^\s*["']?([\w-]+)["']?\s*=/.exec(line)?.[1];
    if (brackets !== undefined) {
      table = [];
      for (const name of names.replaceAll(' ', '').split('.')) {
        table = [...table, name];
        const known = lastIndexes.get(formatPath(table));
        if (known !== undefined) table = [...table, known];
      }
      if (brackets === '[[') {
        const last = table.at(-1);
        const list = typeof last === 'number' ? table.slice(0, -1) : table;
        table = [...list, typeof last === 'number' ? last + 1 : 0];
        lastIndexes.set(formatPath(list), table.at(-1) as number);
      }
      if (table.length > 0 && isOnPath(table)) nearest = { line: index + 1 };
    } else if (key !== undefined && isOnPath([...table, key])) {
      const item = JSON.stringify(value);
      const itemIndex = lines.findIndex((other, at) => at >= index && other.includes(item));
      return { line: (typeof value === 'string' && itemIndex >= 0 ? itemIndex : index) + 1 };
    }
  }
  return nearest;
}

/**
 * Returns the locations of a repository: the mirrors of the longest matching prefix in order, then the rewritten location
 * itself. Throws OpmateError REGISTRY if it is blocked.
 */
export function resolveLocations(
  rules: readonly RegistryRule[],
  registry: string,
  repository: string,
  options: { byDigest?: boolean; withoutMirrors?: boolean } = {},
): ResolvedLocation[] {
  const name = `${registry}/${repository}`;
  const rule = rules
    .filter((candidate) => matchedLength(candidate.prefix, registry, name) > 0)
    .sort((a, b) => b.prefix.length - a.prefix.length)[0];
  if (!rule) return [{ registry, repository, insecure: false, isMirror: false }];
  if (rule.blocked) {
    throw new OpmateError('REGISTRY', `blocked by ${rule.file} (prefix ${rule.prefix})`, {
      subject: name,
      hint: 'remove blocked = true there to allow it',
    });
  }
  const rest = name.slice(matchedLength(rule.prefix, registry, name));
  function toLocation(location: string | undefined, insecure: boolean, isMirror: boolean): ResolvedLocation {
    const target = location === undefined ? name : `${location}${rest}`;
    const slash = target.indexOf('/');
    if (slash < 0) {
      throw new OpmateError('INVALID', `${name}: no repository left in location "${location}"`, {
        about: rule?.file,
        hint: 'use the same last part of the name in prefix and location',
      });
    }
    return { registry: target.slice(0, slash), repository: target.slice(slash + 1), insecure, isMirror };
  }
  const unwanted = options.byDigest ? 'tag-only' : 'digest-only';
  const mirrors = options.withoutMirrors ? [] : rule.mirrors.filter((mirror) => mirror.pull !== unwanted);
  return [
    ...mirrors.map((mirror) => toLocation(mirror.location, mirror.insecure, true)),
    toLocation(rule.location, rule.insecure, false),
  ];
}

/** Reports whether the rules make a whole host (`host[:port]`) insecure. */
export function isInsecureHost(rules: readonly RegistryRule[], host: string): boolean {
  const matching = rules.filter(
    ({ prefix }) => !prefix.includes('/') && matchedLength(prefix, host, host) > 0,
  );
  return matching.sort((a, b) => b.prefix.length - a.prefix.length)[0]?.insecure === true;
}

/** Returns the length of the part of `name` that a prefix matches; 0 for no match. A wildcard matches the host alone. */
function matchedLength(prefix: string, registry: string, name: string): number {
  if (!prefix.startsWith('*.')) return name === prefix || name.startsWith(`${prefix}/`) ? prefix.length : 0;
  const host = registry.replace(/:\d+$/, '');
  return host.endsWith(prefix.slice(1)) ? host.length : 0;
}
