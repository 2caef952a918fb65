import { readFile, rm } from 'node:fs/promises';
import path from 'node:path';
import { lstatIfPresent, readdirIfPresent } from '../../files/file-status.js';
import { isDigest } from '../../core/digest.js';
import { fileError } from '../../core/errors.js';
import { parseGoJson } from '../../document/go-json.js';
import { type JsonObject, type JsonValue, isJsonObject } from '../../document/json.js';
import { getValue } from '../../document/json-fields.js';
import type { PlaceState } from '../../source/drivers/driver.js';
import { makeDirectory } from '../../files/make-directory.js';
import { replaceFile } from '../../files/replace-file.js';
import { sweepLeftovers } from '../../files/staging.js';
import { findCatalogNameFault } from '../http/catalog-names.js';
import type { CatalogCondition, CatalogProblem, CatalogRecord } from './catalog-status.js';

const recordsName = 'catalogs';
const serverName = 'server.json';
/** Maximum size of a record; its messages are limited. */
const maxRecordBytes = 1024 * 1024;
const formatVersion = 1;

/**
 * Records of a server in its storage directory: one file per catalog, replaced atomically, which decides the content of
 * the catalog after a restart.
 */
export class CatalogRecords {
  readonly #directory: string;

  constructor(storage: string) {
    this.#directory = path.join(storage, recordsName);
  }

  /** Returns all valid records, by name. */
  async list(): Promise<CatalogRecord[]> {
    const names = await readdirIfPresent(this.#directory);
    const records: CatalogRecord[] = [];
    for (const name of names.sort()) {
      const record = findCatalogNameFault(name) === undefined ? await this.read(name) : undefined;
      if (record !== undefined) records.push(record);
    }
    return records;
  }

  /** Reads the record of a catalog; undefined if missing or invalid. */
  async read(name: string): Promise<CatalogRecord | undefined> {
    const file = path.join(this.#directory, name);
    const stats = await lstatIfPresent(file);
    if (stats?.isFile() !== true || stats.size > maxRecordBytes) return undefined;
    try {
      const record = toRecord(parseGoJson(await readFile(file, 'utf8')));
      return record?.name === name ? record : undefined;
    } catch {
      return undefined;
    }
  }

  /** Throws OpmateError IO, and then keeps the previous record. */
  async write(record: CatalogRecord): Promise<void> {
    await writeReplacing(this.#directory, record.name, { formatVersion, ...record });
  }

  async remove(name: string): Promise<void> {
    await rm(path.join(this.#directory, name), { force: true });
  }

  /** Removes leftovers of killed processes. */
  async sweep(): Promise<void> {
    await sweepLeftovers(this.#directory);
  }
}

/** Returns the directory of contents below a storage directory. */
export function getContentsDirectory(storage: string): string {
  return path.join(storage, 'contents');
}

/** Writes the external URL of the server that uses a storage directory. */
export async function writeServerUrl(storage: string, url: string): Promise<void> {
  await writeReplacing(storage, serverName, { formatVersion, url });
}

/** Reads the external URL of the last server; undefined if there was none. */
export async function readServerUrl(storage: string): Promise<string | undefined> {
  try {
    const value = parseGoJson(await readFile(path.join(storage, serverName), 'utf8'));
    const url = getValue(value, 'url');
    return typeof url === 'string' ? url : undefined;
  } catch {
    return undefined;
  }
}

async function writeReplacing(directory: string, name: string, value: object): Promise<void> {
  const file = path.join(directory, name);
  try {
    await makeDirectory(directory);
    await replaceFile(file, `${JSON.stringify(value, null, 2)}\n`, { mode: 0o644 });
  } catch (error) {
    throw fileError(file, error);
  }
}

function toRecord(value: JsonValue): CatalogRecord | undefined {
  if (!isJsonObject(value) || value['formatVersion'] !== formatVersion) return undefined;
  const { name, labels, priority, isAvailable, sourceType, conditions, contentHash, problems } = value;
  if (typeof name !== 'string' || typeof sourceType !== 'string' || typeof priority !== 'number')
    return undefined;
  if (contentHash !== undefined && !(typeof contentHash === 'string' && isDigest(contentHash)))
    return undefined;
  if (!isJsonObject(labels ?? null) || !Array.isArray(conditions)) return undefined;
  const stringLabels = Object.entries(labels as JsonObject).filter(([, label]) => typeof label === 'string');
  return {
    name,
    labels: Object.fromEntries(stringLabels) as Record<string, string>,
    priority,
    isAvailable: isAvailable === true,
    sourceType,
    file: toText(value, 'file'),
    originKey: toText(value, 'originKey'),
    origin: toOrigin(value['origin']),
    contentHash,
    lastUnpacked: toText(value, 'lastUnpacked'),
    lastChecked: toText(value, 'lastChecked'),
    conditions: conditions.flatMap((condition) => toCondition(condition) ?? []),
    problems: Array.isArray(problems) ? problems.flatMap((problem) => toProblem(problem) ?? []) : undefined,
  };
}

function toText(object: JsonObject, key: string): string | undefined {
  const value = object[key];
  return typeof value === 'string' ? value : undefined;
}

function toOrigin(value: JsonValue | undefined): PlaceState | undefined {
  if (value === undefined || !isJsonObject(value)) return undefined;
  const { id, ref } = value;
  if (typeof id !== 'string' || typeof ref !== 'string') return undefined;
  return { id, ref, validator: toText(value, 'validator') };
}

function toProblem(value: JsonValue): CatalogProblem | undefined {
  if (!isJsonObject(value)) return undefined;
  const { message, line, column } = value;
  if (typeof message !== 'string') return undefined;
  return {
    message,
    file: toText(value, 'file'),
    line: typeof line === 'number' ? line : undefined,
    column: typeof column === 'number' ? column : undefined,
    hint: toText(value, 'hint'),
  };
}

function toCondition(value: JsonValue): CatalogCondition | undefined {
  if (!isJsonObject(value)) return undefined;
  const { type, status, reason, message, lastTransitionTime } = value;
  const texts = [type, status, reason, message, lastTransitionTime];
  if (texts.some((text) => typeof text !== 'string')) return undefined;
  return { type, status, reason, message, lastTransitionTime } as unknown as CatalogCondition;
}
