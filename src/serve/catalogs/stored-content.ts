import { Readable, type Transform } from 'node:stream';
import type { CancelOptions } from '../../core/concurrency.js';
import { OpmateError } from '../../core/errors.js';
import type { Logger } from '../../core/log.js';
import { openNamelessFile } from '../../files/nameless-file.js';
import { CompressedContent } from './compressed-content.js';
import { type ContentFile, DiskFile } from './content-file.js';
import type { ContentIndex, ContentState, MetasQuery, Section } from './content-index.js';

/** Keeps the content readable until it is closed. */
export interface ContentReader {
  /** Fills `target` from a position. Throws OpmateError IO beyond the end. */
  read(target: Buffer, position: number): Promise<void>;
  close(): void;
}

/** Place of stored contents. */
export interface ContentPlace {
  /** Contents by hash, shared by processes; where missing or read-only, a nameless file or memory is used. */
  directory?: string | undefined;
  logger?: Logger | undefined;
}

export interface StoreOptions extends ContentPlace, CancelOptions {
  /** Directory of nameless files; default memory. */
  temporaryDirectory?: string | undefined;
  now: () => Date;
  /**
   * Key of this state of the catalog, such as its image digest: content stored under the same key is used without reading
   * the catalog.
   */
  key?: string | undefined;
}

/** A served catalog. */
export interface ServedCatalog {
  name: string;
  content: StoredContent;
  labels: Readonly<Record<string, string>>;
  priority: number;
  /** Time of the last change of the content; default `storedAt`. */
  changedAt?: Date | undefined;
}

/** The presently served catalogs. */
export interface CatalogSet {
  /** Sorted by name. */
  list(): readonly ServedCatalog[];
  find(name: string): ServedCatalog | undefined;
  /** Reports whether a catalog without content will be served. */
  isExpected(name: string): boolean;
  /** Reports whether all catalogs are served. */
  isReady(): boolean;
}

const pieceBytes = 256 * 1024;

/**
 * Content of a served catalog: `catalog.jsonl`, one blob with sorted keys per line in walk order, and its index.
 * Immutable; a new state of the catalog is another StoredContent.
 */
export class StoredContent {
  /** `sha256:…` of `catalog.jsonl`. */
  readonly hash: string;
  /** Time at which this content was first stored. */
  readonly storedAt: Date;
  readonly #file: ContentFile;
  readonly #index: ContentIndex;
  readonly #formsDirectory: string | undefined;
  readonly #forms = new Map<string, Promise<CompressedContent | undefined>>();
  #readers = 0;
  #closed = false;
  #done: (() => void) | undefined;

  /** Compressed forms are nameless files in `formsDirectory`; without it, none are kept. */
  constructor(
    file: ContentFile,
    index: ContentIndex,
    { hash, storedAt }: ContentState,
    formsDirectory: string | undefined,
  ) {
    this.#file = file;
    this.#index = index;
    this.#formsDirectory = formsDirectory;
    this.hash = hash;
    this.storedAt = storedAt;
  }

  /** Size of `catalog.jsonl` in bytes. */
  get size(): number {
    return this.#index.size;
  }

  /** Number of blobs. */
  get count(): number {
    return this.#index.count;
  }

  /** Package names, sorted. */
  get packages(): readonly string[] {
    return this.#index.packages;
  }

  /** Returns the sections of matching blobs, in order, adjacent ones joined. */
  find(query: MetasQuery): readonly Section[] {
    return this.#index.find(query);
  }

  /** Yields matching blobs, in order. */
  blobs(query: MetasQuery) {
    return this.#index.blobs(query);
  }

  /** Streams a section, by default everything. Throws OpmateError once closed. */
  open(section: Section = { offset: 0, length: this.size }): Readable {
    const reader = this.openReader();
    let position = section.offset;
    const end = section.offset + section.length;
    return new Readable({
      read(size) {
        const part = Buffer.allocUnsafe(Math.min(size, end - position));
        if (part.length === 0) return void this.push(null);
        reader.read(part, position).then(
          () => {
            position += part.length;
            this.push(part);
          },
          (error: Error) => this.destroy(error),
        );
      },
      destroy(error, done) {
        reader.close();
        done(error);
      },
      highWaterMark: pieceBytes,
    });
  }

  /** Opens a reader into buffers of the caller. Throws OpmateError once closed. */
  openReader(): ContentReader {
    if (this.#closed) throw new OpmateError('INTERNAL', `${this.hash}: closed`);
    this.#readers++;
    let isOpen = true;
    let pending = 0;
    // Closing during a read could pass its descriptor number to another file.
    const release = (): void => {
      if (isOpen || pending > 0) return;
      if (--this.#readers === 0) this.#done?.();
    };
    return {
      read: async (target, position) => {
        if (!isOpen) throw new OpmateError('INTERNAL', `${this.hash}: closed reader`);
        pending++;
        try {
          const length = await this.#file.read(target, position);
          if (length < target.length) throw new OpmateError('IO', `${this.hash}: truncated`);
        } finally {
          pending--;
          release();
        }
      },
      close: () => {
        if (!isOpen) return;
        isOpen = false;
        release();
      },
    };
  }

  /**
   * Returns the compressed content, created with the first call and kept with the content; undefined without a place for
   * it. The caller must keep a reader open.
   */
  async compressed(
    coding: string,
    createCompressor: () => Transform,
  ): Promise<CompressedContent | undefined> {
    let making = this.#forms.get(coding);
    if (making === undefined) this.#forms.set(coding, (making = this.#compress(createCompressor)));
    const form = await making;
    return form?.isBroken === true ? undefined : form;
  }

  async #compress(createCompressor: () => Transform): Promise<CompressedContent | undefined> {
    if (this.#formsDirectory === undefined) return undefined;
    try {
      const handle = await openNamelessFile(this.#formsDirectory);
      const file = new DiskFile(handle, `${this.hash}, compressed`);
      return new CompressedContent(this.#pieces(), createCompressor(), file);
    } catch {
      // Responses are compressed one by one where no file can be written.
      return undefined;
    }
  }

  /** Yields all bytes without a reader, which `close` would wait for. */
  async *#pieces(): AsyncGenerator<Buffer, void, undefined> {
    for (let index = 0; index < this.size; index += pieceBytes) {
      const piece = Buffer.allocUnsafe(Math.min(pieceBytes, this.size - index));
      await this.#file.read(piece, index);
      yield piece;
    }
  }

  /** Closes the content after its last reader. */
  async close(): Promise<void> {
    if (this.#closed) return;
    this.#closed = true;
    if (this.#readers > 0) await new Promise<void>((resolve) => (this.#done = resolve));
    for (const form of this.#forms.values()) await (await form)?.close();
    await this.#file.close();
  }
}
