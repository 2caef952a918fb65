import type { IncomingMessage } from 'node:http';

/** Maximum bytes of a too large body that are read, so that the client receives the response. */
const maxDiscardedBytes = 8 * 1024 * 1024;

/** Reads the body of a request. Rejects with the error of `refuse` if it exceeds `maxBytes` or is interrupted. */
export function readBody(request: IncomingMessage, maxBytes: number, refuse: () => Error): Promise<Buffer> {
  // Leaving a loop over the request would close the connection before the response is sent.
  return new Promise((resolve, reject) => {
    const chunks: Buffer[] = [];
    let size = 0;
    const take = (chunk: Buffer): void => {
      size += chunk.length;
      if (size <= maxBytes) chunks.push(chunk);
      else chunks.length = 0;
      if (size > maxDiscardedBytes) {
        request.off('data', take).pause();
        reject(refuse());
      }
    };
    request.on('data', take);
    request.once('end', () => {
      if (size > maxBytes) reject(refuse());
      else resolve(Buffer.concat(chunks));
    });
    request.once('close', () => reject(refuse()));
    request.once('error', () => reject(refuse()));
  });
}
