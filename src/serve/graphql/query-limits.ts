import {
  type DocumentNode,
  type FragmentDefinitionNode,
  GraphQLError,
  Kind,
  Lexer,
  type SelectionSetNode,
  Source,
  TokenKind,
  parse,
} from 'graphql';

/** Limits of catalogd per operation; a fragment is measured once. */
const maxDepth = 10;
const maxAliases = 50;
const maxFields = 500;

/** Limits of the whole text, for fast parsing and validation. */
const maxTokens = 15_000;
const maxNesting = 200;
const maxSelections = 1_000;
const maxDefinitions = 200;

/** Maximum values of an introspection query. */
const maxIntrospected = 200_000;

/** Sizes of a GraphQL schema, which multiply the results of introspection. */
export interface SchemaSize {
  types: number;
  /** Maximum of all types. */
  fieldsPerType: number;
}

/**
 * Parses and measures a query; `typenameBytes` is the maximum of `__typename` per object, which no resolver sees. Throws
 * GraphQLError for an invalid query or one beyond a limit.
 */
export function parseQuery(query: string) {
  const source = new Source(query);
  let document: DocumentNode;
  try {
    checkTokens(source);
    document = parse(source);
  } catch (error) {
    if (!(error instanceof GraphQLError) || error instanceof QueryLimitError) throw error;
    const [place] = error.locations ?? [];
    const where = place === undefined ? '' : ` (${place.line}:${place.column})`;
    throw new GraphQLError(`query parse error: ${error.message}${where}`);
  }
  measureOperations(document);
  return { document, typenameBytes: measureDocument(document) };
}

/** A query exceeds a limit. */
class QueryLimitError extends GraphQLError {}

function createLimitError(quantity: string, limit: number): QueryLimitError {
  return new QueryLimitError(`query exceeds maximum ${quantity} of ${limit}`);
}

/** Limits nested brackets, as the parser recurses. */
function checkTokens(source: Source): void {
  const lexer = new Lexer(source);
  let nesting = 0;
  for (let count = 0; lexer.advance().kind !== TokenKind.EOF; count++) {
    if (count >= maxTokens) throw createLimitError('token count', maxTokens);
    const { kind } = lexer.token;
    if (kind === TokenKind.BRACE_L || kind === TokenKind.BRACKET_L || kind === TokenKind.PAREN_L) {
      if (++nesting > maxNesting) throw createLimitError('depth', maxDepth);
    } else if (kind === TokenKind.BRACE_R || kind === TokenKind.BRACKET_R || kind === TokenKind.PAREN_R) {
      nesting--;
    }
  }
}

function measureOperations(document: DocumentNode): void {
  const { definitions } = document;
  if (definitions.length > maxDefinitions) throw createLimitError('definition count', maxDefinitions);
  const fragments = getFragments(document);
  for (const definition of definitions) {
    if (definition.kind !== Kind.OPERATION_DEFINITION) continue;
    const visited = new Set<string>();
    let [aliases, fields] = [0, 0];
    const measure = (set: SelectionSetNode | undefined, depth: number): void => {
      if (set === undefined) return;
      if (depth > maxDepth) throw createLimitError('depth', maxDepth);
      for (const selection of set.selections) {
        if (selection.kind === Kind.FRAGMENT_SPREAD) {
          const { value } = selection.name;
          if (visited.has(value)) continue;
          visited.add(value);
          measure(fragments.get(value)?.selectionSet, depth + 1);
          continue;
        }
        if (selection.kind === Kind.FIELD) {
          if (++fields > maxFields) throw createLimitError('field count', maxFields);
          if (selection.alias !== undefined) aliases++;
          if (aliases > maxAliases) throw createLimitError('alias count', maxAliases);
        }
        measure(selection.selectionSet, depth + 1);
      }
    };
    measure(definition.selectionSet, 1);
  }
}

/** Includes unused parts, which validation compares too. */
function measureDocument({ definitions }: DocumentNode): number {
  let selections = 0;
  let typenameBytes = 0;
  const count = (set: SelectionSetNode): void => {
    selections += set.selections.length;
    if (selections > maxSelections) throw createLimitError('selection count', maxSelections);
    for (const selection of set.selections) {
      if (selection.kind === Kind.FRAGMENT_SPREAD) continue;
      if (selection.kind === Kind.FIELD && selection.name.value === '__typename') {
        typenameBytes += (selection.alias ?? selection.name).value.length + 40;
      }
      if (selection.selectionSet !== undefined) count(selection.selectionSet);
    }
  };
  for (const definition of definitions) if ('selectionSet' in definition) count(definition.selectionSet);
  return typenameBytes;
}

function getFragments(document: DocumentNode): Map<string, FragmentDefinitionNode> {
  const fragments = new Map<string, FragmentDefinitionNode>();
  for (const definition of document.definitions) {
    if (definition.kind === Kind.FRAGMENT_DEFINITION) fragments.set(definition.name.value, definition);
  }
  return fragments;
}

/**
 * Limits the maximum result of introspection in a valid query, which is resolved synchronously. Throws GraphQLError.
 */
export function checkIntrospection(document: DocumentNode, size: SchemaSize): void {
  const fragments = getFragments(document);
  let total = 0;
  const add = (set: SelectionSetNode | undefined, times: number): void => {
    for (const selection of set?.selections ?? []) {
      // Includes spreads: fragments that spread each other twice double the work per level.
      total += times;
      if (total > maxIntrospected) throw createLimitError('introspection size', maxIntrospected);
      if (selection.kind === Kind.FRAGMENT_SPREAD) {
        add(fragments.get(selection.name.value)?.selectionSet, times);
      } else if (selection.kind === Kind.INLINE_FRAGMENT) add(selection.selectionSet, times);
      else add(selection.selectionSet, times * getTimes(selection.name.value, size));
    }
  };
  const spread = new Set<string>();
  const addRoots = (set: SelectionSetNode | undefined): void => {
    for (const selection of set?.selections ?? []) {
      if (selection.kind === Kind.FRAGMENT_SPREAD) {
        const { value } = selection.name;
        if (spread.has(value)) continue;
        spread.add(value);
        addRoots(fragments.get(value)?.selectionSet);
      } else if (selection.kind === Kind.INLINE_FRAGMENT) addRoots(selection.selectionSet);
      else if (selection.name.value === '__schema' || selection.name.value === '__type') {
        add(selection.selectionSet, 1);
      }
    }
  };
  for (const definition of document.definitions) {
    if (definition.kind === Kind.OPERATION_DEFINITION) addRoots(definition.selectionSet);
  }
}

/** Returns the maximum number of values of an introspection field. */
function getTimes(field: string, { types, fieldsPerType }: SchemaSize): number {
  if (field === 'types') return types;
  if (field === 'fields') return fieldsPerType;
  return ['args', 'directives', 'locations', 'enumValues'].includes(field) ? 10 : 1;
}
