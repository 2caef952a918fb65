import type { CancelOptions } from '../core/concurrency.js';
import { encodeMessage, readFields } from '../serve/grpc/protobuf.js';
import type { GrpcConnection } from './grpc-connection.js';

/** What a server says of itself; `UNKNOWN` also for a word of later times. */
export type HealthStatus = 'UNKNOWN' | 'SERVING' | 'NOT_SERVING' | 'SERVICE_UNKNOWN';

const statuses: readonly HealthStatus[] = ['UNKNOWN', 'SERVING', 'NOT_SERVING', 'SERVICE_UNKNOWN'];

/**
 * Asks a gRPC server whether it, or one of its services, is well. Throws what the connection throws: OpmateError
 * NOT_FOUND for a service that it does not have. (Source: grpc.health.v1.)
 */
export async function checkHealth(
  connection: GrpcConnection,
  service: string,
  { signal }: CancelOptions = {},
): Promise<HealthStatus> {
  const request = encodeMessage((message) => message.text(1, service));
  const answer = await connection.call({ path: '/grpc.health.v1.Health/Check', request, signal });
  let status: HealthStatus = 'UNKNOWN';
  for (const { field, number } of readFields(answer))
    if (field === 1 && number !== undefined) status = statuses[number] ?? 'UNKNOWN';
  return status;
}
