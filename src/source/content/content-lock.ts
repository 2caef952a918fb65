import { inContext } from '../../core/diagnostics-error.js';
import { LimitError, UsageError } from '../../core/errors.js';
import { decodeFile, openJsonFile } from '../../document/document.js';
import type { Field } from '../../document/field.js';
import { encodeGoJson, quoteGo } from '../../document/go-json.js';
import { sortedByBytes } from '../../core/order.js';
import { replaceFile } from '../../files/replace-file.js';
import type { Pin } from './content-types.js';
import { readFileWithin } from '../../files/read-file.js';

const maxSize = 4 * 1024 * 1024;
const maxPins = 10_000;
const maxText = 4096;
const maxRoots = 100;
const lockKind = 'opmate.bundle.lock';
const types: readonly Pin['type'][] = ['directory', 'archive', 'image', 'git', 'http', 'configMaps'];

/** Options of pinning sources. */
export interface PinOptions {
  /** Refuse sources without a digest, commit or checksum. */
  requireDigest?: boolean | undefined;
  /** Lock file with pinned sources; created if missing and nothing is wrong. */
  lock?: string | undefined;
  /** Resolve sources again and update the lock file. */
  updateLock?: boolean | undefined;
}

/** Pins of a lock file. */
export interface ContentLock {
  /** Undefined without a lock file, and for one that is missing or updated. */
  pins: Pin[] | undefined;
  /** Writes a lock file that is missing or updated, atomically. Throws OpmateError. */
  write(pins: readonly Pin[]): Promise<void>;
}

/** Opens the lock file that options name, if any. Throws OpmateError with the path of the invalid field. */
export async function openContentLock({ lock, updateLock = false }: PinOptions): Promise<ContentLock> {
  if (lock === undefined && updateLock) {
    throw new UsageError('options.updateLock: needs options.lock', {
      hint: 'specify the file with options.lock FILE',
    });
  }
  const locked = lock === undefined || updateLock ? undefined : await readContentLock(lock);
  return {
    pins: locked,
    async write(pins) {
      if (lock !== undefined && locked === undefined) await replaceFile(lock, encodeContentLock(pins));
    },
  };
}

/** Reads the pins of a lock file; undefined if it does not exist. */
async function readContentLock(file: string): Promise<Pin[] | undefined> {
  const bytes = readFileWithin(file, (size) => {
    if (size > maxSize) throw new LimitError(`more than ${maxSize} bytes`, { about: file });
  });
  return bytes === undefined ? undefined : parseContentLock(decodeFile(bytes, file), file);
}

/** Parses the text of a lock file. Throws OpmateError. */
export function parseContentLock(text: string, file: string): Pin[] {
  return inContext({ hint: 'specify a bundle lock, or update the file with options.updateLock' }, () =>
    readPins(openJsonFile(text, file)),
  );
}

function readPins(root: Field<never>): Pin[] {
  const { kind, version, sources } = root.object(['kind', 'version', 'sources']);
  kind.constant(lockKind);
  version.formatVersion(1);
  const names = new Set<string>();
  return sources.list(maxPins).map((source) => {
    const fields = source.object(['name', 'type', 'source', 'ref', 'content', 'roots']);
    const name = fields.name.text(maxText);
    if (names.has(name)) fields.name.fail(`duplicate ${quoteGo(name)}`);
    names.add(name);
    const pin = {
      name,
      type: fields.type.choice(types),
      ref: fields.ref.text(maxText),
      content: fields.content.digest(),
      source: fields.source.text(maxText),
    };
    if (!fields.roots.isPresent) return pin;
    const roots = fields.roots.list(maxRoots).map((root) => root.text(maxText));
    if (roots.length === 0) fields.roots.fail('expected a list of directories');
    return { ...pin, roots: sortedByBytes(roots) };
  });
}

/** Encodes a lock file; equal pins result in equal bytes. */
export function encodeContentLock(pins: readonly Pin[]): string {
  const sources = pins.map(({ name, type, source, ref, content, roots }) => ({
    name,
    type,
    source: source ?? type,
    ref,
    content,
    ...(roots && { roots: [...roots] }),
  }));
  return `${encodeGoJson({ kind: lockKind, version: 1, sources }, { indent: 2 })}\n`;
}
