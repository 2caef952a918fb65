import { Writable } from 'node:stream';
import { describe, expect, it } from 'vitest';
import { OutputClosedError, writeAll } from '../../../src/cli/output.js';
import { failureOf } from '../../support/connect.js';
import { Capture } from './world.js';

/** A stream whose writes fail with a system error after so many bytes. */
function failingAfter(bytes: number, code: string): Writable {
  let seen = 0;
  return new Writable({
    write(chunk: Buffer, _encoding, done) {
      seen += chunk.length;
      setImmediate(() => done(seen > bytes ? Object.assign(new Error(`write ${code}`), { code }) : null));
    },
  });
}

async function* pieces(count: number, size: number): AsyncGenerator<string | Buffer> {
  for (let i = 0; i < count; i++) yield i % 2 === 0 ? 'x'.repeat(size) : Buffer.alloc(size, 'y');
}

describe('cli/output', () => {
  it('writes everything in order, text and bytes', async () => {
    const stream = new Capture();
    function* small(): Generator<string | Buffer> {
      yield 'ä';
      yield Buffer.from('ö\n');
      expect(stream.text).toBe('');
    }
    await writeAll(stream, small());
    expect(stream.text).toBe('äö\n');
    await writeAll(stream, pieces(4, 300_000));
    expect(stream.text).toHaveLength(3 + 1_200_000);
    expect(stream.listenerCount('error')).toBe(0);
  });

  it('waits for a slow reader and holds little meanwhile', async () => {
    let held = 0;
    const stream = new Writable({
      highWaterMark: 16 * 1024,
      write(_chunk, _encoding, done) {
        held = Math.max(held, stream.writableLength);
        setTimeout(done, 1);
      },
    });
    await writeAll(stream, pieces(100, 64 * 1024));
    expect(held).toBeLessThan(2 * 1024 * 1024);
  });

  it.each(['EPIPE', 'ERR_STREAM_DESTROYED'])(
    'tells a reader that went away (%s) from failures',
    async (code) => {
      expect(await failureOf(writeAll(failingAfter(0, code), 'text'))).toBeInstanceOf(OutputClosedError);
      expect(await failureOf(writeAll(failingAfter(1_000_000, code), pieces(100, 64 * 1024)))).toBeInstanceOf(
        OutputClosedError,
      );
    },
  );

  it('names a full disk', async () => {
    const error = await failureOf(writeAll(failingAfter(0, 'ENOSPC'), 'text'));
    expect(error.message).toBe('standard output: no space left on device');
    expect(error).not.toBeInstanceOf(OutputClosedError);
  });

  it('gives up on a stream that was closed', async () => {
    const stream = new Capture();
    stream.destroy();
    expect(await failureOf(writeAll(stream, 'text'))).toBeInstanceOf(OutputClosedError);
  });
});
