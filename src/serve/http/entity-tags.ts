import { computeDigest, parseDigest } from '../../core/digest.js';
import { type Representation, evaluateConditions } from './conditions.js';
import { type Coding, availableCodings } from './encoding.js';
import type { Exchange } from './exchange.js';

/** Returns the strong tag of a content in a coding, quotes included. */
export type EntityTags = (coding?: Coding) => string;

/** Returns the tags of a content, from its hash, the query and the coding. */
export function getTags(hash: string, query: readonly string[] = []): EntityTags {
  const suffix = query.every((text) => text === '') ? '' : `-${computeShortDigest(query)}`;
  const tag = `sha256-${parseDigest(hash).hex}${suffix}`;
  return (coding) => `"${tag}${coding === undefined ? '' : `-${coding}`}"`;
}

function computeShortDigest(texts: readonly string[]): string {
  return parseDigest(computeDigest(JSON.stringify(texts))).hex.slice(0, 16);
}

/** Responds with 304 or 412 if the conditions of a request require it. Returns whether it did. */
export function respondToConditions(
  { request, response }: Exchange,
  tags: EntityTags,
  coding: Coding | undefined,
  lastModified?: Date,
): boolean {
  const etag = tags(coding);
  const otherEtags = [tags(), ...availableCodings.map(tags)].filter((tag) => tag !== etag);
  const representation: Representation = { etag, otherEtags, lastModified };
  const verdict = evaluateConditions(request.headers, representation);
  if (verdict.kind === 'send') return false;
  if (verdict.kind === 'unchanged') {
    response.statusCode = 304;
    response.setHeader('ETag', verdict.etag);
  } else response.statusCode = 412;
  response.end();
  return true;
}
