import { Readable } from 'node:stream';

/** A stream of content that is in memory; who wants the whole of it takes `bytes`, which costs less than to read it. */
export class HeldContent extends Readable {
  readonly bytes: Buffer;

  constructor(bytes: Buffer) {
    super();
    this.bytes = bytes;
  }

  override _read(): void {
    if (this.bytes.length > 0) this.push(this.bytes);
    this.push(null);
  }
}
