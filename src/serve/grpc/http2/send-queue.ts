import type { FrameWriter } from './frame-writer.js';
import { emptyTableUpdate } from './hpack.js';
import {
  ConnectionError,
  defaultFrameSize,
  defaultWindow,
  errorCodes,
  frameTypes,
  maxWindow,
} from './protocol.js';
import type { Http2Stream } from './stream.js';

/** Unwritten bytes at which streams stop sending. */
const maxUnwrittenBytes = 128 * 1024;

/** Sends responses: one frame per stream in turn, as far as the flow-control windows and the system allow. */
export class SendQueue {
  readonly #writer: FrameWriter;
  readonly #onResponseEnd: (stream: Http2Stream) => void;
  #streams: Http2Stream[] = [];
  #window = defaultWindow;
  /** Maximum payload of a frame, a setting of the client. */
  frameSize = defaultFrameSize;
  /** The client has limited the header table; the next block says that ours is empty. */
  needsTableUpdate = false;

  constructor(writer: FrameWriter, onResponseEnd: (stream: Http2Stream) => void) {
    this.#writer = writer;
    this.#onResponseEnd = onResponseEnd;
  }

  /** Adds a stream that has something to send, unless it is queued already. */
  add(stream: Http2Stream): void {
    if (stream.isScheduled) return;
    stream.isScheduled = true;
    this.#streams.push(stream);
  }

  clear(): void {
    this.#streams = [];
  }

  /** Enlarges the window of the connection. Throws ConnectionError FLOW_CONTROL_ERROR. */
  addWindow(bytes: number): void {
    this.#window += bytes;
    if (this.#window > maxWindow) {
      throw new ConnectionError(errorCodes.FLOW_CONTROL_ERROR, 'connection window exceeds 2^31-1 bytes');
    }
  }

  /** Passes frames to the writer until nothing is left to send or the windows or the system allow no more. */
  send(): void {
    while (this.#streams.length > 0 && this.#writer.unwrittenBytes < maxUnwrittenBytes) {
      const [stream] = this.#streams as [Http2Stream];
      if (stream.hasPieces && !stream.isClosed && stream.sendWindow > 0 && this.#window <= 0) break;
      this.#streams.shift();
      stream.isScheduled = false;
      this.#sendFrame(stream);
    }
  }

  /** Sends one frame of a stream, and its trailers after the last. */
  #sendFrame(stream: Http2Stream): void {
    if (stream.isClosed) return;
    if (stream.hasPieces) {
      const limit = Math.min(this.frameSize, this.#window, stream.sendWindow);
      if (limit <= 0) return;
      const { bytes, whenTaken } = stream.takePiece(limit);
      this.#writer.begin(frameTypes.DATA, 0, stream.id, bytes.length);
      this.#writer.add(bytes);
      this.#window -= bytes.length;
      stream.sendWindow -= bytes.length;
      if (whenTaken !== undefined) this.#writer.afterwards(whenTaken);
    }
    const { trailers } = stream;
    if (trailers !== undefined) this.sendHeaders(stream, trailers, true);
    else if (stream.hasPieces) this.add(stream);
  }

  /** Passes a header block to the writer, ahead of all queued frames. */
  sendHeaders(stream: Http2Stream, block: Buffer, isLast: boolean): void {
    const whole = this.needsTableUpdate ? Buffer.concat([emptyTableUpdate, block]) : block;
    this.needsTableUpdate = false;
    this.#writer.headers(stream.id, whole, isLast, this.frameSize);
    if (isLast) this.#onResponseEnd(stream);
  }
}
