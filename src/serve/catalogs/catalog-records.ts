import { readFile, rm } from 'node:fs/promises';
import path from 'node:path';
import { fileError } from '../../core/errors.js';
import { openJson } from '../../document/document.js';
import type { Field } from '../../document/field.js';
import { readdirIfPresent } from '../../files/file-status.js';
import { makeDirectory } from '../../files/make-directory.js';
import { readRegularFile } from '../../files/read-file.js';
import { replaceFile } from '../../files/replace-file.js';
import { sweepLeftovers } from '../../files/staging.js';
import { findCatalogNameFault } from '../http/catalog-names.js';
import { type CatalogRecord, conditionReasons } from './catalog-status.js';

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
    try {
      const bytes = await readRegularFile(file, maxRecordBytes, { noFollow: true });
      const record = toRecord(openJson(bytes, { name: file }));
      return record.name === name ? record : undefined;
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
    const file = path.join(storage, serverName);
    return openJson(await readFile(file), { name: file })
      .field('url')
      .text();
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

function toRecord(root: Field<never>): CatalogRecord {
  root.field('formatVersion').integer(formatVersion, formatVersion);
  const origin = root.field('origin');
  const contentHash = root.field('contentHash');
  const problems = root.field('problems');
  return {
    name: root.field('name').text(),
    // One more than a manifest may have: the name of the catalog.
    labels: root.field('labels').optionalTexts(Infinity) ?? {},
    priority: root.field('priority').integer(-(2 ** 31), 2 ** 31 - 1),
    isAvailable: root.field('isAvailable').boolean(),
    sourceType: root.field('sourceType').anyText(),
    source: root.field('source').isPresent ? root.field('source').jsonObject() : undefined,
    file: root.field('file').optionalText(),
    originKey: root.field('originKey').optionalText(),
    origin: origin.isPresent
      ? {
          id: origin.field('id').text(Infinity),
          ref: origin.field('ref').text(Infinity),
          validator: origin.field('validator').optionalText(Infinity),
        }
      : undefined,
    contentHash: contentHash.isPresent ? contentHash.digest() : undefined,
    lastUnpacked: root.field('lastUnpacked').optionalText(),
    lastChecked: root.field('lastChecked').optionalText(),
    conditions: root
      .field('conditions')
      .list()
      // Later versions may have other reasons; the content is still that of the catalog.
      .filter((condition) =>
        conditionReasons.some((reason) => reason === condition.field('reason').anyText()),
      )
      .map((condition) => ({
        type: condition.field('type').choice(['Progressing', 'Serving']),
        status: condition.field('status').choice(['True', 'False']),
        reason: condition.field('reason').choice(conditionReasons),
        message: condition.field('message').anyText(Infinity),
        lastTransitionTime: condition.field('lastTransitionTime').text(),
      })),
    problems: problems.isPresent ? problems.list().map((problem) => problem.jsonObject()) : undefined,
  };
}
