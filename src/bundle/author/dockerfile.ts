import path from 'node:path';
import { type Diagnostic, createFault } from '../../core/diagnostic.js';

/** The instructions of a `bundle.Dockerfile` that need no container engine. */
export interface BundleDockerfile {
  /** Undefined without FROM. */
  baseImage: string | undefined;
  labels: { key: string; value: string; line: number }[];
  copies: Copy[];
  findings: Diagnostic[];
}

/** A COPY instruction. */
export interface Copy {
  /** As written. */
  source: string;
  /** Absolute, without trailing slash; `/` is empty. */
  target: string;
  /** A file keeps its name below the target. */
  isDirectory: boolean;
  line: number;
}

const engineHint =
  'remove the line, or build with a container engine and push the image with api.copyReference';

/**
 * Reads a `bundle.Dockerfile`: one FROM, LABEL, and COPY of one file or directory. Other instructions need an engine and
 * are findings. (Source: https://docs.docker.com/reference/dockerfile/.)
 */
export function readDockerfile(text: string, file: string): BundleDockerfile {
  const read: BundleDockerfile = { baseImage: undefined, labels: [], copies: [], findings: [] };
  for (const { line, name, words, fault } of parseInstructions(text)) {
    const refuse = (message: string, hint = engineHint): void =>
      void read.findings.push(createFault('dockerfile', message, { file, line, hint }));
    if (fault !== undefined) refuse(`${name}: ${fault}`, 'fix the line');
    else if (name === 'FROM') {
      if (read.baseImage !== undefined) refuse('a second FROM: images of several stages need an engine');
      else if (words.length !== 1 || words[0]?.startsWith('--') === true) {
        refuse('FROM: more than the name of an image', 'use FROM scratch');
      } else read.baseImage = words[0] as string;
    } else if (name === 'LABEL') {
      for (const word of parsePairs(words)) {
        const equals = word.indexOf('=');
        if (equals > 0) {
          read.labels.push({ key: word.slice(0, equals), value: word.slice(equals + 1), line });
        } else refuse(`LABEL: ${JSON.stringify(word)} is not key=value`, 'use LABEL key="value"');
      }
    } else if (name === 'COPY') {
      const copy = parseCopy(words, line);
      if (typeof copy === 'string') refuse(`COPY: ${copy}`);
      else read.copies.push(copy);
    } else refuse(`${name}: needs an engine`);
  }
  if (read.baseImage === undefined && read.findings.length === 0)
    read.findings.push(createFault('dockerfile', 'no FROM', { file, hint: 'start with FROM scratch' }));
  return read;
}

/** Converts the form without equals sign, `LABEL key some text`. */
function parsePairs(words: readonly string[]): readonly string[] {
  const [key, ...rest] = words;
  return key !== undefined && !key.includes('=') && rest.length > 0 ? [`${key}=${rest.join(' ')}`] : words;
}

function parseCopy(words: readonly string[], line: number): Copy | string {
  const flag = words.find((word) => word.startsWith('--'));
  if (flag !== undefined) return `${flag.split('=')[0]} is not supported`;
  const [source, target] = words;
  if (words.length !== 2 || source === undefined || target === undefined)
    return 'one source and one target are supported';
  if (/[*?[\]]/.test(source)) return 'patterns are not supported';
  const clean = path.posix.join('/', target).replace(/\/$/, '');
  return { source, target: clean, isDirectory: clean === '' || /\/\.?$/.test(target), line };
}

interface Instruction {
  /** In upper case. */
  name: string;
  words: string[];
  /** First line. */
  line: number;
  fault: string | undefined;
}

function* parseInstructions(text: string): Generator<Instruction> {
  let joined = '';
  let first = 0;
  const lines = text.replace(/^\ufeff/, '').split(/\r?\n/);
  for (const [index, line] of lines.entries()) {
    if (/^\s*#\s*escape\s*=\s*`/i.test(line) && joined === '') {
      yield { name: 'escape', words: [], line: index + 1, fault: 'a directive that is not supported' };
    }
    // Comments and empty lines do not end an instruction that goes on.
    const isSilent = /^\s*(?:#|$)/.test(line);
    if (isSilent && !(joined !== '' && index === lines.length - 1)) continue;
    if (joined === '') first = index + 1;
    const continued = !isSilent && /\\[ \t]*$/.test(line) && index < lines.length - 1;
    joined += isSilent ? '' : continued ? line.replace(/\\[ \t]*$/, '') : line;
    if (continued || joined.trim() === '') continue;
    yield parseInstruction(joined.trim(), first);
    joined = '';
  }
  if (joined.trim() !== '') yield parseInstruction(joined.trim(), first);
}

function parseInstruction(text: string, line: number): Instruction {
  const [, name = '', rest = ''] = /^(\S+)\s*(.*)$/s.exec(text) ?? [];
  const base = { name: name.toUpperCase(), line };
  if (base.name === 'COPY' && rest.startsWith('[')) {
    try {
      const words: unknown = JSON.parse(rest);
      if (Array.isArray(words) && words.every((word) => typeof word === 'string'))
        return { ...base, words, fault: undefined };
    } catch {
      // Reported below.
    }
    return { ...base, words: [], fault: 'its list is not JSON' };
  }
  if (!['FROM', 'LABEL', 'COPY'].includes(base.name)) return { ...base, words: [], fault: undefined };
  return { ...base, ...splitWords(rest) };
}

/** Splits at blanks outside of quotes; a backslash escapes the next character. */
function splitWords(text: string): { words: string[]; fault: string | undefined } {
  const words: string[] = [];
  let word: string | undefined;
  let quote = '';
  for (let i = 0; i < text.length; i++) {
    const char = text[i] as string;
    const next = text[i + 1];
    if (quote === '' && /\s/.test(char)) {
      if (word !== undefined) words.push(word);
      word = undefined;
      continue;
    }
    word ??= '';
    if (char === '$' && quote !== "'") return { words, fault: 'variables are not supported' };
    if (char === '\\' && quote !== "'" && next !== undefined && (quote === '' || /["\\$]/.test(next))) {
      word += next;
      i++;
    } else if (quote !== '' ? char === quote : char === '"' || char === "'") quote = quote === '' ? char : '';
    else word += char;
  }
  if (word !== undefined) words.push(word);
  return { words, fault: quote === '' ? undefined : 'a quote that does not end' };
}
