import { compareBytes } from '../../core/order.js';
import { type ProtoFile, messageType, readProtoFiles } from './protobuf.js';

const notFound = 5;

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

/** Responds to messages of the reflection API; v1 and v1alpha differ in their names only. */
export class Reflection {
  readonly #services: readonly string[];
  readonly #requestType = messageType<ReflectionRequest>('grpc.reflection.v1.ServerReflectionRequest');
  readonly #responseType = messageType<ReflectionResponse>('grpc.reflection.v1.ServerReflectionResponse');
  readonly #files = new Map<string, ProtoFile>();
  readonly #filesBySymbol = new Map<string, ProtoFile>();

  /** `services` are the full names of the server's services. */
  constructor(services: readonly string[]) {
    this.#services = [...services].sort(compareBytes);
    for (const file of readProtoFiles()) {
      this.#files.set(file.name, file);
      for (const symbol of file.symbols) this.#filesBySymbol.set(symbol, file);
    }
  }

  /** Returns the response to one `ServerReflectionRequest`. Throws OpmateError SYNTAX. */
  respond(bytes: Uint8Array): Buffer {
    const request = this.#requestType.decode(bytes);
    return this.#responseType.encode({
      validHost: request.host,
      originalRequest: bytes,
      ...this.#createResponse(request),
    });
  }

  #createResponse(request: ReflectionRequest): Partial<ReflectionResponse> {
    const { fileByFilename: name, fileContainingSymbol: symbol, allExtensionNumbersOfType: type } = request;
    if (request.listServices !== undefined) {
      return { listServicesResponse: { service: this.#services.map((service) => ({ name: service })) } };
    }
    if (type !== undefined && this.#filesBySymbol.has(type)) {
      return { allExtensionNumbersResponse: { baseTypeName: type } };
    }
    const file = name !== undefined ? this.#files.get(name) : this.#filesBySymbol.get(symbol ?? '');
    if (file === undefined) {
      const errorMessage = `${truncate(name ?? symbol ?? type ?? 'extension')} not found`;
      return { errorResponse: { errorCode: notFound, errorMessage } };
    }
    const files = [file, ...file.imports.flatMap((imported) => this.#files.get(imported) ?? [])];
    return { fileDescriptorResponse: { fileDescriptorProto: files.map(({ descriptor }) => descriptor) } };
  }
}

function truncate(text: string): string {
  return text.length > 200 ? `${text.slice(0, 200)}…` : text;
}
