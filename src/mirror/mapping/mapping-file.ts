import { type CancelOptions, mapConcurrent } from '../../core/concurrency.js';
import { DiagnosticsError, addContext, inContext, diagnosticsFrom } from '../../core/diagnostics-error.js';
import { OpmateError } from '../../core/errors.js';
import { missingRegistry, withoutCredentials } from '../../core/reference.js';
import { quoteGo } from '../../document/go-json.js';
import { formatImageName, formatRepository, withDockerDefaults } from '../naming/image-name.js';
import {
  type ImageLocation,
  formatImageLocation,
  locateImage,
  locateTarget,
  parseImageLocation,
} from '../naming/image-location.js';
import type { MirrorPlan } from '../plan/mirror-plan.js';
import type { PlannedImage } from '../plan/planned-image.js';

/** A source and a target of a mapping. */
export interface MappingPair {
  source: ImageLocation;
  /** Pattern of the source's tags, with `*` as wildcard; undefined for a single image. */
  tagPattern?: string | undefined;
  /** Has no digest; default tag is that of the source. */
  target: ImageLocation;
  /** Line of a file; undefined for an argument. */
  place?: MappingPlace | undefined;
}

interface MappingPlace {
  file: string;
  /** One-based. */
  line: number;
}

/** Maximum bytes of a line. */
const maxLineLength = 64 * 1024;

/**
 * Parses a mapping file of `oc image mirror`: any number of `SRC=DST`, or `SRC DST…`, per line; `#` starts a comment.
 * Throws OpmateError with file and line for the first invalid mapping.
 */
export function parseMappings(text: string, file: string): MappingPair[] {
  return text.split('\n').flatMap((line, i) => {
    const place = { file, line: i + 1 };
    if (Buffer.byteLength(line) > maxLineLength)
      throw mappingError('LIMIT', `line longer than ${maxLineLength} bytes`, place);
    const tokens = line
      .split('#', 1)[0]
      ?.trim()
      .split(' ')
      .filter((token) => token !== '');
    return parseTokens(tokens ?? [], place);
  });
}

/** Parses the pairs of a line, or of the arguments of a command. Throws OpmateError that names the pair. */
export function parseTokens(tokens: readonly string[], place?: MappingPlace): MappingPair[] {
  const fail = (message: string, hint?: string): never => {
    throw mappingError('INVALID', message, place, hint);
  };
  const [first, ...rest] = tokens;
  if (first === undefined) return [];
  const withSign = tokens.filter((token) => token.includes('='));
  let pairs: [string, string][];
  if (withSign.length === 0) {
    if (rest.length === 0) fail(`${quoteGo(first)} has no target`, 'use SOURCE=TARGET or SOURCE TARGET');
    pairs = rest.map((target) => [first, target]);
  } else {
    const lone = tokens.find((token) => !token.includes('='));
    if (lone !== undefined)
      fail(`${quoteGo(lone)} has no target`, 'use either SOURCE=TARGET or SOURCE TARGET on a line');
    pairs = withSign.map((token) => {
      const sign = token.indexOf('=');
      return [token.slice(0, sign), token.slice(sign + 1)];
    });
  }
  return pairs.map(([from, to]) => {
    const subject = quoteGo(`${withoutCredentials(from)}=${withoutCredentials(to)}`);
    if (from === '' || to === '') fail(`${subject}: both source and target are needed`);
    try {
      return { ...parsePair(from, to), place };
    } catch (error) {
      if (!(error instanceof OpmateError)) throw error;
      throw place === undefined ? addContext(error, { subject }) : addPlace(error, place);
    }
  });
}

function mappingError(
  code: 'INVALID' | 'LIMIT' | 'NOT_FOUND',
  message: string,
  place: MappingPlace | undefined,
  hint?: string,
): OpmateError {
  const error = new OpmateError(code, message, { hint });
  return place === undefined ? error : addPlace(error, place);
}

function addPlace(error: OpmateError, place: MappingPlace): OpmateError {
  const diagnostics = diagnosticsFrom(error).map((diagnostic) => ({ ...diagnostic, ...place }));
  return new DiagnosticsError(diagnostics, { code: error.code, cause: error });
}

/** Parses one side of a pair; errors name the side. */
function parseSide(side: 'source' | 'target', text: string): ImageLocation {
  const shown = withoutCredentials(text);
  const names = [text, shown, `image reference ${quoteGo(shown)}`];
  return inContext({ subject: `${side} ${shown}`, replaces: names }, () => {
    const reference = parseImageLocation(text);
    const { scheme, name } = reference;
    if (scheme === 'file' || name.registry !== '') return reference;
    // A single word is rather a typo than all tags of a Docker Hub repository.
    const isWord = !name.repository.includes('/') && name.tag === undefined && name.digest === undefined;
    if (side === 'source' && !isWord) return reference;
    throw missingRegistry(shown, formatImageName(withDockerDefaults(name)));
  });
}

function parsePair(from: string, to: string): Omit<MappingPair, 'place'> {
  const [, bare = from, glob] = /^(.*):([^:/@]*\*[^:/@]*)$/.exec(from) ?? [];
  const source = parseSide('source', bare);
  const isSingle = source.name.tag !== undefined || source.name.digest !== undefined;
  const tagPattern = isSingle ? undefined : (glob ?? '*');
  const target = parseSide('target', to);
  if (target.name.digest !== undefined) {
    throw new OpmateError('INVALID', 'a target cannot have a digest', {
      subject: to,
      hint: 'remove the digest: an image keeps its own',
    });
  }
  if (tagPattern !== undefined && target.name.tag !== undefined) {
    throw new OpmateError('INVALID', 'a target of several tags cannot have one', {
      subject: to,
      hint: 'remove the tag, or use one of the source',
    });
  }
  return { source, tagPattern, target };
}

interface ResolveOptions extends CancelOptions {
  /** Roots of sources and targets in `file://`. */
  roots: { from: string; to: string };
}

/** A pair of one image. */
type ResolvedPair = Omit<MappingPair, 'tagPattern'>;

/**
 * Plans pairs: resolves tag patterns with `listTags`, and completes targets with the tag, else the digest, of their
 * sources. Throws OpmateError INVALID for a duplicate target or one that is its source, and NOT_FOUND if no tag matches.
 */
export async function planPairs(
  pairs: readonly MappingPair[],
  listTags: (source: ImageLocation) => Promise<string[]>,
  options: ResolveOptions,
): Promise<MirrorPlan> {
  const lists = await mapConcurrent(
    pairs,
    4,
    async ({ tagPattern, ...pair }) => {
      if (tagPattern === undefined) return [withTarget(pair)];
      const matches = toMatcher(tagPattern);
      const tags = (await listTags(pair.source)).filter(matches);
      if (tags.length === 0) {
        const message = `${formatImageLocation(pair.source)}: no tag matches ${tagPattern}`;
        throw mappingError('NOT_FOUND', message, pair.place);
      }
      return tags.map((tag) =>
        withTarget({ ...pair, source: { ...pair.source, name: { ...pair.source.name, tag } } }),
      );
    },
    options,
  );
  const resolved = lists.flat();
  checkPairs(resolved);
  const images = resolved.map((pair) => toPlannedImage(pair, options.roots));
  return { images, catalogs: [], faults: [], blocked: [], warnings: [] };
}

function toPlannedImage({ source, target }: ResolvedPair, roots: ResolveOptions['roots']): PlannedImage {
  const reference = locateImage(source, roots.from);
  return {
    kind: 'mapped',
    reference,
    source: reference.text,
    title: reference.text,
    target: locateTarget(target, roots.to),
    destination: formatTargetName(target),
    bundles: [],
  };
}

function withTarget(pair: ResolvedPair): ResolvedPair {
  const { source, target } = pair;
  if (target.name.tag !== undefined) return pair;
  const { tag, digest } = source.name;
  const name = digest === undefined ? { ...target.name, tag } : { ...target.name, digest };
  return { ...pair, target: { ...target, name } };
}

/** Returns a matcher for tags with the wildcard `*`; its time is at most the product of both lengths. */
function toMatcher(pattern: string): (tag: string) => boolean {
  const [first = '', ...rest] = pattern.split('*');
  const last = rest.pop() ?? '';
  return (tag) => {
    if (!tag.startsWith(first) || !tag.endsWith(last) || tag.length < first.length + last.length)
      return false;
    let position = first.length;
    for (const part of rest) {
      const match = tag.indexOf(part, position);
      if (match < 0 || match + part.length > tag.length - last.length) return false;
      position = match + part.length;
    }
    return true;
  };
}

function checkPairs(pairs: readonly ResolvedPair[]): void {
  const seen = new Map<string, ResolvedPair>();
  for (const pair of pairs) {
    const target = formatImageLocation(pair.target);
    const fail = (message: string): never => {
      throw mappingError('INVALID', `${target}: ${message}`, pair.place);
    };
    if (target === formatImageLocation(pair.source)) fail('is both source and target');
    const other = seen.get(target);
    if (other !== undefined) {
      const [a, b] = [other, pair].map(({ source }) => formatImageLocation(source));
      const where = other.place === undefined ? '' : ` on line ${other.place.line}`;
      fail(`is the target of ${a}${where} and of ${b}`);
    }
    seen.set(target, pair);
  }
}

/** Formats a target for reports: with its tag, if it has one. */
function formatTargetName({ scheme, name }: ImageLocation): string {
  return name.tag === undefined
    ? `${scheme === 'file' ? 'file://' : ''}${formatRepository(name)}`
    : formatImageLocation({ scheme, name: { ...name, digest: undefined } });
}
