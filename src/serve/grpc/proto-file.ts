import { OpmateError } from '../../core/errors.js';
import { type MessageWriter, encodeMessage } from './protobuf.js';

/**
 * A reader of the `.proto` files that come with opmate, as far as these go: what they say becomes the descriptor
 * that reflection hands out. (Source: protobuf.dev, language guide of proto3, and descriptor.proto.)
 */
export interface ProtoFile {
  /** The name by which others import it. */
  name: string;
  imports: string[];
  /** Full names of services. */
  services: string[];
  /** Full names of all that it declares, methods included. */
  symbols: string[];
  /** `google.protobuf.FileDescriptorProto` */
  descriptor: Buffer;
}

interface MessageType {
  name: string;
  fields: Field[];
  oneofs: string[];
  messages: MessageType[];
  enums: EnumType[];
  isMapEntry: boolean;
}

interface Field {
  name: string;
  type: string;
  number: number;
  isRepeated: boolean;
  oneof: number | undefined;
}

interface EnumType {
  name: string;
  values: { name: string; number: number }[];
}

interface Method {
  name: string;
  input: string;
  output: string;
  streamsIn: boolean;
  streamsOut: boolean;
  isDeprecated: boolean;
}

interface Service {
  name: string;
  methods: Method[];
}

/** `google.protobuf.FieldDescriptorProto.Type` */
const scalarTypes: Readonly<Record<string, number>> = { double: 1, int32: 5, bool: 8, string: 9, bytes: 12 };
const messageType = 11;
const enumType = 14;

/** Reads the text of a file. `imported` are the files that it imports. Throws OpmateError SYNTAX. */
export function parseProtoFile(name: string, text: string, imported: readonly ProtoFile[]): ProtoFile {
  return new Parser(name, text, imported).run();
}

class Parser {
  readonly #name: string;
  readonly #tokens: string[];
  readonly #known: Set<string>;
  #at = 0;
  #package = '';
  readonly #imports: string[] = [];
  readonly #messages: MessageType[] = [];
  readonly #enums: EnumType[] = [];
  readonly #services: Service[] = [];

  constructor(name: string, text: string, imported: readonly ProtoFile[]) {
    this.#name = name;
    this.#tokens = text.replace(/\/\/.*$/gm, '').match(/"[^"]*"|[\w.]+|[^\s\w]/g) ?? [];
    this.#known = new Set(imported.flatMap(({ symbols }) => symbols));
  }

  run(): ProtoFile {
    while (this.#at < this.#tokens.length) this.#statement();
    const symbols: string[] = [];
    const enums = new Set<string>();
    const declare = (scope: string, message: MessageType): void => {
      const full = `${scope}.${message.name}`;
      symbols.push(full);
      for (const inner of message.enums) {
        symbols.push(`${full}.${inner.name}`);
        enums.add(`${full}.${inner.name}`);
      }
      for (const inner of message.messages) declare(full, inner);
    };
    for (const message of this.#messages) declare(this.#package, message);
    for (const { name } of this.#enums) {
      symbols.push(`${this.#package}.${name}`);
      enums.add(`${this.#package}.${name}`);
    }
    const services = this.#services.map(({ name }) => `${this.#package}.${name}`);
    for (const symbol of symbols) this.#known.add(symbol);
    const descriptor = this.#describe(enums);
    const methods = this.#services.flatMap((service) =>
      service.methods.map((method) => `${this.#package}.${service.name}.${method.name}`),
    );
    const all = [...symbols, ...services, ...methods];
    return { name: this.#name, imports: this.#imports, services, symbols: all, descriptor };
  }

  #next(expected?: string): string {
    const token = this.#tokens[this.#at++];
    if (token === undefined || (expected !== undefined && token !== expected)) {
      const wanted = expected === undefined ? '' : `, expected ${expected}`;
      throw new OpmateError('SYNTAX', `${this.#name}: found ${token ?? 'the end'}${wanted}`);
    }
    return token;
  }

  #skip(token: string): boolean {
    if (this.#tokens[this.#at] !== token) return false;
    this.#at++;
    return true;
  }

  #statement(): void {
    const keyword = this.#next();
    if (keyword === 'message') this.#messages.push(this.#message());
    else if (keyword === 'enum') this.#enums.push(this.#enum());
    else if (keyword === 'service') this.#services.push(this.#service());
    else {
      if (keyword === 'syntax') this.#next('=');
      const value = this.#next();
      if (keyword === 'package') this.#package = value;
      else if (keyword === 'import') this.#imports.push(value.slice(1, -1));
      else if (keyword !== 'syntax') throw new OpmateError('SYNTAX', `${this.#name}: found ${keyword}`);
      this.#next(';');
    }
  }

  #message(): MessageType {
    const name = this.#next();
    const message: MessageType = {
      name,
      fields: [],
      oneofs: [],
      messages: [],
      enums: [],
      isMapEntry: false,
    };
    this.#next('{');
    while (!this.#skip('}')) {
      if (this.#skip('enum')) message.enums.push(this.#enum());
      else if (this.#skip('oneof')) {
        const index = message.oneofs.push(this.#next()) - 1;
        this.#next('{');
        while (!this.#skip('}')) message.fields.push(this.#field(index));
      } else if (this.#skip('map')) this.#map(message);
      else message.fields.push(this.#field(undefined));
    }
    return message;
  }

  #field(oneof: number | undefined): Field {
    const isRepeated = this.#skip('repeated');
    const [type, name] = [this.#next(), this.#next()];
    return { name, type, number: this.#number(), isRepeated, oneof };
  }

  /** A map is a list of entries, whose type is made for it. */
  #map(owner: MessageType): void {
    this.#next('<');
    const key = this.#next();
    this.#next(',');
    const value = this.#next();
    this.#next('>');
    const name = this.#next();
    const type = `${name.charAt(0).toUpperCase()}${name.slice(1)}Entry`;
    const field = (fieldName: string, fieldType: string, number: number): Field => ({
      name: fieldName,
      type: fieldType,
      number,
      isRepeated: false,
      oneof: undefined,
    });
    const fields = [field('key', key, 1), field('value', value, 2)];
    owner.messages.push({ name: type, fields, oneofs: [], messages: [], enums: [], isMapEntry: true });
    owner.fields.push({ ...field(name, type, this.#number()), isRepeated: true });
  }

  #enum(): EnumType {
    const name = this.#next();
    const values: EnumType['values'] = [];
    this.#next('{');
    while (!this.#skip('}')) values.push({ name: this.#next(), number: this.#number() });
    return { name, values };
  }

  #number(): number {
    this.#next('=');
    const number = Number(this.#next());
    this.#next(';');
    return number;
  }

  #service(): Service {
    const service: Service = { name: this.#next(), methods: [] };
    this.#next('{');
    while (!this.#skip('}')) {
      this.#next('rpc');
      const name = this.#next();
      const [input, streamsIn] = this.#methodType();
      this.#next('returns');
      const [output, streamsOut] = this.#methodType();
      let isDeprecated = false;
      if (!this.#skip(';')) {
        this.#next('{');
        while (!this.#skip('}')) {
          for (const token of ['option', 'deprecated', '=', 'true', ';']) this.#next(token);
          isDeprecated = true;
        }
      }
      service.methods.push({ name, input, output, streamsIn, streamsOut, isDeprecated });
    }
    return service;
  }

  #methodType(): [type: string, streams: boolean] {
    this.#next('(');
    const streams = this.#skip('stream');
    const type = this.#next();
    this.#next(')');
    return [type, streams];
  }

  /** The full name of a type that is named within `scope`: the innermost one that there is. */
  #resolve(type: string, scope: string): string {
    for (let at = scope; ; at = at.slice(0, Math.max(0, at.lastIndexOf('.')))) {
      const full = at === '' ? type : `${at}.${type}`;
      if (this.#known.has(full)) return full;
      if (at === '') throw new OpmateError('SYNTAX', `${this.#name}: no type ${type}`);
    }
  }

  // Field numbers below are those of descriptor.proto.

  #describe(enums: ReadonlySet<string>): Buffer {
    return encodeMessage((file) => {
      file.text(1, this.#name).text(2, this.#package).items(3, this.#imports);
      for (const message of this.#messages) {
        file.message(4, (inner) => this.#describeMessage(inner, message, this.#package, enums));
      }
      for (const one of this.#enums) file.message(5, (inner) => describeEnum(inner, one));
      for (const service of this.#services) {
        file.message(6, (inner) => {
          inner.text(1, service.name);
          for (const method of service.methods) inner.message(2, (one) => this.#describeMethod(one, method));
        });
      }
      file.text(12, 'proto3');
    });
  }

  #describeMessage(
    writer: MessageWriter,
    message: MessageType,
    scope: string,
    enums: ReadonlySet<string>,
  ): void {
    const full = `${scope}.${message.name}`;
    writer.text(1, message.name);
    for (const field of message.fields) {
      writer.message(2, (inner) => {
        inner
          .text(1, field.name)
          .varint(3, field.number)
          .varint(4, field.isRepeated ? 3 : 1);
        const scalar = scalarTypes[field.type];
        if (scalar !== undefined) inner.varint(5, scalar);
        else {
          const type = this.#resolve(field.type, full);
          inner.varint(5, enums.has(type) ? enumType : messageType).text(6, `.${type}`);
        }
        if (field.oneof !== undefined) inner.varint(9, field.oneof);
        inner.text(10, jsonName(field.name));
      });
    }
    for (const inner of message.messages) {
      writer.message(3, (one) => this.#describeMessage(one, inner, full, enums));
    }
    for (const inner of message.enums) writer.message(4, (one) => describeEnum(one, inner));
    if (message.isMapEntry) writer.message(7, (options) => options.varint(7, 1));
    for (const name of message.oneofs) writer.message(8, (one) => one.text(1, name));
  }

  #describeMethod(writer: MessageWriter, method: Method): void {
    writer
      .text(1, method.name)
      .text(2, `.${this.#resolve(method.input, this.#package)}`)
      .text(3, `.${this.#resolve(method.output, this.#package)}`);
    if (method.isDeprecated) writer.message(4, (options) => options.varint(33, 1));
    if (method.streamsIn) writer.varint(5, 1);
    if (method.streamsOut) writer.varint(6, 1);
  }
}

function describeEnum(writer: MessageWriter, { name, values }: EnumType): void {
  writer.text(1, name);
  for (const value of values) writer.message(2, (one) => one.text(1, value.name).varint(2, value.number));
}

function jsonName(name: string): string {
  return name.replace(/_+([^_])/g, (_, letter: string) => letter.toUpperCase());
}
