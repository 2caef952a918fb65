import { OpmateError } from '../../core/errors.js';
import { NetworkError } from './transport-faults.js';
import type { TransportResponse } from './transport.js';

/** Reads the body of a response. Throws NetworkError for a cut connection, also before reading. */
export async function* readBody({ url, body }: TransportResponse): AsyncGenerator<Buffer, void, undefined> {
  try {
    for await (const chunk of body as AsyncIterable<Buffer>) yield chunk;
  } catch (error) {
    if (error instanceof OpmateError) throw error;
    const message = `${new URL(url).host}: connection cut before the end of the response`;
    throw new NetworkError(message, { temporary: true, cause: error });
  }
}
