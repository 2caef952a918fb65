import { Readable } from 'node:stream';

/** A stream of content in memory; taking `bytes` costs less than reading it. */
export class MemoryStream extends Readable {
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
