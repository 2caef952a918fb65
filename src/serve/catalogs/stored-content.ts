import type { CancelOptions } from '../../core/concurrency.js';
import { OpmateError } from '../../core/errors.js';
import { getOrAdd } from '../../core/groups.js';
import type { Logger } from '../../core/log.js';
import { openNamelessFile } from '../../files/nameless-file.js';
import { type Coding, createCompressor } from '../http/encoding.js';
import { type CompressedContent, compressContent } from './compressed-content.js';
import { type ContentFile, DiskFile } from './content-file.js';
import type { ContentIndex, ContentState, Section } from './content-index.js';

/** Keeps the content readable until it is closed. */
export interface ContentReader {
  /** Fills `target` from a position. Throws OpmateError IO beyond the end. */
  read(target: Buffer, position: number): Promise<void>;
  close(): void;
}

/** Returns the bytes of a section. Throws as `ContentReader.read`. */
export async function readSection(
  reader: Pick<ContentReader, 'read'>,
  { offset, length }: Section,
): Promise<Buffer> {
  const bytes = Buffer.allocUnsafe(length);
  await reader.read(bytes, offset);
  return bytes;
}

/** Place of stored contents. */
export interface ContentLocation {
  /** Contents by hash, shared by processes; where missing or read-only, a nameless file or memory is used. */
  directory?: string | undefined;
  logger?: Logger | undefined;
}

export interface StoreOptions extends ContentLocation, CancelOptions {
  /** Directory of nameless files; default memory. */
  temporaryDirectory?: string | undefined;
  now: () => Date;
  /**
   * Key of this state of the catalog, such as its image digest: content stored under the same key is used without reading
   * the catalog.
   */
  key?: string | undefined;
}

const pieceBytes = 256 * 1024;

/**
 * Content of a served catalog: `catalog.jsonl`, one blob with sorted keys per line in walk order, and its index.
 * Immutable; a new state of the catalog is another StoredContent.
 */
export type StoredContent = ReturnType<typeof createStoredContent>;

/** Compressed forms are nameless files in `formsDirectory`; without it, none are kept. */
export function createStoredContent(
  file: ContentFile,
  index: ContentIndex,
  { hash, storedAt }: ContentState,
  formsDirectory: string | undefined,
) {
  const { size } = index;
  const forms = new Map<Coding, Promise<CompressedContent | undefined>>();
  let readers = 0;
  let isClosed = false;
  let onLastReader: (() => void) | undefined;

  async function read(target: Buffer, position: number): Promise<void> {
    const length = await file.read(target, position);
    if (length < target.length) throw new OpmateError('IO', `${hash}: truncated`);
  }

  /** Opens a reader. Throws OpmateError once closed. */
  function openReader(): ContentReader {
    if (isClosed) throw new OpmateError('INTERNAL', `${hash}: closed`);
    readers++;
    let isOpen = true;
    let pending = 0;
    // Closing during a read could pass its descriptor number to another file.
    const release = (): void => {
      if (isOpen || pending > 0) return;
      if (--readers === 0) onLastReader?.();
    };
    return {
      async read(target, position) {
        if (!isOpen) throw new OpmateError('INTERNAL', `${hash}: closed reader`);
        pending++;
        try {
          await read(target, position);
        } finally {
          pending--;
          release();
        }
      },
      close() {
        if (!isOpen) return;
        isOpen = false;
        release();
      },
    };
  }

  /** Yields all bytes without a reader, which `close` would wait for; the caller must have one. */
  async function* readPieces(): AsyncGenerator<Buffer, void, undefined> {
    for (let position = 0; position < size; position += pieceBytes) {
      yield await readSection({ read }, { offset: position, length: Math.min(pieceBytes, size - position) });
    }
  }

  async function compress(coding: Coding): Promise<CompressedContent | undefined> {
    if (formsDirectory === undefined) return undefined;
    try {
      const form = new DiskFile(await openNamelessFile(formsDirectory), `${hash}, compressed`);
      return compressContent(readPieces(), createCompressor(coding), form);
    } catch {
      // Responses are compressed one by one where no file can be written.
      return undefined;
    }
  }

  return {
    ...index,
    /** `sha256:…` of `catalog.jsonl`. */
    hash,
    /** Time at which this content was first stored. */
    storedAt,
    openReader,
    readPieces,

    /**
     * Returns the compressed content, created with the first call and kept with the content; undefined without a place
     * for it. The caller must keep a reader open.
     */
    async compressed(coding: Coding): Promise<CompressedContent | undefined> {
      const form = await getOrAdd(forms, coding, () => compress(coding));
      return form?.isBroken === true ? undefined : form;
    },

    /** Closes the content after its last reader. */
    async close(): Promise<void> {
      if (isClosed) return;
      isClosed = true;
      if (readers > 0) await new Promise<void>((resolve) => (onLastReader = resolve));
      for (const form of forms.values()) await (await form)?.close();
      await file.close();
    },
  };
}
