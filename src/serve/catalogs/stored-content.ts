import type { CancelOptions } from '../../core/concurrency.js';
import { OpmateError } from '../../core/errors.js';
import { getOrAdd } from '../../core/groups.js';
import type { Logger } from '../../core/log.js';
import { openNamelessFile } from '../../files/nameless-file.js';
import { type Coding, createCompressor } from '../http/encoding.js';
import { CompressedContent } from './compressed-content.js';
import { type ContentFile, DiskFile } from './content-file.js';
import type { ContentBlob, ContentIndex, ContentState, MetasQuery, Section } from './content-index.js';

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
export class StoredContent {
  readonly #file: Pick<ContentFile, 'read' | 'close'>;
  readonly index: ContentIndex;
  readonly hash: string;
  readonly storedAt: Date;
  readonly #formsDirectory: string | undefined;
  readonly #forms = new Map<Coding, Promise<CompressedContent | undefined>>();
  #readers = 0;
  #isClosed = false;
  #onLastReader: (() => void) | undefined;

  /** Compressed forms are nameless files in `formsDirectory`; without it, none are kept. */
  constructor(
    file: Pick<ContentFile, 'read' | 'close'>,
    index: ContentIndex,
    { hash, storedAt }: ContentState,
    formsDirectory: string | undefined,
  ) {
    this.#file = file;
    this.index = index;
    this.hash = hash;
    this.storedAt = storedAt;
    this.#formsDirectory = formsDirectory;
  }

  /** Number of blobs. */
  get count(): number {
    return this.index.count;
  }

  /** Bytes of `catalog.jsonl`. */
  get size(): number {
    return this.index.size;
  }

  /** Package names, sorted. */
  get packages(): readonly string[] {
    return this.index.packages;
  }

  /** Returns the sections of matching blobs, in order, adjacent ones joined. */
  find(query?: Partial<MetasQuery>): Section[] {
    return this.index.find(query);
  }

  /** Yields matching blobs, in order. */
  blobs(query?: Partial<MetasQuery>): Generator<ContentBlob, void, undefined> {
    return this.index.blobs(query);
  }

  async #read(target: Buffer, position: number): Promise<void> {
    const length = await this.#file.read(target, position);
    if (length < target.length) throw new OpmateError('IO', `${this.hash}: truncated`);
  }

  /** Opens a reader. Throws OpmateError once closed. */
  openReader(): ContentReader {
    if (this.#isClosed) throw new OpmateError('INTERNAL', `${this.hash}: closed`);
    this.#readers++;
    const read = (target: Buffer, position: number): Promise<void> => this.#read(target, position);
    return new OpenReader(this.hash, read, () => {
      if (--this.#readers === 0) this.#onLastReader?.();
    });
  }

  /** Yields all bytes without a reader, which `close` would wait for; the caller must have one. */
  async *readPieces(): AsyncGenerator<Buffer, void, undefined> {
    for (let position = 0; position < this.size; position += pieceBytes) {
      yield await readSection(
        { read: (target, place) => this.#read(target, place) },
        { offset: position, length: Math.min(pieceBytes, this.size - position) },
      );
    }
  }

  async #compress(coding: Coding): Promise<CompressedContent | undefined> {
    if (this.#formsDirectory === undefined) return undefined;
    try {
      const form = new DiskFile(await openNamelessFile(this.#formsDirectory), `${this.hash}, compressed`);
      return new CompressedContent(this.readPieces(), createCompressor(coding), form);
    } catch {
      // Responses are compressed one by one where no file can be written.
      return undefined;
    }
  }

  /**
   * Returns the compressed content, created with the first call and kept with the content; undefined without a place
   * for it. The caller must keep a reader open.
   */
  async compressed(coding: Coding): Promise<CompressedContent | undefined> {
    const form = await getOrAdd(this.#forms, coding, () => this.#compress(coding));
    return form?.isBroken === true ? undefined : form;
  }

  /** Closes the content after its last reader. */
  async close(): Promise<void> {
    if (this.#isClosed) return;
    this.#isClosed = true;
    if (this.#readers > 0) await new Promise<void>((resolve) => (this.#onLastReader = resolve));
    for (const form of this.#forms.values()) await (await form)?.close();
    await this.#file.close();
  }
}

/** A reader, which is released once it is closed and no read is pending. */
class OpenReader implements ContentReader {
  readonly #hash: string;
  readonly #read: ContentReader['read'];
  readonly #onReleased: () => void;
  #isOpen = true;
  #pending = 0;

  constructor(hash: string, read: ContentReader['read'], onReleased: () => void) {
    this.#hash = hash;
    this.#read = read;
    this.#onReleased = onReleased;
  }

  async read(target: Buffer, position: number): Promise<void> {
    if (!this.#isOpen) throw new OpmateError('INTERNAL', `${this.#hash}: closed reader`);
    this.#pending++;
    try {
      await this.#read(target, position);
    } finally {
      this.#pending--;
      this.#release();
    }
  }

  close(): void {
    if (!this.#isOpen) return;
    this.#isOpen = false;
    this.#release();
  }

  /** Closing during a read could pass its descriptor number to another file. */
  #release(): void {
    if (!this.#isOpen && this.#pending === 0) this.#onReleased();
  }
}
