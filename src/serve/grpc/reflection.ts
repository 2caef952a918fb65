import { readFile } from 'node:fs/promises';
import { fileURLToPath } from 'node:url';
import path from 'node:path';
import { compareBytes } from '../../core/order.js';
import { type ProtoFile, parseProtoFile } from './proto-file.js';
import { encodeMessage, readTexts } from './protobuf.js';

/** The `.proto` files in `schemas/`, each after those that it imports. */
const files: readonly { name: string; imports: readonly string[] }[] = [
  { name: 'google/protobuf/struct.proto', imports: [] },
  { name: 'registry.proto', imports: ['google/protobuf/struct.proto'] },
  { name: 'grpc/health/v1/health.proto', imports: [] },
  { name: 'grpc/reflection/v1/reflection.proto', imports: [] },
];

const reflectionFile = 'grpc/reflection/v1/reflection.proto';
const notFound = 5;
/** Field numbers of ServerReflectionRequest and ServerReflectionResponse. */
const asks = { fileByName: 3, fileOfSymbol: 4, extensionsOfType: 6, services: 7 } as const;
const answers = { files: 4, extensions: 5, services: 6, error: 7 } as const;

/** Answers the messages of the reflection API, of which v1 and v1alpha are the same but for their names. */
export interface Reflection {
  /** One answer to one `ServerReflectionRequest`. */
  answer(request: Uint8Array): Buffer;
}

/** Makes reflection on the services that a server has, by their full names. Throws OpmateError when it cannot be read. */
export async function loadReflection(services: readonly string[]): Promise<Reflection> {
  const root = fileURLToPath(new URL('../../../schemas/', import.meta.url));
  const known = new Map<string, ProtoFile>();
  for (const { name, imports } of files) {
    const text = await readFile(path.join(root, name), 'utf8');
    const imported = imports.flatMap((one) => known.get(one) ?? []);
    known.set(name, parseProtoFile(name, text, imported));
    if (name !== reflectionFile) continue;
    const alpha = name.replace('/v1/', '/v1alpha/');
    const alphaText = text.replace('grpc.reflection.v1;', 'grpc.reflection.v1alpha;');
    known.set(alpha, parseProtoFile(alpha, alphaText, []));
  }
  return new LoadedReflection(known, [...services].sort(compareBytes));
}

class LoadedReflection implements Reflection {
  readonly #files: ReadonlyMap<string, ProtoFile>;
  readonly #services: readonly string[];
  readonly #fileOf = new Map<string, ProtoFile>();

  constructor(known: ReadonlyMap<string, ProtoFile>, services: readonly string[]) {
    this.#files = known;
    this.#services = services;
    for (const file of known.values()) for (const symbol of file.symbols) this.#fileOf.set(symbol, file);
  }

  answer(request: Uint8Array): Buffer {
    const asked = readTexts(request);
    return encodeMessage((response) => {
      response.text(1, asked.get(1) ?? '').bytes(2, request);
      const name = asked.get(asks.fileByName);
      const symbol = asked.get(asks.fileOfSymbol);
      const type = asked.get(asks.extensionsOfType);
      const fail = (message: string): void =>
        void response.message(answers.error, (error) => error.varint(1, notFound).text(2, message));
      if (asked.has(asks.services)) {
        response.message(answers.services, (list) => {
          for (const service of this.#services) list.message(1, (one) => one.text(1, service));
        });
        return;
      }
      if (type !== undefined && this.#fileOf.has(type)) {
        response.message(answers.extensions, (list) => list.text(1, type));
        return;
      }
      const file = name !== undefined ? this.#files.get(name) : this.#fileOf.get(symbol ?? '');
      if (file === undefined) return fail(`${shortened(name ?? symbol ?? type ?? 'extension')} not found`);
      response.message(answers.files, (list) => {
        for (const one of this.#withImports(file)) list.bytes(1, one.descriptor);
      });
    });
  }

  #withImports(file: ProtoFile): ProtoFile[] {
    return [file, ...file.imports.flatMap((name) => this.#files.get(name) ?? [])];
  }
}

function shortened(text: string): string {
  return text.length > 200 ? `${text.slice(0, 200)}…` : text;
}
