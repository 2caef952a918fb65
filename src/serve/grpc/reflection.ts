import { sortedByBytes } from '../../core/order.js';
import { messageType, readProtoFiles } from '../../catalog/content/protobuf.js';
import { statusCodes } from './transport/status.js';

interface ReflectionRequest {
  host: string;
  fileByFilename: string | undefined;
  fileContainingSymbol: string | undefined;
  allExtensionNumbersOfType: string | undefined;
  listServices: string | undefined;
}

interface ReflectionResponse {
  validHost: string;
  originalRequest: ReflectionRequest;
  fileDescriptorResponse: { fileDescriptorProto: Uint8Array[] };
  allExtensionNumbersResponse: { baseTypeName: string };
  listServicesResponse: { service: { name: string }[] };
  errorResponse: { errorCode: number; errorMessage: string };
}

/**
 * Returns a function that responds to messages of the reflection API; v1 and v1alpha differ in their names only.
 * `services` are the full names of the server's services. The response throws OpmateError SYNTAX.
 */
export function createReflection(services: readonly string[]): (bytes: Uint8Array) => Buffer {
  const requestType = messageType<ReflectionRequest>('grpc.reflection.v1.ServerReflectionRequest');
  const responseType = messageType<ReflectionResponse>('grpc.reflection.v1.ServerReflectionResponse');
  const service = sortedByBytes(services).map((name) => ({ name }));
  const protoFiles = readProtoFiles();
  const files = new Map(protoFiles.map((file) => [file.name, file]));
  const filesBySymbol = new Map(
    protoFiles.flatMap((file) => file.symbols.map((symbol) => [symbol, file] as const)),
  );

  return (bytes) => {
    const request = requestType.decode(bytes);
    return responseType.encode({
      validHost: request.host,
      originalRequest: bytes,
      ...createResponse(request),
    });
  };

  function createResponse(request: ReflectionRequest): Partial<ReflectionResponse> {
    const { fileByFilename: name, fileContainingSymbol: symbol, allExtensionNumbersOfType: type } = request;
    if (request.listServices !== undefined) return { listServicesResponse: { service } };
    if (type !== undefined && filesBySymbol.has(type)) {
      return { allExtensionNumbersResponse: { baseTypeName: type } };
    }
    const file = name !== undefined ? files.get(name) : filesBySymbol.get(symbol ?? '');
    if (file === undefined) {
      const errorMessage = `${truncate(name ?? symbol ?? type ?? 'extension')} not found`;
      return { errorResponse: { errorCode: statusCodes.NOT_FOUND, errorMessage } };
    }
    const sent = [file, ...file.imports.flatMap((imported) => files.get(imported) ?? [])];
    return { fileDescriptorResponse: { fileDescriptorProto: sent.map(({ descriptor }) => descriptor) } };
  }
}

function truncate(text: string): string {
  return text.length > 200 ? `${text.slice(0, 200)}…` : text;
}
