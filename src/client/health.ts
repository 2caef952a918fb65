import type { CancelOptions } from '../core/concurrency.js';
import { messageType } from '../catalog/content/protobuf.js';
import type { GrpcChannel } from './grpc-connection.js';

/** Reported health; `UNKNOWN` includes statuses of later versions. */
export type HealthStatus = 'UNKNOWN' | 'SERVING' | 'NOT_SERVING' | 'SERVICE_UNKNOWN';

const statuses: readonly HealthStatus[] = ['UNKNOWN', 'SERVING', 'NOT_SERVING', 'SERVICE_UNKNOWN'];
const requestType = messageType<{ service: string }>('grpc.health.v1.HealthCheckRequest');
const responseType = messageType<{ status: number }>('grpc.health.v1.HealthCheckResponse');

/**
 * Checks the health of a gRPC server or one of its services. Throws as the connection: OpmateError NOT_FOUND for an
 * unknown service. (Source: grpc.health.v1.)
 */
export async function checkHealth(
  connection: GrpcChannel,
  service: string,
  { signal }: CancelOptions = {},
): Promise<HealthStatus> {
  const request = requestType.encode({ service });
  const response = await connection.call({ path: '/grpc.health.v1.Health/Check', request, signal });
  return statuses[responseType.decode(response).status] ?? 'UNKNOWN';
}
