import type { DocumentPath, TextPosition } from '../../core/diagnostic.js';
import { type JsonObject, type JsonValue, setJsonKey } from '../json.js';
import { YamlError } from './error.js';
import { type ResolvedScalar, countBreaks, formatFloatKey, resolveScalar } from './scalar.js';
import { TOKEN, type Token, YamlScanner } from './scanner.js';

/** Node at a zero-based line and column. */
interface NodeStart {
  line: number;
  column: number;
}
interface ScalarNode extends NodeStart {
  kind: 'scalar';
  value: string;
  tag: string;
  /** Unquoted and untagged: the text determines its type. */
  implicit: boolean;
}
interface AliasNode extends NodeStart {
  kind: 'alias';
  name: string;
  target: YamlNode;
  active: boolean;
}
interface CollectionNode extends NodeStart {
  kind: 'sequence' | 'mapping';
  /** Items; keys and values of a mapping, alternating. */
  items: YamlNode[];
}
type YamlNode = ScalarNode | AliasNode | CollectionNode;

interface FullYamlLimits {
  maxAliases: number;
  maxDepth: number;
}

const YAML_TAG = 'tag:yaml.org,2002:';
const BLOCK_STARTS: ReadonlySet<number> = new Set([TOKEN.blockEntry, TOKEN.blockEnd]);
const KEY_STOPS: ReadonlySet<number> = new Set([TOKEN.key, TOKEN.value, TOKEN.blockEnd]);
const INDENTLESS_STOPS: ReadonlySet<number> = new Set([...KEY_STOPS, TOKEN.blockEntry]);
const DOCUMENT_STOPS: ReadonlySet<number> = new Set([
  TOKEN.versionDirective,
  TOKEN.tagDirective,
  TOKEN.documentStart,
  TOKEN.documentEnd,
  TOKEN.streamEnd,
]);
const FORBIDDEN = /[\0-\x08\x0b\x0c\x0e-\x1f\x7f-\x84\x86-\x9f\ufffe\uffff]|\p{Surrogate}/u;

/** Reads the first document of a text with every construct of YAML 1.1. Throws YamlError. */
export function parseFullYaml(text: string, limits: FullYamlLimits): JsonValue {
  const body = textToParse(text);
  const root = new DocumentParser(body, limits).parse();
  return root === undefined ? null : new Decoder(body.length).decode(root, false);
}

/** Keys and indexes from the root. */
export type YamlPath = DocumentPath;

/** A document with the places of its parts. */
export interface PlacedYaml {
  value: JsonValue;
  /** Finds the key or item at a path; aliased content is at its anchor. */
  findPlace(path: YamlPath): TextPosition | undefined;
  /** Keys that already exist in their mapping, without those of merges. */
  duplicates: { path: YamlPath; place: TextPosition; first: TextPosition }[];
  /** Start of a second document. */
  furtherDocument: TextPosition | undefined;
}

/** Reads the first document of a text like `parseFullYaml`, with places. Throws YamlError. */
export function parseFullYamlWithPlaces(text: string, limits: FullYamlLimits): PlacedYaml {
  const body = textToParse(text);
  const parser = new DocumentParser(body, limits);
  const root = parser.parse();
  const decoder = new Decoder(body.length, true);
  const value = root === undefined ? null : decoder.decode(root, false);
  return {
    value,
    findPlace: (path) => decoder.places.get(JSON.stringify(path)),
    duplicates: decoder.duplicates,
    furtherDocument: parser.furtherDocument(),
  };
}

function textToParse(text: string): string {
  const body = text.charCodeAt(0) === 0xfeff ? text.slice(1) : text;
  const bad = FORBIDDEN.exec(body);
  if (bad !== null) {
    throw new YamlError('yaml: control characters are not allowed', countBreaks(body, 0, bad.index) + 1);
  }
  return body;
}

function toPlace({ line, column }: NodeStart): TextPosition {
  return { line: line + 1, column: column + 1 };
}

/** Builds the nodes of one document from tokens. */
class DocumentParser {
  readonly #scanner: YamlScanner;
  readonly #limits: FullYamlLimits;
  readonly #anchors = new Map<string, YamlNode>();
  readonly #handles = new Map<string, string>();
  #aliases = 0;
  #depth = 0;

  constructor(text: string, limits: FullYamlLimits) {
    this.#scanner = new YamlScanner(text);
    this.#limits = limits;
  }

  parse(): YamlNode | undefined {
    let token = this.#scanner.peek();
    if (token.type === TOKEN.streamEnd) return undefined;
    if (token.type === TOKEN.versionDirective || token.type === TOKEN.tagDirective) {
      this.#directives();
      token = this.#scanner.peek();
      if (token.type !== TOKEN.documentStart) fail(token.line, 'did not find expected <document start>');
    }
    this.#addHandle('!', '!');
    this.#addHandle('!!', YAML_TAG);
    let root: YamlNode;
    if (token.type === TOKEN.documentStart) {
      this.#scanner.skip();
      token = this.#scanner.peek();
      root = DOCUMENT_STOPS.has(token.type) ? emptyNode(token) : this.#node(true, false);
    } else {
      root = this.#node(true, false);
    }
    this.#scanner.peek();
    return root;
  }

  /** Returns the start of a further document. */
  furtherDocument(): TextPosition | undefined {
    while (this.#scanner.peek().type === TOKEN.documentEnd) this.#scanner.skip();
    const token = this.#scanner.peek();
    return token.type === TOKEN.streamEnd ? undefined : toPlace(token);
  }

  #directives(): void {
    let version = false;
    for (;;) {
      const token = this.#scanner.peek();
      if (token.type === TOKEN.versionDirective) {
        if (version) fail(token.line, 'found duplicate %YAML directive');
        if (!/^0?1\.0?1$/.test(token.value)) fail(token.line, 'found incompatible YAML document');
        version = true;
      } else if (token.type === TOKEN.tagDirective) {
        if (this.#handles.has(token.value)) fail(token.line, 'found duplicate %TAG directive');
        this.#handles.set(token.value, token.suffix);
      } else {
        return;
      }
      this.#scanner.skip();
    }
  }

  #addHandle(handle: string, prefix: string): void {
    if (!this.#handles.has(handle)) this.#handles.set(handle, prefix);
  }

  #node(block: boolean, indentless: boolean): YamlNode {
    let token = this.#scanner.peek();
    if (token.type === TOKEN.alias) {
      this.#scanner.skip();
      return this.#alias(token);
    }
    const { line, column } = token;
    let anchor: string | undefined;
    let tagToken: Token | undefined;
    for (let i = 0; i < 2; i++) {
      if (token.type === TOKEN.anchor && anchor === undefined) anchor = token.value;
      else if (token.type === TOKEN.tag && tagToken === undefined) tagToken = token;
      else break;
      this.#scanner.skip();
      token = this.#scanner.peek();
    }
    const tag = tagToken === undefined ? '' : this.#tag(tagToken);
    const collection = this.#collection(token.type, block, indentless, { line, column }, anchor);
    if (collection !== undefined) return collection;
    const node: ScalarNode = { kind: 'scalar', line, column, value: '', tag, implicit: tag === '' };
    if (token.type === TOKEN.scalar) {
      node.value = token.value;
      node.implicit = (tag === '' && token.plain) || tag === '!';
      this.#scanner.skip();
    } else if (anchor === undefined && tag === '') {
      fail(token.line, 'did not find expected node content');
    }
    if (anchor !== undefined) this.#anchors.set(anchor, node);
    return node;
  }

  #alias(token: Token): AliasNode {
    const target = this.#anchors.get(token.value);
    if (target === undefined) {
      throw new YamlError(`yaml: unknown anchor '${token.value}' referenced`, token.line + 1);
    }
    if (++this.#aliases > this.#limits.maxAliases) {
      throw new YamlError(`yaml: more than ${this.#limits.maxAliases} aliases`, token.line + 1);
    }
    const { line, column } = token;
    return { kind: 'alias', line, column, name: token.value, target, active: false };
  }

  #tag(token: Token): string {
    if (token.value === '') return token.suffix;
    const prefix = this.#handles.get(token.value);
    if (prefix === undefined) fail(token.line, 'found undefined tag handle');
    return prefix + token.suffix;
  }

  #collection(
    type: number,
    block: boolean,
    indentless: boolean,
    place: NodeStart,
    anchor: string | undefined,
  ): YamlNode | undefined {
    const isSequence =
      type === TOKEN.flowSequenceStart ||
      (block && type === TOKEN.blockSequenceStart) ||
      (indentless && type === TOKEN.blockEntry);
    const isMapping = type === TOKEN.flowMappingStart || (block && type === TOKEN.blockMappingStart);
    if (!isSequence && !isMapping) return undefined;
    if (++this.#depth > this.#limits.maxDepth) {
      throw new YamlError(`yaml: exceeded max depth of ${this.#limits.maxDepth}`, place.line + 1);
    }
    const items: YamlNode[] = [];
    const node: YamlNode = { kind: isSequence ? 'sequence' : 'mapping', ...place, items };
    // Registered before its content is read, to detect content that refers to it.
    if (anchor !== undefined) this.#anchors.set(anchor, node);
    if (type === TOKEN.blockMappingStart) this.#blockMapping(items);
    else if (type === TOKEN.flowMappingStart) this.#flowItems(items, true);
    else if (type === TOKEN.flowSequenceStart) this.#flowItems(items, false);
    else if (type === TOKEN.blockSequenceStart) this.#blockSequence(items);
    else this.#indentlessSequence(items);
    this.#depth--;
    return node;
  }

  /** Reads the indicator of an entry, then its node, unless one of `stops` follows. */
  #entry(stops: ReadonlySet<number>, indentless: boolean): YamlNode {
    const start = this.#scanner.peek();
    this.#scanner.skip();
    if (stops.has(this.#scanner.peek().type)) return emptyNode(start);
    return this.#node(true, indentless);
  }

  #blockSequence(items: YamlNode[]): void {
    this.#scanner.skip();
    for (;;) {
      const token = this.#scanner.peek();
      if (token.type === TOKEN.blockEnd) break;
      if (token.type !== TOKEN.blockEntry) fail(token.line, "did not find expected '-' indicator");
      items.push(this.#entry(BLOCK_STARTS, false));
    }
    this.#scanner.skip();
  }

  #indentlessSequence(items: YamlNode[]): void {
    while (this.#scanner.peek().type === TOKEN.blockEntry) items.push(this.#entry(INDENTLESS_STOPS, false));
  }

  #blockMapping(items: YamlNode[]): void {
    this.#scanner.skip();
    for (;;) {
      let token = this.#scanner.peek();
      if (token.type === TOKEN.blockEnd) break;
      if (token.type !== TOKEN.key) fail(token.line, 'did not find expected key');
      items.push(this.#entry(KEY_STOPS, true));
      token = this.#scanner.peek();
      items.push(token.type === TOKEN.value ? this.#entry(KEY_STOPS, true) : emptyNode(token));
    }
    this.#scanner.skip();
  }

  /** Reads the entries of a flow collection to its end; a pair in a sequence is a mapping of its own. */
  #flowItems(items: YamlNode[], isMapping: boolean): void {
    const end = isMapping ? TOKEN.flowMappingEnd : TOKEN.flowSequenceEnd;
    this.#scanner.skip();
    for (let first = true; ; first = false) {
      let token = this.#scanner.peek();
      if (token.type !== end && !first) {
        const close = isMapping ? '}' : ']';
        if (token.type !== TOKEN.flowEntry) fail(token.line, `did not find expected ',' or '${close}'`);
        this.#scanner.skip();
        token = this.#scanner.peek();
      }
      const { type, line, column } = token;
      if (type === end) break;
      if (type !== TOKEN.key) {
        items.push(this.#node(false, false));
        if (isMapping) items.push(emptyNode(token));
        continue;
      }
      this.#scanner.skip();
      const key = this.#flowPart([TOKEN.value, TOKEN.flowEntry, end]);
      const hasValue = this.#scanner.peek().type === TOKEN.value;
      if (hasValue) this.#scanner.skip();
      const value = hasValue ? this.#flowPart([TOKEN.flowEntry, end]) : emptyNode(this.#scanner.peek());
      if (isMapping) items.push(key, value);
      else items.push({ kind: 'mapping', line, column, items: [key, value] });
    }
    this.#scanner.skip();
  }

  #flowPart(stops: readonly number[]): YamlNode {
    const token = this.#scanner.peek();
    return stops.includes(token.type) ? emptyNode(token) : this.#node(false, false);
  }
}

function fail(line: number, problem: string): never {
  // Go counts these lines from 0.
  const place = line > 0 ? `line ${line}: ` : '';
  throw new YamlError(`yaml: ${place}${problem}`, line + 1, `yaml: ${problem}`);
}

function emptyNode({ line, column }: NodeStart): ScalarNode {
  return { kind: 'scalar', line, column, value: '', tag: '', implicit: true };
}

/** Documents with up to this many nodes may have 99 % from aliases, … */
const ALIAS_RATIO_LOW = 400_000;
/** … larger ones than this 10 %. */
const ALIAS_RATIO_HIGH = 4_000_000;
/** Maximum text repeated by aliases, in addition to the document. */
const ALIAS_TEXT = 16 * 1024 * 1024;

/** Converts nodes into values. Expansion of aliases is limited as in go-yaml, and by text. */
class Decoder {
  readonly #textLimit: number;
  #nodes = 0;
  #aliased = 0;
  #aliasedText = 0;
  #aliasDepth = 0;
  readonly #keepsPlaces: boolean;
  /** Places of keys and items by path as JSON. */
  readonly places = new Map<string, TextPosition>();
  readonly duplicates: PlacedYaml['duplicates'] = [];
  readonly #path: (string | number)[] = [];

  constructor(textLength: number, keepsPlaces = false) {
    this.#textLimit = ALIAS_TEXT + textLength;
    this.#keepsPlaces = keepsPlaces;
  }

  decode(node: YamlNode, asKey: boolean): JsonValue {
    this.#count(node);
    switch (node.kind) {
      case 'alias':
        return this.#throughAlias(node, (target) => this.decode(target, asKey));
      case 'scalar': {
        const resolved = this.#resolve(node);
        return asKey ? keyText(resolved, node) : toJson(resolved, node);
      }
      case 'sequence':
        if (asKey) throw new YamlError('yaml: invalid map key: a sequence', node.line + 1);
        return node.items.map((item, index) => this.#decodeAt(index, item, item));
      case 'mapping': {
        if (asKey) throw new YamlError('yaml: invalid map key: a mapping', node.line + 1);
        const object: JsonObject = {};
        this.#fill(object, node);
        return object;
      }
    }
  }

  #throughAlias<T>(node: AliasNode, visit: (target: YamlNode) => T): T {
    if (node.active) throw new YamlError(`yaml: anchor '${node.name}' value contains itself`, node.line + 1);
    node.active = true;
    this.#aliasDepth++;
    const result = visit(node.target);
    this.#aliasDepth--;
    node.active = false;
    return result;
  }

  #count(node: YamlNode): void {
    this.#nodes++;
    if (this.#aliasDepth === 0) return;
    this.#aliased++;
    if (node.kind === 'scalar') this.#aliasedText += node.value.length;
    const share = (this.#nodes - ALIAS_RATIO_LOW) / (ALIAS_RATIO_HIGH - ALIAS_RATIO_LOW);
    const allowed = 0.99 - 0.89 * Math.min(1, Math.max(0, share));
    const tooMany = this.#aliased > 100 && this.#nodes > 1000 && this.#aliased / this.#nodes > allowed;
    if (tooMany || this.#aliasedText > this.#textLimit) {
      throw new YamlError('yaml: document contains excessive aliasing', node.line + 1);
    }
  }

  /** Decodes the value of a key or index that is written at `start`. */
  #decodeAt(name: string | number, start: YamlNode, node: YamlNode): JsonValue {
    if (!this.#keepsPlaces) return this.decode(node, false);
    this.#path.push(name);
    // An alias repeats what was recorded at its anchor.
    this.places.set(JSON.stringify(this.#path), toPlace(start));
    const value = this.decode(node, false);
    this.#path.pop();
    return value;
  }

  #fill(object: JsonObject, node: CollectionNode): void {
    const seen = this.#keepsPlaces ? new Map<string, YamlNode>() : undefined;
    for (let i = 0; i < node.items.length; i += 2) {
      const key = node.items[i] as YamlNode;
      const value = node.items[i + 1] as YamlNode;
      if (isMerge(key)) {
        this.#merge(object, value, true);
      } else {
        const name = this.decode(key, true) as string;
        const first = seen?.get(name);
        if (first !== undefined) this.#addDuplicate(name, toPlace(key), toPlace(first));
        seen?.set(name, key);
        setJsonKey(object, name, this.#decodeAt(name, key, value));
      }
    }
  }

  /** Adds a duplicate key once, also if aliases repeat it. */
  #addDuplicate(name: string, place: TextPosition, first: TextPosition): void {
    const isSame = ({ place: { line, column } }: { place: TextPosition }): boolean =>
      line === place.line && column === place.column;
    if (!this.duplicates.some(isSame)) this.duplicates.push({ path: [...this.#path, name], place, first });
  }

  /** Merged keys replace those before the merge, as in Go. */
  #merge(object: JsonObject, node: YamlNode, mayBeList: boolean): void {
    if (node.kind === 'mapping') {
      this.#count(node);
      this.#fill(object, node);
    } else if (node.kind === 'alias' && node.target.kind === 'mapping') {
      this.#count(node);
      this.#throughAlias(node, (target) => {
        this.#merge(object, target, false);
      });
    } else if (node.kind === 'sequence' && mayBeList) {
      for (const item of node.items.slice().reverse()) this.#merge(object, item, false);
    } else {
      const problem = 'map merge requires map or sequence of maps as the value';
      throw new YamlError(`yaml: ${problem}`, node.line + 1);
    }
  }

  #resolve(node: ScalarNode): ResolvedScalar {
    const { tag, value } = node;
    if (tag === '') return node.implicit ? resolveScalar(value) : { type: 'str', value };
    if (tag === `${YAML_TAG}binary`) return { type: 'str', value: decodeBinary(node) };
    const wanted = TAG_TYPES.get(tag);
    if (wanted === undefined || wanted === 'str') return { type: 'str', value };
    const resolved = resolveScalar(value);
    const type = resolved.type === 'timestamp' && wanted !== 'timestamp' ? 'str' : resolved.type;
    if (type === wanted) return resolved;
    if (wanted === 'float' && resolved.type === 'int' && resolved.value <= MAX_INT64) {
      return { type: 'float', value: Number(resolved.value) };
    }
    throw new YamlError(`yaml: cannot decode !!${type} \`${value}\` as a !!${wanted}`, node.line + 1);
  }
}

const MAX_INT64 = 2n ** 63n - 1n;

const TAG_TYPES = new Map<string, ResolvedScalar['type']>([
  [`${YAML_TAG}str`, 'str'],
  [`${YAML_TAG}bool`, 'bool'],
  [`${YAML_TAG}int`, 'int'],
  [`${YAML_TAG}float`, 'float'],
  [`${YAML_TAG}null`, 'null'],
  [`${YAML_TAG}timestamp`, 'timestamp'],
]);

function isMerge(node: YamlNode): boolean {
  return node.kind === 'scalar' && node.value === '<<' && (node.implicit || node.tag === `${YAML_TAG}merge`);
}

function decodeBinary(node: ScalarNode): string {
  const text = node.value.replace(/[\r\n]/g, '');
  if (text.length % 4 !== 0 || !/^[A-Za-z0-9+/]*={0,2}$/.test(text)) {
    throw new YamlError('yaml: !!binary value contains invalid base64 data', node.line + 1);
  }
  return Buffer.from(text, 'base64').toString('utf8');
}

function toJson(scalar: ResolvedScalar, node: ScalarNode): JsonValue {
  if (scalar.type === 'float' && !Number.isFinite(scalar.value)) {
    const name = Number.isNaN(scalar.value) ? 'NaN' : scalar.value > 0 ? '+Inf' : '-Inf';
    throw new YamlError(`json: unsupported value: ${name}`, node.line + 1);
  }
  return scalar.value;
}

function keyText(scalar: ResolvedScalar, node: ScalarNode): string {
  if (scalar.type === 'float') return formatFloatKey(scalar.value);
  if (scalar.type === 'null' || (typeof scalar.value === 'bigint' && scalar.value > MAX_INT64)) {
    const what = scalar.type === 'null' ? 'null' : String(scalar.value);
    throw new YamlError(`yaml: unsupported map key: ${what}`, node.line + 1);
  }
  return String(scalar.value);
}
