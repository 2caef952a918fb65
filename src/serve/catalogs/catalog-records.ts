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
import { catalogNameFault } from '../http/catalog-names.js';
import type { CatalogCondition, CatalogProblem, CatalogRecord } from './catalog-status.js';

const recordsName = 'catalogs';
const serverName = 'server.json';
/** What a record holds is capped, its origin and messages included. */
const maxRecordBytes = 1024 * 1024;
const formatVersion = 1;

/**
 * What a server writes down below its storage directory: one file for each catalog, replaced in one step, which is
 * also what decides which content a catalog has after a restart; and where the server is to be found.
 */
export class CatalogRecords {
  readonly #directory: string;

  constructor(storage: string) {
    this.#directory = path.join(storage, recordsName);
  }

  /** All records that are sound, by name. */
  async list(): Promise<CatalogRecord[]> {
    const names = await readdirIfPresent(this.#directory);
    const records: CatalogRecord[] = [];
    for (const name of names.sort()) {
      const record = catalogNameFault(name) === undefined ? await this.read(name) : undefined;
      if (record !== undefined) records.push(record);
    }
    return records;
  }

  /** The record of a catalog; undefined if missing, or none of this program. */
  async read(name: string): Promise<CatalogRecord | undefined> {
    const file = path.join(this.#directory, name);
    const stats = await lstatIfPresent(file);
    if (stats?.isFile() !== true || stats.size > maxRecordBytes) return undefined;
    try {
      const record = recordFrom(parseGoJson(await readFile(file, 'utf8')));
      return record?.name === name ? record : undefined;
    } catch {
      return undefined;
    }
  }

  /** Throws OpmateError IO; then the record from before is still there. */
  async write(record: CatalogRecord): Promise<void> {
    await writeReplacing(this.#directory, record.name, { formatVersion, ...record });
  }

  async remove(name: string): Promise<void> {
    await rm(path.join(this.#directory, name), { force: true });
  }

  /** Removes what killed processes have left half-written. */
  async sweep(): Promise<void> {
    await sweepLeftovers(this.#directory);
  }
}

/** Where a server keeps contents. */
export function getContents(storage: string): string {
  return path.join(storage, 'contents');
}

/** How a server that uses the storage directory is reached from outside. */
export async function writeServerUrl(storage: string, url: string): Promise<void> {
  await writeReplacing(storage, serverName, { formatVersion, url });
}

/** The URL that the last server was reached at; undefined where there was none. */
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

function recordFrom(value: JsonValue): CatalogRecord | undefined {
  if (!isJsonObject(value) || value['formatVersion'] !== formatVersion) return undefined;
  const { name, labels, priority, isAvailable, sourceType, conditions, contentHash, problems } = value;
  if (typeof name !== 'string' || typeof sourceType !== 'string' || typeof priority !== 'number')
    return undefined;
  if (contentHash !== undefined && !(typeof contentHash === 'string' && isDigest(contentHash)))
    return undefined;
  if (!isJsonObject(labels ?? null) || !Array.isArray(conditions)) return undefined;
  return {
    name,
    labels: Object.fromEntries(
      Object.entries(labels as JsonObject).filter(([, label]) => typeof label === 'string'),
    ) as Record<string, string>,
    priority,
    isAvailable: isAvailable === true,
    sourceType,
    file: toText(value, 'file'),
    originKey: toText(value, 'originKey'),
    origin: originFrom(value['origin']),
    contentHash,
    lastUnpacked: toText(value, 'lastUnpacked'),
    lastChecked: toText(value, 'lastChecked'),
    conditions: conditions.flatMap((condition) => conditionFrom(condition) ?? []),
    problems: Array.isArray(problems) ? problems.flatMap((problem) => problemFrom(problem) ?? []) : undefined,
  };
}

function toText(object: JsonObject, key: string): string | undefined {
  const value = object[key];
  return typeof value === 'string' ? value : undefined;
}

function originFrom(value: JsonValue | undefined): PlaceState | undefined {
  if (value === undefined || !isJsonObject(value)) return undefined;
  const { id, ref } = value;
  if (typeof id !== 'string' || typeof ref !== 'string') return undefined;
  return { id, ref, validator: toText(value, 'validator') };
}

function problemFrom(value: JsonValue): CatalogProblem | undefined {
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

function conditionFrom(value: JsonValue): CatalogCondition | undefined {
  if (!isJsonObject(value)) return undefined;
  const { type, status, reason, message, lastTransitionTime } = value;
  const texts = [type, status, reason, message, lastTransitionTime];
  if (texts.some((text) => typeof text !== 'string')) return undefined;
  return { type, status, reason, message, lastTransitionTime } as unknown as CatalogCondition;
}
