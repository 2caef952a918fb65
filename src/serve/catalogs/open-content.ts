import { Readable, type Transform } from 'node:stream';
import { OpmateError } from '../../core/errors.js';
import { openNamelessFile } from '../../files/nameless-file.js';
import { CompressedContent } from './compressed-content.js';
import { type ContentFile, DiskFile } from './content-file.js';
import type { ContentIndex, ContentState, MetasQuery, Section } from './content-index.js';
import type { ContentReader, StoredContent } from './stored-content.js';

const pieceBytes = 256 * 1024;

/** A content whose file is open. */
export class OpenContent implements StoredContent {
  readonly hash: string;
  readonly storedAt: Date;
  readonly #file: ContentFile;
  readonly #index: ContentIndex;
  readonly #formsDirectory: string | undefined;
  readonly #forms = new Map<string, Promise<CompressedContent | undefined>>();
  #readers = 0;
  #closed = false;
  #done: (() => void) | undefined;

  /** Compressed forms are nameless files of `formsDirectory`; none are kept without one. */
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

  get size(): number {
    return this.#index.size;
  }

  get count(): number {
    return this.#index.count;
  }

  get packages(): readonly string[] {
    return this.#index.packages;
  }

  find(query: MetasQuery): readonly Section[] {
    return this.#index.find(query);
  }

  blobs(query: MetasQuery) {
    return this.#index.blobs(query);
  }

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

  openReader(): ContentReader {
    if (this.#closed) throw new OpmateError('INTERNAL', `${this.hash}: has been closed`);
    this.#readers++;
    let isOpen = true;
    let pending = 0;
    // The file must not be closed under a read that is under way: its number may be given to another file.
    const release = (): void => {
      if (isOpen || pending > 0) return;
      if (--this.#readers === 0) this.#done?.();
    };
    return {
      read: async (target, position) => {
        if (!isOpen) throw new OpmateError('INTERNAL', `${this.hash}: reader has been closed`);
        pending++;
        try {
          const length = await this.#file.read(target, position);
          if (length < target.length) throw new OpmateError('IO', `${this.hash}: ends too early`);
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
      // Each response is compressed where nothing can be kept.
      return undefined;
    }
  }

  /** All bytes, for those that closing does not wait for. */
  async *#pieces(): AsyncGenerator<Buffer, void, undefined> {
    for (let index = 0; index < this.size; index += pieceBytes) {
      const piece = Buffer.allocUnsafe(Math.min(pieceBytes, this.size - index));
      await this.#file.read(piece, index);
      yield piece;
    }
  }

  async close(): Promise<void> {
    if (this.#closed) return;
    this.#closed = true;
    if (this.#readers > 0) await new Promise<void>((resolve) => (this.#done = resolve));
    for (const form of this.#forms.values()) await (await form)?.close();
    await this.#file.close();
  }
}
