import { readdir } from 'node:fs/promises';
import { join } from 'node:path';
import { OpmateError, getMessage, systemCode } from '../../core/errors.js';
import { compareBytes } from '../../core/order.js';
import { describeKind } from '../../document/field.js';
import type { JsonValue } from '../../document/json.js';
import { readNamedFile } from '../../files/read-file.js';
import type { Environment } from '../../files/run-program.js';

/** One `[[registry]]` table. (Source: containers-registries.conf(5), format 2.) */
export interface RegistryRule {
  /** `host[/path]`, or `*.domain`. */
  prefix: string;
  /** What replaces the prefix; nothing is replaced when undefined. */
  location?: string;
  insecure: boolean;
  blocked: boolean;
  mirrors: { location: string; insecure: boolean; pull: 'all' | 'digest-only' | 'tag-only' }[];
  /** The file that says so. */
  file: string;
}

/** A place to try: `registry` is `host[:port]`. */
export interface ResolvedLocation {
  registry: string;
  repository: string;
  insecure: boolean;
  isMirror: boolean;
}

export interface RegistriesConfOptions {
  environment: Environment;
  homeDirectory: string;
  /** Where system-wide configuration lies; `/etc`. */
  systemDirectory: string;
  /** Takes the place of CONTAINERS_REGISTRIES_CONF. */
  registriesConfFile?: string | undefined;
}

/**
 * Reads registries.conf: the file that is named explicitly or by CONTAINERS_REGISTRIES_CONF, else
 * `~/.config/containers/registries.conf`, else the system's; then `registries.conf.d/*.conf` of system and
 * home, by name, whose tables replace those of the same prefix. Throws OpmateError with file and line.
 */
export async function readRegistriesConf(options: RegistriesConfOptions): Promise<RegistryRule[]> {
  const user = join(options.homeDirectory, '.config/containers');
  const system = join(options.systemDirectory, 'containers');
  const named = options.registriesConfFile ?? (options.environment.CONTAINERS_REGISTRIES_CONF || undefined);
  const main =
    named === undefined ? [join(user, 'registries.conf'), join(system, 'registries.conf')] : [named];
  const rules = new Map<string, RegistryRule>();
  for (const file of main) {
    const text = await readIfThere(file, named !== undefined);
    if (text === undefined) continue;
    for (const rule of await parseRegistriesConf(text, file)) rules.set(rule.prefix, rule);
    break;
  }
  for (const file of [...(await dropIns(system)), ...(await dropIns(user))]) {
    const text = await readIfThere(file, true);
    for (const rule of await parseRegistriesConf(text ?? '', file)) rules.set(rule.prefix, rule);
  }
  return [...rules.values()];
}

async function dropIns(directory: string): Promise<string[]> {
  const folder = join(directory, 'registries.conf.d');
  try {
    const names = (await readdir(folder)).filter((name) => name.endsWith('.conf'));
    return names.sort(compareBytes).map((name) => join(folder, name));
  } catch (error) {
    if (systemCode(error) === 'ENOENT' || systemCode(error) === 'ENOTDIR') return [];
    throw new OpmateError('IO', `cannot be read (${systemCode(error) ?? 'unknown'})`, {
      subject: folder,
      cause: error,
    });
  }
}

const maxConfBytes = 16 * 1024 * 1024;

async function readIfThere(file: string, required: boolean): Promise<string | undefined> {
  try {
    return String(await readNamedFile(file, maxConfBytes));
  } catch (error) {
    if (error instanceof OpmateError) throw error;
    const missing = systemCode(error) === 'ENOENT';
    if (missing && !required) return undefined;
    const text = missing ? 'not found' : `cannot be read (${systemCode(error) ?? 'unknown'})`;
    throw new OpmateError(missing ? 'NOT_FOUND' : 'IO', text, { subject: file, file, cause: error });
  }
}

type Table = Record<string, unknown>;

/** The rules of one file, in format 2 or the older format 1. Throws OpmateError SYNTAX or INVALID. */
export async function parseRegistriesConf(text: string, file: string): Promise<RegistryRule[]> {
  const { parse, TomlError } = await import('smol-toml');
  let document: Table;
  try {
    document = parse(text.replace(/^\uFEFF/, '')) as Table;
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
  const conf = { file, text };
  if (document.registries === undefined) return readTables(document, conf);
  if (document.registry !== undefined) {
    throw invalid(conf, 'mixes [registries.…] of format 1 with [[registry]] of format 2');
  }
  return readFormat1(document.registries, conf);
}

function readTables(document: Table, conf: ConfFile): RegistryRule[] {
  return toList(document.registry, conf, 'registry').map((entry, index) => {
    const path = `registry[${index}]`;
    const table = asTable(entry, conf, path);
    const configured = stringAt(table, 'prefix', conf, path);
    const location = stringAt(table, 'location', conf, path);
    const prefix = configured ?? location;
    if (prefix === undefined) throw invalid(conf, `${path} has neither prefix nor location`);
    if (prefix.startsWith('*.') ? prefix.includes('/') : prefix.includes('*')) {
      throw invalid(conf, `${path}.prefix: a wildcard is only possible as *.domain`);
    }
    if (location === undefined && !prefix.startsWith('*.'))
      throw invalid(conf, `${path}.prefix: also needs location, unless it is *.domain`);
    const digestOnly = booleanAt(table, 'mirror-by-digest-only', conf, path);
    const mirrors = toList(table.mirror, conf, `${path}.mirror`).map((mirror, position) =>
      readMirror(mirror, digestOnly, conf, `${path}.mirror[${position}]`),
    );
    return {
      prefix: cleanLocation(prefix, conf, `${path}.${configured === undefined ? 'location' : 'prefix'}`),
      ...(location !== undefined && { location: cleanLocation(location, conf, `${path}.location`) }),
      insecure: booleanAt(table, 'insecure', conf, path),
      blocked: booleanAt(table, 'blocked', conf, path),
      mirrors,
      file: conf.file,
    };
  });
}

function readMirror(
  value: unknown,
  digestOnly: boolean,
  conf: ConfFile,
  path: string,
): RegistryRule['mirrors'][number] {
  const table = asTable(value, conf, path);
  const location = stringAt(table, 'location', conf, path);
  if (location === undefined) throw invalid(conf, `${path} has no location`);
  const pull = stringAt(table, 'pull-from-mirror', conf, path) ?? (digestOnly ? 'digest-only' : 'all');
  if (pull !== 'all' && pull !== 'digest-only' && pull !== 'tag-only') {
    throw invalid(conf, `${path}.pull-from-mirror: must be all, digest-only or tag-only`);
  }
  return {
    location: cleanLocation(location, conf, `${path}.location`),
    insecure: booleanAt(table, 'insecure', conf, path),
    pull,
  };
}

function readFormat1(value: unknown, conf: ConfFile): RegistryRule[] {
  const table = asTable(value, conf, 'registries');
  const rules = new Map<string, RegistryRule>();
  for (const kind of ['insecure', 'block'] as const) {
    const section = table[kind] === undefined ? {} : asTable(table[kind], conf, `registries.${kind}`);
    for (const entry of toList(section.registries, conf, `registries.${kind}.registries`)) {
      if (typeof entry !== 'string')
        throw invalid(
          conf,
          `registries.${kind}.registries: expected a string, got ${describeKind(entry as JsonValue)}`,
        );
      const prefix = cleanLocation(entry, conf, `registries.${kind}.registries`);
      const rule = rules.get(prefix) ?? {
        prefix,
        insecure: false,
        blocked: false,
        mirrors: [],
        file: conf.file,
      };
      rules.set(prefix, { ...rule, [kind === 'block' ? 'blocked' : 'insecure']: true });
    }
  }
  return [...rules.values()];
}

function asTable(value: unknown, conf: ConfFile, path: string): Table {
  if (typeof value === 'object' && value !== null && !Array.isArray(value)) return value as Table;
  throw invalid(conf, `${path}: expected a table, got ${describeKind(value as JsonValue)}`);
}

function toList(value: unknown, conf: ConfFile, path: string): unknown[] {
  if (value === undefined) return [];
  if (Array.isArray(value)) return value;
  throw invalid(conf, `${path}: expected an array, got ${describeKind(value as JsonValue)}`);
}

function stringAt(table: Table, key: string, conf: ConfFile, path: string): string | undefined {
  const value = table[key];
  if (value === undefined || value === '') return undefined;
  if (typeof value !== 'string')
    throw invalid(conf, `${path}.${key}: expected a string, got ${describeKind(value as JsonValue)}`);
  return value;
}

function booleanAt(table: Table, key: string, conf: ConfFile, path: string): boolean {
  const value = table[key] ?? false;
  if (typeof value !== 'boolean')
    throw invalid(conf, `${path}.${key}: expected true or false, got ${describeKind(value as JsonValue)}`);
  return value;
}

/** A host, which may be an IPv6 address in brackets, and a port. */
const hostPattern = /^(?:\[[0-9A-Fa-f:.]+\]|[A-Za-z0-9](?:[\w.-]*[A-Za-z0-9])?\.?)(?::\d{1,5})?$/;
const pathPattern = /^(?:\/(?!\.{1,2}(?:\/|$))[\w.-]+)*$/;

function cleanLocation(text: string, conf: ConfFile, path: string): string {
  const clean = text.replace(/\/+$/, '');
  const [, host = '', below = ''] = /^([^/]*)(.*)$/s.exec(clean) ?? [];
  const quoted = JSON.stringify(text);
  if (/:\/\/|[\s@?#]/.test(clean) || !pathPattern.test(below)) {
    throw invalid(conf, `${path}: must be host[:port][/path] without scheme: ${quoted}`);
  }
  const plain = host.replace(/^\*\./, '');
  const url =
    hostPattern.test(plain) && URL.canParse(`https://${plain}/`) ? new URL(`https://${plain}/`) : undefined;
  if (url === undefined || url.port === '0') {
    throw invalid(conf, `${path}: no valid host or port: ${quoted}`);
  }
  return clean;
}

/** The text that rules are read from, for errors. */
interface ConfFile {
  file: string;
  text: string;
}

/** The error for a problem that begins with the path of its value, e.g. `registry[0].mirror[1].location`. */
function invalid({ file, text }: ConfFile, problem: string): OpmateError {
  const line = findLine(text, problem);
  const where = line === undefined ? file : `${file}:${line}`;
  return new OpmateError('INVALID', problem, { subject: where, file, line });
}

/**
 * The line of a value in tables as people write them: `[[registry]]` with one key per line, or the first line that
 * holds what a problem quotes. Undefined where neither is found; the TOML parser keeps no places.
 */
function findLine(text: string, problem: string): number | undefined {
  const [, registry, mirror = '-1', key] =
    /^registry\[(\d+)\](?:\.mirror\[(\d+)\])?(?:\.([\w-]+))?/.exec(problem) ?? [];
  const lines = text.split('\n');
  let [table, below] = [-1, -1];
  let index: number | undefined;
  for (const [i, line] of lines.entries()) {
    const header = /^\s*\[\[?\s*([\w. -]+?)\s*\]/.exec(line)?.[1]?.replaceAll(' ', '');
    if (header === 'registry') [table, below] = [table + 1, -1];
    else if (header === 'registry.mirror') below++;
    const isIn = String(table) === registry && String(below) === mirror;
    if (isIn && header !== undefined) index = i + 1;
    if (isIn && key !== undefined && new RegExp(`^\\s*["']?${key}["']?\\s*=`).test(line)) return i + 1;
  }
  const quoted = /: ("(?:[^"\\]|\\.)*")$/.exec(problem)?.[1];
  const position = quoted === undefined ? -1 : lines.findIndex((line) => line.includes(quoted));
  return index ?? (position < 0 ? undefined : position + 1);
}

/**
 * Where a repository is to be looked for: the mirrors of the longest matching prefix in their order, then the
 * (rewritten) place itself. Throws OpmateError REGISTRY when it is blocked.
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
  function place(location: string | undefined, insecure: boolean, isMirror: boolean): ResolvedLocation {
    const target = location === undefined ? name : `${location}${rest}`;
    const slash = target.indexOf('/');
    if (slash < 0) {
      throw new OpmateError('INVALID', `${name}: location "${location}" leaves no repository`, {
        subject: rule?.file,
        file: rule?.file,
        hint: 'use the same last part of the name in prefix and location',
      });
    }
    return { registry: target.slice(0, slash), repository: target.slice(slash + 1), insecure, isMirror };
  }
  const unwanted = options.byDigest ? 'tag-only' : 'digest-only';
  const mirrors = options.withoutMirrors ? [] : rule.mirrors.filter((mirror) => mirror.pull !== unwanted);
  return [
    ...mirrors.map((mirror) => place(mirror.location, mirror.insecure, true)),
    place(rule.location, rule.insecure, false),
  ];
}

/** Whether the rules call a whole host (`host[:port]`) insecure, whatever repository. */
export function isInsecureHost(rules: readonly RegistryRule[], host: string): boolean {
  const matching = rules.filter(
    ({ prefix }) => !prefix.includes('/') && matchedLength(prefix, host, host) > 0,
  );
  return matching.sort((a, b) => b.prefix.length - a.prefix.length)[0]?.insecure === true;
}

/**
 * How much of `name` a prefix covers; 0 when it does not match. A wildcard covers the host without its port.
 */
function matchedLength(prefix: string, registry: string, name: string): number {
  if (!prefix.startsWith('*.')) return name === prefix || name.startsWith(`${prefix}/`) ? prefix.length : 0;
  const host = registry.replace(/:\d+$/, '');
  return host.endsWith(prefix.slice(1)) ? host.length : 0;
}
