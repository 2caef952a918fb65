// Writes dist/proto-descriptors.json from the .proto files in schemas/: the descriptors that reflection returns, and
// the tables by which messages are encoded and decoded.
import { readFileSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { fileURLToPath } from 'node:url';
import protobuf from 'protobufjs';
import 'protobufjs/ext/descriptor/index.js';

const root = path.dirname(path.dirname(fileURLToPath(import.meta.url)));
const schemas = path.join(root, 'schemas');
const names = [
  'google/protobuf/struct.proto',
  'registry.proto',
  'grpc/health/v1/health.proto',
  'grpc/reflection/v1/reflection.proto',
];
const { FileDescriptorProto } = protobuf.descriptor;

const sources = new Map(names.map((name) => [name, readFileSync(path.join(schemas, name), 'utf8')]));
// v1 and v1alpha of the reflection API differ in their names only.
sources.set(
  'grpc/reflection/v1alpha/reflection.proto',
  sources.get('grpc/reflection/v1/reflection.proto').replace('reflection.v1;', 'reflection.v1alpha;'),
);

const all = new protobuf.Root();
const parsed = [...sources].map(([name, text]) => ({
  name,
  ...protobuf.parse(text, all, { keepCase: true }),
}));
all.resolveAll();

const camelCase = (name) => name.replace(/_+([^_])/g, (_, letter) => letter.toUpperCase());
const fullName = (object) => object.fullName.slice(1);

/** Type names in descriptors have to be absolute. */
function describeType(type) {
  const descriptor = type.toDescriptor('proto3');
  for (const field of descriptor.field) {
    const { map, resolvedType } = type.fields[field.name];
    field.jsonName = camelCase(field.name);
    if (map) {
      const entry = `${camelCase(`_${field.name}`)}Entry`;
      field.typeName = `.${fullName(type)}.${entry}`;
      const made = descriptor.nestedType.find(({ options }) => options?.mapEntry);
      made.name = entry;
      for (const part of made.field) {
        part.jsonName = part.name;
        if (part.name === 'value' && resolvedType !== null) part.typeName = resolvedType.fullName;
      }
    } else if (resolvedType !== null) field.typeName = resolvedType.fullName;
  }
  return descriptor;
}

function describeService(service) {
  const descriptor = service.toDescriptor();
  for (const method of descriptor.method) {
    const { resolvedRequestType, resolvedResponseType, options } = service.methods[method.name];
    method.inputType = resolvedRequestType.fullName;
    method.outputType = resolvedResponseType.fullName;
    method.options = options?.deprecated === true ? { deprecated: true } : undefined;
  }
  return descriptor;
}

const tables = {};

function addTable(type) {
  const ofField = ({ name, id, type: typeName, repeated, partOf, resolvedType }) => ({
    name: camelCase(name),
    number: id,
    type:
      resolvedType === null
        ? typeName
        : resolvedType instanceof protobuf.Enum
          ? 'enum'
          : fullName(resolvedType),
    ...(repeated && { isList: true }),
    ...(partOf && { isOneOf: true }),
  });
  tables[fullName(type)] = type.fieldsArray
    .map((field) => {
      if (!field.map) return ofField(field);
      const entry = `${fullName(type)}.${camelCase(`_${field.name}`)}Entry`;
      const key = { name: 'key', number: 1, type: field.keyType };
      tables[entry] = [key, { ...ofField(field), name: 'value', number: 2 }];
      return { name: camelCase(field.name), number: field.id, type: entry, isList: true };
    })
    .sort((a, b) => a.number - b.number);
  for (const nested of type.nestedArray) if (nested instanceof protobuf.Type) addTable(nested);
}

function symbolsIn(scope) {
  return scope.flatMap((object) => [
    fullName(object),
    ...(object instanceof protobuf.Service
      ? object.methodsArray.map((method) => `${fullName(object)}.${method.name}`)
      : symbolsIn(object instanceof protobuf.Type ? object.nestedArray : [])),
  ]);
}

const files = parsed.map(({ name, package: packageName, imports = [] }) => {
  const declared = all
    .lookup(packageName)
    .nestedArray.filter((one) => !(one.constructor === protobuf.Namespace));
  const types = declared.filter((one) => one instanceof protobuf.Type);
  for (const type of types) addTable(type);
  const descriptor = FileDescriptorProto.encode({
    name,
    package: packageName,
    dependency: imports,
    messageType: types.map(describeType),
    enumType: declared.filter((one) => one instanceof protobuf.Enum).map((one) => one.toDescriptor('proto3')),
    service: declared.filter((one) => one instanceof protobuf.Service).map(describeService),
    syntax: 'proto3',
  }).finish();
  return {
    name,
    imports,
    symbols: symbolsIn(declared),
    descriptor: Buffer.from(descriptor).toString('base64'),
  };
});
writeFileSync(path.join(root, 'dist', 'proto-descriptors.json'), `${JSON.stringify({ files, tables })}\n`);
