import { OpmateError } from '../../core/errors.js';
import { quoteGo } from '../../document/go-json.js';
import type { Awaitable, CallHeaders, GrpcMethod, Messages } from './transport/call.js';
import type { GrpcService } from './transport/transport.js';
import {
  channelEntryType,
  encodeStruct,
  packageNameType,
  requestTypes,
} from '../../catalog/content/messages.js';
import type { RegistryQueriesSet } from './named-queries.js';
import { type Encodable, type MessageType, messageType } from '../../catalog/content/protobuf.js';
import { createReflection } from './reflection.js';
import type { RegistryQueries } from './registry-queries.js';

/** Creates the services of a registry; custom schemas only for catalogs with blobs. */
export function createRegistryServices(queries: RegistryQueries | RegistryQueriesSet): GrpcService[] {
  const find = createFinder(queries);
  const services = [createRegistryService(find), createHealthService()];
  if ('lease' in queries || queries.listCustomSchemas !== undefined)
    services.push(createExperimentalService(find));
  const versions = ['grpc.reflection.v1.ServerReflection', 'grpc.reflection.v1alpha.ServerReflection'];
  const reply = createReflection([...services.map(({ name }) => name), ...versions]);
  const methods = { ServerReflectionInfo: { kind: 'bidi-stream', level: 'debug', reply } } as const;
  return [...services, ...versions.map((name) => ({ name, methods }))];
}

function* encodeAll<T extends object>(
  items: Iterable<Encodable<T>>,
  type: MessageType<T>,
): Generator<Uint8Array> {
  for (const item of items) yield type.encode(item);
}

/** Runs work with the queries for an authority, which stay open until it ends. */
interface Finder {
  unary(authority: string, work: (queries: RegistryQueries) => Awaitable<Uint8Array>): Awaitable<Uint8Array>;
  stream(authority: string, work: (queries: RegistryQueries) => Messages): Messages;
}

function createFinder(queries: RegistryQueries | RegistryQueriesSet): Finder {
  if (!('lease' in queries)) {
    return { unary: (_, work) => work(queries), stream: (_, work) => work(queries) };
  }
  return {
    async unary(authority, work) {
      const lease = await queries.lease(authority);
      try {
        return await work(lease.queries);
      } finally {
        lease.release();
      }
    },
    async *stream(authority, work) {
      const lease = await queries.lease(authority);
      try {
        yield* work(lease.queries);
      } finally {
        lease.release();
      }
    },
  };
}

function createRegistryService(find: Finder): GrpcService {
  const methods: Record<string, GrpcMethod> = {};
  const unary = <T>(
    name: string,
    type: { decode(bytes: Buffer): T },
    reply: (queries: RegistryQueries, request: T) => Awaitable<Uint8Array>,
  ): void => {
    methods[name] = {
      kind: 'unary',
      level: 'info',
      reply: (bytes, { authority }) => {
        const request = type.decode(bytes);
        return find.unary(authority, (queries) => reply(queries, request));
      },
    };
  };
  const stream = (name: string, reply: (queries: RegistryQueries, request: Buffer) => Messages): void => {
    methods[name] = {
      kind: 'server-stream',
      level: 'info',
      reply: (request, { authority }) => find.stream(authority, (queries) => reply(queries, request)),
    };
  };
  stream('ListPackages', (queries) =>
    encodeAll(
      queries.listPackages().map((name) => ({ name })),
      packageNameType,
    ),
  );
  unary('GetPackage', requestTypes.getPackage, (queries, { name }) => queries.getPackage(name));
  unary('GetBundle', requestTypes.getBundle, (queries, { pkgName, channelName, csvName }) =>
    queries.getBundle(pkgName, channelName, csvName),
  );
  unary('GetBundleForChannel', requestTypes.getBundleInChannel, (queries, { pkgName, channelName }) =>
    queries.getBundleForChannel(pkgName, channelName),
  );
  stream('GetChannelEntriesThatReplace', (queries, request) => {
    const { csvName } = requestTypes.getAllReplacements.decode(request);
    return encodeAll(queries.getChannelEntriesThatReplace(csvName), channelEntryType);
  });
  unary('GetBundleThatReplaces', requestTypes.getReplacement, (queries, { csvName, pkgName, channelName }) =>
    queries.getBundleThatReplaces(csvName, pkgName, channelName),
  );
  stream('GetChannelEntriesThatProvide', (queries, request) => {
    const api = requestTypes.getAllProviders.decode(request);
    return encodeAll(queries.getChannelEntriesThatProvide(api), channelEntryType);
  });
  stream('GetLatestChannelEntriesThatProvide', (queries, request) => {
    const api = requestTypes.getLatestProviders.decode(request);
    return encodeAll(queries.getLatestChannelEntriesThatProvide(api), channelEntryType);
  });
  unary('GetDefaultBundleThatProvides', requestTypes.getDefaultProvider, (queries, api) =>
    queries.getDefaultBundleThatProvides(api),
  );
  stream('ListBundles', (queries) => queries.listBundles());
  return { name: 'api.Registry', methods };
}

const customNamePattern = /^[a-zA-Z0-9][a-zA-Z0-9._-]*$/;

function createExperimentalService(find: Finder): GrpcService {
  async function* listCustomSchemas(
    request: Buffer,
    { headers, authority }: CallHeaders,
  ): AsyncGenerator<Uint8Array> {
    // Values of a repeated header are joined by commas.
    const [acknowledged] = String(headers['x-acknowledge-experimental']).split(',');
    if (acknowledged?.trim() !== 'true') return;
    const { schema, packageName } = requestTypes.listCustomSchemas.decode(request);
    if (schema === '') throw new OpmateError('USAGE', 'schema is required');
    for (const [field, name] of Object.entries({ schema, packageName })) {
      if (name === '' || customNamePattern.test(name)) continue;
      const fault = `invalid ${field} ${quoteGo(name)}: must match ${customNamePattern.source}`;
      throw new OpmateError('USAGE', `invalid custom schema query: ${fault}`);
    }
    yield* find.stream(authority, async function* (queries) {
      const blobs = queries.listCustomSchemas?.(schema, packageName) ?? [];
      for await (const blob of blobs) yield encodeStruct(blob);
    });
  }
  return {
    name: 'api.ExperimentalRegistry',
    methods: {
      ExperimentalListPackageCustomSchemas: {
        kind: 'server-stream',
        level: 'info',
        reply: listCustomSchemas,
      },
    },
  };
}

/** Creates the health service; every service is healthy once it is reachable. */
function createHealthService(): GrpcService {
  const serving = messageType<{ status: number }>('grpc.health.v1.HealthCheckResponse').encode({ status: 1 });
  return {
    name: 'grpc.health.v1.Health',
    methods: { Check: { kind: 'unary', level: 'debug', reply: () => serving } },
  };
}
