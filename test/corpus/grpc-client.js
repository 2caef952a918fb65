// A client of the registry API that knows nothing of it but the reflection API, like grpcurl.
import { fileURLToPath } from 'node:url';
import { createRequire } from 'node:module';
import grpc from '@grpc/grpc-js';
import { loadSync, loadFileDescriptorSetFromBuffer } from '@grpc/proto-loader';

const shown = { keepCase: true, defaults: true, arrays: true, enums: String, longs: String };
const schemas = fileURLToPath(new URL('../../schemas/', import.meta.url));
const codeNames = Object.fromEntries(
  Object.entries(grpc.status).map(([name, code]) => [code, name.replace(/_/g, '')]),
);
// Any of the libraries that the client stands on; loaded from where that library has it.
const require = createRequire(createRequire(import.meta.url).resolve('@grpc/proto-loader'));
const { FileDescriptorProto, FileDescriptorSet } = require('protobufjs/ext/descriptor');

/** Connects to `HOST:PORT` and learns by reflection what is there. */
export async function connect(target, credentials = grpc.credentials.createInsecure(), options = {}) {
  const ask = reflect(target, credentials, options);
  const [{ list_services_response: list }] = await ask([{ list_services: '' }]);
  const services = list.service.map(({ name }) => name);
  const files = new Map();
  const learn = async (request) => {
    const [answer] = await ask([request]);
    if (answer.error_response) throw new Error(answer.error_response.error_message);
    for (const bytes of answer.file_descriptor_response.file_descriptor_proto) {
      const file = FileDescriptorProto.decode(bytes);
      files.set(file.name, file);
    }
  };
  for (const service of services) await learn({ file_containing_symbol: service });
  const set = FileDescriptorSet.create({ file: [...files.values()] });
  const definitions = loadFileDescriptorSetFromBuffer(
    Buffer.from(FileDescriptorSet.encode(set).finish()),
    shown,
  );
  const clients = new Map();
  const clientOf = (service) => {
    if (!clients.has(service)) {
      const Client = grpc.makeGenericClientConstructor(definitions[service], service);
      clients.set(service, new Client(target, credentials, options));
    }
    return clients.get(service);
  };
  return {
    files,
    listServices: () => Promise.resolve(services),
    codeName: (code) => codeNames[code],
    /** All messages of an answer. Rejects with the status. */
    call(method, request, { service = 'api.Registry', metadata = {} } = {}) {
      const client = clientOf(service);
      const sent = grpc.Metadata.fromHttp2Headers(metadata);
      return new Promise((resolve, reject) => {
        if (!definitions[service][method].responseStream) {
          client[method](request, sent, (error, answer) => (error ? reject(error) : resolve([answer])));
          return;
        }
        const rows = [];
        const stream = client[method](request, sent);
        stream.on('data', (row) => rows.push(row));
        stream.on('end', () => resolve(rows));
        stream.on('error', reject);
      });
    },
    close: () => clients.forEach((client) => client.close()),
  };
}

function reflect(target, credentials, options) {
  const definition = loadSync('grpc/reflection/v1/reflection.proto', { ...shown, includeDirs: [schemas] });
  const name = 'grpc.reflection.v1.ServerReflection';
  const Client = grpc.makeGenericClientConstructor(definition[name], name);
  return (requests) =>
    new Promise((resolve, reject) => {
      const client = new Client(target, credentials, options);
      const stream = client.ServerReflectionInfo();
      const answers = [];
      stream.on('data', (answer) => {
        answers.push(answer);
        if (answers.length === requests.length) stream.end();
      });
      stream.on('end', () => {
        client.close();
        resolve(answers);
      });
      stream.on('error', reject);
      for (const request of requests) stream.write(request);
    });
}
