import { normalizeEntryPath } from '../archive/entry-path.js';
import { OpmateError } from '../core/errors.js';
import { quoteGo } from '../document/go-json.js';
import { type JsonObject, type JsonValue, isJsonObject } from '../document/json.js';
import type { ContentSource } from '../source/content.js';
import { parseHttpSource } from '../source/content-parse.js';
import type { HttpSource } from '../source/content-types.js';
import { type DocumentPath, type DocumentReader, showPath } from './document-reader.js';

/** A secret that a document names; its namespace is empty where it names none. */
export interface SecretReference {
  namespace: string;
  name: string;
  path: DocumentPath;
}

/** A source as a document describes it, before secrets and ConfigMaps are looked up. */
export interface DocumentSource {
  path: DocumentPath;
  /** Relative to the root of the content; empty for the root. */
  destination: string;
  source: Exclude<ContentSource, { type: 'configMaps' | 'directory' | 'archive' }> | ConfigMapsSource;
  secret?: SecretReference;
}

export interface ConfigMapsSource {
  type: 'configMaps';
  configMaps: { name: string; namespace: string; path: string; at: DocumentPath }[];
}

const kinds = ['image', 'git', 'http', 'configMaps'] as const;
type Kind = (typeof kinds)[number];

/** Fields that a source of the proposal may have beside the object of its kind, or in it. */
const common = ['uri', 'auth', 'destination'];
const fieldsOf: Readonly<Record<Exclude<Kind, 'configMaps'>, readonly string[]>> = {
  image: ['ref', 'pullSecret', 'imagePullSecretName', 'insecureSkipTLSVerify', 'certificateData'],
  git: ['repository', 'url', 'ref', 'directory'],
  http: ['url', 'checksum'],
};

/**
 * Reads one source of a deployment, in any of the forms that there were: `type` or `kind` with an object of that name,
 * or everything beside it, with `uri`. Undefined where something is wrong, which the reader keeps.
 * (Source: rukpak, API v1alpha1 and v1alpha2, and the proposal for v1alpha2.)
 */
export function readSource(
  value: JsonValue | undefined,
  path: DocumentPath,
  reader: DocumentReader,
): DocumentSource | undefined {
  const given = typeof value === 'string' ? { uri: value } : reader.object(value, path);
  if (given === undefined) {
    if (value === undefined || value === null) reader.find(path, `${showPath(path)} is missing`);
    return undefined;
  }
  const kind = kindOfSource(given, path, reader);
  if (kind === undefined) return undefined;
  if (kind === 'configMaps') return readConfigMaps(given, path, reader);
  const inner = reader.object(given[kind], [...path, kind]);
  const own = [...common, ...fieldsOf[kind]];
  reader.known(given, path, ['kind', 'type', ...kinds, ...(inner === undefined ? own : common)]);
  if (inner !== undefined) reader.known(inner, [...path, kind], own);
  for (const other of kinds) {
    if (other === kind || given[other] === undefined || given[other] === null) continue;
    reader.find([...path, other], `${showPath([...path, other])}: the source is of the kind ${kind} already`);
  }
  const at = new SourceFields(given, inner, path, kind, reader);
  const before = reader.findings.length;
  const source = readKind(kind, at);
  const destination = readDestination(at);
  const secret = readSecret(at);
  if (reader.findings.length > before) return undefined;
  return { path, destination, source, ...(secret !== undefined && { secret }) };
}

/** The fields of a source, wherever they stand. */
class SourceFields {
  readonly #outer: JsonObject;
  readonly #inner: JsonObject | undefined;
  readonly #path: DocumentPath;
  readonly #kind: string;
  readonly reader: DocumentReader;

  constructor(
    outer: JsonObject,
    inner: JsonObject | undefined,
    path: DocumentPath,
    kind: string,
    reader: DocumentReader,
  ) {
    this.#outer = outer;
    this.#inner = inner;
    this.#path = path;
    this.#kind = kind;
    this.reader = reader;
  }

  /** The value of the first of some names that is there, and where it stands. */
  value(...names: string[]): { value: JsonValue | undefined; path: DocumentPath } {
    for (const name of names) {
      for (const [object, path] of [
        [this.#inner, [...this.#path, this.#kind, name]],
        [this.#outer, [...this.#path, name]],
      ] as const) {
        const value = object?.[name];
        if (value !== undefined && value !== null && value !== '') return { value, path };
      }
    }
    const path = [...this.#path, ...(this.#inner === undefined ? [] : [this.#kind]), names[0] as string];
    return { value: undefined, path };
  }

  text(...names: string[]): string | undefined {
    const { value, path } = this.value(...names);
    return this.reader.text(value, path);
  }

  required(...names: string[]): string {
    const { value, path } = this.value(...names);
    return this.reader.required(value, path);
  }

  isSet(...names: string[]): boolean {
    const { value, path } = this.value(...names);
    return this.reader.boolean(value, path);
  }

  /** Both places, where each has a value. */
  both(name: string): JsonValue[] {
    return [this.#inner?.[name], this.#outer[name]].filter(
      (value) => value !== undefined && value !== null,
    ) as JsonValue[];
  }
}

function kindOfSource(given: JsonObject, path: DocumentPath, reader: DocumentReader): Kind | undefined {
  const named =
    reader.text(given['kind'], [...path, 'kind']) ?? reader.text(given['type'], [...path, 'type']);
  const at = [...path, given['kind'] === undefined ? 'type' : 'kind'];
  const refused = [named, 'upload', 'local'].find((name) =>
    name === 'upload' || name === 'local' ? named === name || given[name] !== undefined : false,
  );
  if (refused !== undefined) {
    reader.find(
      named === refused ? at : [...path, refused],
      `${showPath(path)}: content of the kind ${refused} is only in the cluster it was given to`,
      refused === 'local'
        ? 'take configMaps, with the ConfigMap among the documents or in --config-maps'
        : 'render the directory that was uploaded with opmate bundle render',
    );
    return undefined;
  }
  if (named !== undefined) {
    const kind = kinds.find((known) => known.toLowerCase() === named.toLowerCase());
    if (kind === undefined) {
      reader.find(
        at,
        `${showPath(at)}: ${quoteGo(named)} is no kind of source`,
        `known are ${kinds.join(', ')}`,
      );
    }
    return kind;
  }
  const present = kinds.filter((kind) => given[kind] !== undefined && given[kind] !== null);
  if (present[0] !== undefined) return present[0];
  const uri = reader.text(given['uri'], [...path, 'uri']);
  if (uri !== undefined) return kindOfUri(uri);
  reader.find(path, `${showPath(path)}: names no source`, `known are ${kinds.join(', ')}`);
  return undefined;
}

function kindOfUri(uri: string): Exclude<Kind, 'configMaps'> {
  if (/^(?:git|ssh|git\+[a-z]+):\/\/|^git@|\.git(?:[#?]|$)/.test(uri)) return 'git';
  return /^https?:\/\//.test(uri) ? 'http' : 'image';
}

function readKind(
  kind: Exclude<Kind, 'configMaps'>,
  at: SourceFields,
): Exclude<DocumentSource['source'], ConfigMapsSource> {
  switch (kind) {
    case 'image': {
      const ref = at.required('ref', 'uri').replace(/^(?:docker|image):\/\//, '');
      const certificateData = at.text('certificateData');
      const access = at.isSet('insecureSkipTLSVerify') || skipsVerification(at);
      return {
        type: 'image',
        ref,
        ...(certificateData !== undefined && { certificateData }),
        ...(access && { insecureSkipTlsVerify: true }),
      };
    }
    case 'git':
      return readGit(at);
    case 'http': {
      return { ...readUrl(at), ...(skipsVerification(at) && { insecureSkipTlsVerify: true }) };
    }
  }
}

/** A URL, and its checksum, which may stand behind it as on the command line. */
function readUrl(at: SourceFields): HttpSource {
  const { reader } = at;
  const url = at.required('url', 'uri');
  const checksum = at.text('checksum');
  const plain = { type: 'http', url, ...(checksum !== undefined && { checksum }) } as const;
  if (url === '') return plain;
  const { path } = at.value('url', 'uri');
  try {
    const parsed = parseHttpSource(url);
    if (checksum === undefined) return parsed;
    if (parsed.checksum !== undefined && parsed.checksum !== checksum) {
      reader.find(path, `${showPath(path)}: ${parsed.checksum} is not the checksum ${quoteGo(checksum)}`);
    }
    return { ...parsed, checksum };
  } catch (error) {
    if (!(error instanceof OpmateError)) throw error;
    reader.find(path, `${showPath(path)}: ${error.message}`, error.hint);
    return plain;
  }
}

function readGit(at: SourceFields): Extract<ContentSource, { type: 'git' }> {
  const { reader } = at;
  const [address = '', fragment = ''] = at.required('repository', 'uri', 'url').split('#', 2);
  const addressPath = at.value('repository', 'uri', 'url').path;
  const [, fragmentRef = '', fragmentDirectory = ''] = /^([^:]*)(?::(.*))?$/s.exec(fragment) ?? [];
  const { value, path } = at.value('ref');
  const ref: { branch?: string; tag?: string; commit?: string; revision?: string } = {};
  if (isJsonObject(value)) {
    reader.known(value, path, ['branch', 'tag', 'commit']);
    for (const name of ['branch', 'tag', 'commit'] as const) {
      const text = reader.text(value[name], [...path, name]);
      if (text !== undefined) ref[name] = text;
    }
    const given = Object.keys(ref);
    if (given.length !== 1) {
      const found = given.length === 0 ? 'none of them is there' : `${given.join(' and ')} are there`;
      reader.find(path, `${showPath(path)}: must be one of branch, tag and commit, and ${found}`);
    }
  } else {
    const revision = reader.text(value, path) ?? fragmentRef;
    if (revision !== '') ref.revision = revision;
    else reader.warn(path, `${showPath(path)} is missing, so the default branch is taken`);
  }
  const named = Object.values(ref);
  if (fragmentRef !== '' && !named.includes(fragmentRef)) {
    reader.find(
      addressPath,
      `${showPath(addressPath)}: names the ref ${quoteGo(fragmentRef)}, and ref another`,
    );
  }
  const own = at.text('directory');
  if (own !== undefined && fragmentDirectory !== '' && own !== fragmentDirectory) {
    const text = `names the directory ${quoteGo(fragmentDirectory)}, and directory another`;
    reader.find(addressPath, `${showPath(addressPath)}: ${text}`);
  }
  const directory = own ?? fragmentDirectory;
  const directoryPath = own === undefined ? addressPath : at.value('directory').path;
  const within = directory === '' ? '' : withinRoot(directory, directoryPath, reader);
  return {
    type: 'git',
    repository: address.replace(/^git\+/, ''),
    ...ref,
    ...(within !== '' && { directory: within }),
    ...(skipsVerification(at) && { insecureSkipTlsVerify: true }),
  };
}

function skipsVerification(at: SourceFields): boolean {
  const { value, path } = at.value('auth');
  if (!isJsonObject(value)) return false;
  const { insecureSkipVerify } = value;
  return at.reader.boolean(insecureSkipVerify, [...path, 'insecureSkipVerify']);
}

function readDestination(at: SourceFields): string {
  const { value, path } = at.value('destination');
  const destination = at.reader.text(value, path);
  const [first, second] = at.both('destination');
  if (second !== undefined && first !== second) {
    at.reader.find(path, `${showPath(path)}: the source has another destination too`);
  }
  return destination === undefined ? '' : withinRoot(destination, path, at.reader);
}

/** A relative path that stays below where it starts; empty for that itself. */
function withinRoot(text: string, path: DocumentPath, reader: DocumentReader): string {
  if (text === '.' || text === './') return '';
  try {
    if (text.startsWith('/')) throw new OpmateError('UNSAFE', 'absolute');
    return normalizeEntryPath(text, reader.title);
  } catch (error) {
    if (!(error instanceof OpmateError)) throw error;
    reader.find(path, `${showPath(path)}: ${quoteGo(text)} is no path within the content`);
    return '';
  }
}

function readSecret(at: SourceFields): SecretReference | undefined {
  const { reader } = at;
  const pull = at.value('pullSecret', 'imagePullSecretName');
  if (pull.value !== undefined) {
    const name = reader.text(pull.value, pull.path);
    return name === undefined ? undefined : { namespace: '', name, path: pull.path };
  }
  const { value, path } = at.value('auth');
  const auth = reader.object(value, path);
  if (auth === undefined) return undefined;
  reader.known(auth, path, ['secret', 'namespace', 'name', 'insecureSkipVerify']);
  const secret = reader.object(auth['secret'], [...path, 'secret']);
  if (secret !== undefined) {
    const inSecret = [...path, 'secret'];
    reader.known(secret, inSecret, ['namespace', 'name', 'insecureSkipVerify']);
    if (secret['insecureSkipVerify'] === true) {
      reader.warn(
        [...inSecret, 'insecureSkipVerify'],
        `${showPath([...inSecret, 'insecureSkipVerify'])}: does nothing here`,
        'it belongs into auth',
      );
    }
    return secretIn(secret, inSecret, reader);
  }
  if (auth['name'] === undefined && auth['namespace'] === undefined) return undefined;
  return secretIn(auth, path, reader);
}

function secretIn(object: JsonObject, path: DocumentPath, reader: DocumentReader): SecretReference {
  const name = reader.required(object['name'], [...path, 'name']);
  return { namespace: reader.text(object['namespace'], [...path, 'namespace']) ?? '', name, path };
}

function readConfigMaps(
  given: JsonObject,
  path: DocumentPath,
  reader: DocumentReader,
): DocumentSource | undefined {
  reader.known(given, path, ['kind', 'type', 'configMaps', 'destination']);
  const listPath = [...path, 'configMaps'];
  const before = reader.findings.length;
  const list = reader.list(given['configMaps'], listPath) ?? [];
  const configMaps = list.map((item, index) => {
    const at = [...listPath, index];
    const entry = reader.object(item, at) ?? {};
    reader.known(entry, at, ['configMap', 'path']);
    const reference = reader.object(entry['configMap'], [...at, 'configMap']) ?? {};
    reader.known(reference, [...at, 'configMap'], ['name', 'namespace']);
    const inner = reader.text(entry['path'], [...at, 'path']);
    return {
      name: reader.required(reference['name'], [...at, 'configMap', 'name']),
      namespace: reader.text(reference['namespace'], [...at, 'configMap', 'namespace']) ?? '',
      path: inner === undefined ? '' : withinRoot(inner, [...at, 'path'], reader),
      at,
    };
  });
  if (configMaps.length === 0 && reader.findings.length === before) {
    reader.find(listPath, `${showPath(listPath)}: names no ConfigMap`);
  }
  const fields = new SourceFields(given, undefined, path, 'configMaps', reader);
  const destination = readDestination(fields);
  if (reader.findings.length > before) return undefined;
  return { path, destination, source: { type: 'configMaps', configMaps } };
}
