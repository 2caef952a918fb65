import { normalizeEntryPath } from '../../archive/entry-path.js';
import { OpmateError, redactUrls } from '../../core/errors.js';
import { type DocumentPath, formatPath } from '../../core/diagnostic.js';
import { findReference } from '../../core/reference.js';
import { DiagnosticList } from '../../document/document.js';
import { type Field, quoteShort, warnOfUnknown } from '../../document/field.js';
import { quoteGo } from '../../document/go-json.js';
import { isJsonObject } from '../../document/json.js';
import { getText } from '../../document/json-fields.js';
import type { ContentPlace, GitPlace, HttpPlace } from '../../source/place.js';
import { parseArchiveUrl } from '../../source/parse-place.js';
import { type Manifest, getTitle, openManifest as openRoot } from '../../kube/manifests.js';

/** Returns the text of a line of a file. */
export type LineAt = (file: string, line: number) => string;

/** An object being read, with its diagnostics. */
export interface ManifestDocument {
  manifest: Manifest;
  title: string;
  root: Field;
  diagnostics: DiagnosticList;
}

/**
 * Opens an object for reading. Scalars that YAML reads as another type, such as `n` or an all-digit commit, are read
 * as strings with a warning: `lineAt` returns their lines.
 */
export function openDeploymentManifest(manifest: Manifest, lineAt: LineAt): ManifestDocument {
  const diagnostics = new DiagnosticList();
  const { file } = manifest;
  const title = getTitle(manifest);
  const root = openRoot(manifest, diagnostics, (path) => {
    const { line } = manifest.placeOf(path);
    const key = path.at(-1);
    if (line === undefined || typeof key !== 'string') return undefined;
    const pattern = new RegExp(`(?:^|[\\s{,])["']?${key}["']?\\s*:\\s*([\\w.+-]+)\\s*(?:$|[,}#])`, 'm');
    return pattern.exec(lineAt(file, line))?.[1];
  });
  return { manifest, title, root, diagnostics };
}

/** A referenced secret; its namespace is empty if not set. */
export interface SecretReference {
  namespace: string;
  name: string;
  path: DocumentPath;
}

/** A source as described in a document, before secrets and ConfigMaps are resolved. */
export interface DocumentSource {
  path: DocumentPath;
  /** Destination relative to the root of the content; empty for the root. */
  destination: string;
  source: Exclude<ContentPlace, { kind: 'configMaps' | 'directory' | 'archive' }> | ConfigMapsSource;
  secret?: SecretReference;
}

interface ConfigMapsSource {
  kind: 'configMaps';
  configMaps: { name: string; namespace: string; path: string; documentPath: DocumentPath }[];
}

const kinds = ['image', 'git', 'http', 'configMaps'] as const;
type Kind = (typeof kinds)[number];

/** Fields of a source of the proposal, next to the object of its kind or in it. */
const common = ['uri', 'auth', 'destination'];
const fieldsByKind: Readonly<Record<Exclude<Kind, 'configMaps'>, readonly string[]>> = {
  image: ['ref', 'pullSecret', 'imagePullSecretName', 'insecureSkipTLSVerify', 'certificateData'],
  git: ['repository', 'url', 'ref', 'directory'],
  http: ['url', 'checksum'],
};

/**
 * Reads one source of a deployment in any of its forms: `type` or `kind` with an object of that name, or with fields
 * next to it, with `uri`. Undefined for an invalid source, which is reported. (Source: rukpak, API v1alpha1 and
 * v1alpha2, and the proposal for v1alpha2.)
 */
export function readSource(field: Field, document: ManifestDocument): DocumentSource | undefined {
  const isText = typeof field.value === 'string';
  if (!isText && field.jsonObject() === undefined) return undefined;
  const kind = kindOfSource(field);
  if (kind === undefined) return undefined;
  if (kind === 'configMaps') return readConfigMaps(field, document);
  const inner = field.field(kind);
  const own = [...common, ...fieldsByKind[kind]];
  const hasInner = inner.isPresent && inner.object(own, warnOfUnknown) !== undefined;
  if (!isText) field.object(['kind', 'type', ...kinds, ...(hasInner ? common : own)], warnOfUnknown);
  for (const other of kinds) {
    if (other === kind) continue;
    const second = field.field(other);
    const details = { code: 'exclusive-fields', hint: 'keep one of them' };
    if (second.isPresent) second.fail(`cannot be combined with ${kind}`, details);
  }
  const fields = fieldsAt(hasInner ? [inner, field] : [field]);
  const before = document.diagnostics.errors.length;
  const source = readKind(kind, fields);
  const destination = readDestination(fields);
  const secret = readSecret(fields);
  if (document.diagnostics.errors.length > before) return undefined;
  return { path: field.path, destination, source, ...(secret !== undefined && { secret }) };
}

/** Fields of a source at any level. */
interface SourceFields {
  /** Returns the first field of `names` that is set, otherwise the first. */
  get(...names: [string, ...string[]]): Field;
  /** Returns a field at all levels. */
  all(name: string): Field[];
}

/** Returns the fields of a source at these levels, the innermost first. */
function fieldsAt(levels: readonly Field[]): SourceFields {
  // A source that is a string is its URI.
  const all = (name: string): Field[] =>
    levels.map((level) => (name === 'uri' && typeof level.value === 'string' ? level : level.field(name)));
  const get = (...names: [string, ...string[]]): Field =>
    names.flatMap(all).find(({ isSet }) => isSet) ?? (levels[0] as Field).field(names[0]);
  return { get, all };
}

function kindOfSource(field: Field): Kind | undefined {
  const named = field.field('kind').optionalText() ?? field.field('type').optionalText();
  const kindField = field.field(field.field('kind').isPresent ? 'kind' : 'type');
  for (const foreign of ['upload', 'local']) {
    if (named !== foreign && !field.field(foreign).isPresent) continue;
    const hint =
      foreign === 'local'
        ? 'use configMaps, with the ConfigMap in the documents or in options.configMaps'
        : 'render the uploaded directory with api.renderBundle';
    const written = named === foreign ? kindField : field.field(foreign);
    return written.fail(`${foreign} content exists only in its cluster`, { code: 'unsupported', hint });
  }
  if (named !== undefined) {
    const kind = kinds.find((known) => known.toLowerCase() === named.toLowerCase());
    return kind ?? kindField.choice(kinds);
  }
  const present = kinds.find((kind) => field.field(kind).isPresent);
  if (present !== undefined) return present;
  const uri = typeof field.value === 'string' ? field.optionalText() : field.field('uri').optionalText();
  if (uri !== undefined) return kindOfUri(uri);
  return field.fail('no source', { code: 'missing-field', hint: `add one of ${kinds.join(', ')}` });
}

function kindOfUri(uri: string): Exclude<Kind, 'configMaps'> {
  if (/^(?:git|ssh|git\+[a-z]+):\/\/|^git@|\.git(?:[#?]|$)/.test(uri)) return 'git';
  return /^https?:\/\//.test(uri) ? 'http' : 'image';
}

function readKind(
  kind: Exclude<Kind, 'configMaps'>,
  fields: SourceFields,
): Exclude<DocumentSource['source'], ConfigMapsSource> {
  switch (kind) {
    case 'image': {
      const ref = (fields.get('ref', 'uri').text() ?? '').replace(/^(?:docker|image):\/\//, '');
      const certificateData = fields.get('certificateData').optionalText(Infinity);
      const isInsecure = fields.get('insecureSkipTLSVerify').optionalBoolean() || skipsVerification(fields);
      return {
        kind: 'image',
        ref,
        ...(certificateData !== undefined && { certificateData }),
        ...(isInsecure && { insecureSkipTlsVerify: true }),
      };
    }
    case 'git':
      return readGit(fields);
    case 'http':
      return { ...readUrl(fields), ...(skipsVerification(fields) && { insecureSkipTlsVerify: true }) };
  }
}

/** Reads a URL and its checksum, which may follow it as on the command line. */
function readUrl(fields: SourceFields): HttpPlace {
  const field = fields.get('url', 'uri');
  const checksum = fields.get('checksum').optionalText();
  const parsed = field.parsed(parseArchiveUrl);
  if (parsed === undefined) {
    const url = getText(field.value);
    return { kind: 'http', url, ...(checksum !== undefined && { checksum }) };
  }
  if (checksum === undefined) return parsed;
  if (parsed.checksum !== undefined && parsed.checksum !== checksum) {
    field.fail(`${parsed.checksum} differs from checksum ${quoteShort(checksum)}`, { code: 'conflict' });
  }
  return { ...parsed, checksum };
}

const gitRefs = ['branch', 'tag', 'commit'] as const;

function readGit(fields: SourceFields): GitPlace {
  const repository = fields.get('repository', 'uri', 'url');
  const [address = '', fragment = ''] = (repository.text() ?? '').split('#', 2);
  const [, fragmentRef = '', fragmentDirectory = ''] = /^([^:]*)(?::(.*))?$/s.exec(fragment) ?? [];
  const refField = fields.get('ref');
  const ref: { branch?: string; tag?: string; commit?: string; revision?: string } = {};
  if (isJsonObject(refField.value)) {
    refField.object(gitRefs, warnOfUnknown);
    for (const name of gitRefs) {
      const text = refField.field(name).optionalText();
      if (text !== undefined) ref[name] = text;
    }
    const names = Object.keys(ref);
    if (names.length !== 1) {
      const got = names.length === 0 ? 'none' : names.join(' and ');
      refField.fail(`expected one of branch, tag and commit, got ${got}`, { code: 'exclusive-fields' });
    }
  } else {
    const revision = refField.optionalText() ?? fragmentRef;
    if (revision !== '') ref.revision = revision;
    else refField.warn('missing, using the default branch', { code: 'missing-field' });
  }
  if (fragmentRef !== '' && !Object.values(ref).includes(fragmentRef)) {
    repository.fail(`ref ${quoteShort(fragmentRef)} differs from field ref`, { code: 'conflict' });
  }
  const directoryField = fields.get('directory');
  const own = directoryField.optionalText();
  if (own !== undefined && fragmentDirectory !== '' && own !== fragmentDirectory) {
    const problem = `directory ${quoteShort(fragmentDirectory)} differs from field directory`;
    repository.fail(problem, { code: 'conflict' });
  }
  const directory = own ?? fragmentDirectory;
  const written = own === undefined ? repository : directoryField;
  const within = directory === '' ? '' : withinRoot(directory, written);
  return {
    kind: 'git',
    repository: address.replace(/^git\+/, ''),
    ...ref,
    ...(within !== '' && { directory: within }),
    ...(skipsVerification(fields) && { insecureSkipTlsVerify: true }),
  };
}

function skipsVerification(fields: SourceFields): boolean {
  return fields.get('auth').field('insecureSkipVerify').optionalBoolean();
}

function readDestination(fields: SourceFields): string {
  const field = fields.get('destination');
  const destination = field.optionalText();
  const [first, second] = fields.all('destination').filter(({ isPresent }) => isPresent);
  if (second !== undefined && first?.value !== second.value) {
    field.fail('conflicting values', { code: 'conflict', hint: 'keep one of them' });
  }
  return destination === undefined ? '' : withinRoot(destination, field);
}

/** Returns a relative path that stays below its root; empty for the root. */
function withinRoot(text: string, field: Field): string {
  if (text === '.' || text === './') return '';
  try {
    if (text.startsWith('/')) throw new OpmateError('UNSAFE', 'absolute');
    return normalizeEntryPath(text, text);
  } catch (error) {
    if (!(error instanceof OpmateError)) throw error;
    field.fail(`expected a path within the content, got ${quoteShort(text)}`);
    return '';
  }
}

function readSecret(fields: SourceFields): SecretReference | undefined {
  const pull = fields.get('pullSecret', 'imagePullSecretName');
  if (pull.isSet) {
    const name = pull.text();
    return name === undefined ? undefined : { namespace: '', name, path: pull.path };
  }
  const auth = fields.get('auth');
  const keys = ['secret', 'namespace', 'name', 'insecureSkipVerify'] as const;
  const read = auth.isSet ? auth.object(keys, warnOfUnknown) : undefined;
  if (read === undefined) return undefined;
  const secret = read.secret.optionalObject(['namespace', 'name', 'insecureSkipVerify'], warnOfUnknown);
  if (secret !== undefined) {
    if (secret.insecureSkipVerify.value === true) {
      secret.insecureSkipVerify.warn('no effect in this field', { hint: 'move it to auth' });
    }
    return secretIn(read.secret);
  }
  return read.name.isPresent || read.namespace.isPresent ? secretIn(auth) : undefined;
}

function secretIn(field: Field): SecretReference {
  const name = field.field('name').text() ?? '';
  return { namespace: field.field('namespace').optionalText() ?? '', name, path: field.path };
}

function readConfigMaps(field: Field, document: ManifestDocument): DocumentSource | undefined {
  field.object(['kind', 'type', 'configMaps', 'destination'], warnOfUnknown);
  const before = document.diagnostics.errors.length;
  const list = field.field('configMaps');
  const configMaps = list.optionalList().map((item) => {
    const entry = item.object(['configMap', 'path'], warnOfUnknown);
    const reference = entry?.configMap.object(['name', 'namespace'], warnOfUnknown);
    const inner = entry?.path.optionalText();
    return {
      name: reference?.name.text() ?? '',
      namespace: reference?.namespace.optionalText() ?? '',
      path: inner === undefined || entry === undefined ? '' : withinRoot(inner, entry.path),
      documentPath: item.path,
    };
  });
  if (configMaps.length === 0 && document.diagnostics.errors.length === before) list.fail('no ConfigMaps');
  const destination = readDestination(fieldsAt([field]));
  if (document.diagnostics.errors.length > before) return undefined;
  return { path: field.path, destination, source: { kind: 'configMaps', configMaps } };
}

/** Allowed sources in addition to registries, https and ssh. */
export interface SourceAllowances {
  /** Layouts, archives and repositories on this machine. */
  allowLocal?: boolean | undefined;
  /** Fields that skip certificate verification. */
  allowInsecure?: boolean | undefined;
}

/**
 * Returns why a source of a document is refused: authors of documents must not select files of the rendering machine,
 * nor send its credentials unverified.
 */
export function findRefusals(
  { source, path }: DocumentSource,
  { allowLocal, allowInsecure }: SourceAllowances,
): { message: string; hint: string }[] {
  const refusals: { message: string; hint: string }[] = [];
  const local = allowLocal === true ? undefined : localAddress(source);
  if (local !== undefined) {
    refusals.push({
      message: `${formatPath(path)}: ${quoteGo(redactUrls(local))} is on this machine`,
      hint: 'use a registry, or an https or ssh URL, or allow local sources with options.allowLocal',
    });
  }
  if (source.kind !== 'configMaps' && source.insecureSkipTlsVerify === true && allowInsecure !== true) {
    refusals.push({
      message: `${formatPath(path)}: skips certificate verification`,
      hint: 'add its certificate authority with registry.caFile, or allow this with options.allowInsecure',
    });
  }
  return refusals;
}

/** Returns the address of a source on this machine. */
function localAddress(source: DocumentSource['source']): string | undefined {
  if (source.kind === 'image') {
    // Invalid references are reported when they are opened.
    const { transport = 'docker' } = findReference(source.ref) ?? {};
    return transport === 'docker' ? undefined : source.ref;
  }
  if (source.kind !== 'git') return undefined;
  const { repository } = source;
  if (URL.canParse(repository))
    return /^(?:https?|ssh):$/.test(new URL(repository).protocol) ? undefined : repository;
  // HOST:PATH, as for ssh.
  return /^[^/:]+:/.test(repository) ? undefined : repository;
}
