/** A client of the registry API, by the libraries that other programs use, from `schemas/registry.proto`. */
import path from 'node:path';
import {
  ChannelCredentials,
  type Client,
  Metadata,
  type ServiceError,
  makeGenericClientConstructor,
} from '@grpc/grpc-js';
import { loadSync } from '@grpc/proto-loader';
import { projectRoot } from './command-line.js';

type Message = Record<string, unknown>;
type Call = (request: Message, metadata: Metadata, done?: unknown) => unknown;

const definitions = loadSync(['registry.proto', 'grpc/health/v1/health.proto'], {
  includeDirs: [path.join(projectRoot, 'schemas')],
  keepCase: true,
  defaults: true,
  arrays: true,
  enums: String,
});

export interface RegistryClient {
  /** All messages of an answer; rejects with a ServiceError. */
  call(method: string, request?: Message, metadata?: Record<string, string>): Promise<Message[]>;
  /** `CODE: text` of the error that a call ends with. */
  failure(method: string, request?: Message, metadata?: Record<string, string>): Promise<string>;
  close(): void;
}

/** Connects when it is first used. `service` is another than `api.Registry`; `authority` a host name other than the address. */
export function registryClient(
  port: number,
  {
    service = 'api.Registry',
    credentials = ChannelCredentials.createInsecure(),
    authority,
  }: { service?: string; credentials?: ChannelCredentials; authority?: string } = {},
): RegistryClient {
  const definition = definitions[service] as never;
  const Constructor = makeGenericClientConstructor(definition, service);
  const client = new Constructor(`127.0.0.1:${port}`, credentials, {
    'grpc.max_receive_message_length': -1,
    'grpc.use_local_subchannel_pool': 1,
    ...(authority !== undefined && { 'grpc.default_authority': authority }),
  });
  const self: RegistryClient = {
    call(method, request = {}, headers = {}) {
      const metadata = new Metadata();
      for (const [name, value] of Object.entries(headers)) metadata.set(name, value);
      const run = (client as unknown as Record<string, Call>)[method]?.bind(client) as Call;
      const { responseStream } = (definition as Record<string, { responseStream: boolean }>)[method] as never;
      return new Promise((resolve, reject) => {
        if (!responseStream) {
          run(request, metadata, (error: ServiceError | null, answer: Message) =>
            error === null ? resolve([answer]) : reject(error),
          );
          return;
        }
        const rows: Message[] = [];
        const stream = run(request, metadata) as NodeJS.ReadableStream;
        stream.on('data', (row) => rows.push(row as unknown as Message));
        stream.on('end', () => resolve(rows));
        stream.on('error', reject);
      });
    },
    async failure(...args) {
      try {
        await self.call(...args);
      } catch (error) {
        const { code, details } = error as ServiceError;
        return `${code}: ${details}`;
      }
      return 'no failure';
    },
    close: () => (client as unknown as Client).close(),
  };
  return self;
}
