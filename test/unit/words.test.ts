import { readFileSync, readdirSync } from 'node:fs';
import path from 'node:path';
import ts from 'typescript';
import { describe, expect, it } from 'vitest';
import { projectRoot } from '../support/command-line.js';

/** Phrases that no tool of the field prints, each with what is written instead. */
const banned: readonly (readonly [RegExp, string])[] = [
  [/\bis there\b/, 'exists, is present; existing'],
  [/\bthere is none\b/, 'not found, none'],
  [/\bcannot be had\b/, 'unavailable'],
  [/\ball the same\b/, 'anyway'],
  [/\bbesides\b/, 'in addition to'],
  [/\btells\b/, 'reports, shows'],
  [/\bbites\b/, 'fails'],
  [/\bfares\b/, 'status'],
  [/\bso many\b/, 'N'],
  [/\bnobody asks\b|\bnobody can be asked\b/, 'unreferenced; no terminal to confirm'],
  [/\bis well\b/, 'is healthy'],
  [/\bcounts\b/, 'takes precedence'],
  [/\bfile of its own\b/, 'separate file'],
  [/\bby itself\b/, 'automatically'],
  [/\bgives\b/, 'returns, has'],
  [/\bunless told\b/, 'default: …'],
  [/\bgiven up\b/, 'no longer supported'],
  [/\bone file a package\b/, 'one file per package'],
  [/\bends early\b/, 'unexpected end'],
  [/\bother bytes follow\b/, 'trailing data'],
  [/\bcut short\b/, 'truncated'],
  [/\bwritten anew\b/, 'overwritten, rewritten'],
  [/\bwhat is higher\b/, 'higher versions'],
  [/\bis not there\b/, 'not found, does not exist'],
  [/\bin each other\b/, 'nested'],
  [/\bleads nowhere\b/, 'has no target, selects nothing'],
  [/\bnot together with\b/, 'cannot be combined with'],
  [/\bas it would be\b/, 'after the edit'],
  [/\bsecond document begins\b/, 'unexpected second document'],
  [/\bnot base64\b/, 'invalid base64'],
  [/\b\w*(?:colour|behaviour|honour|favour)\w*\b/, 'US spelling'],
];

/** Rooms whose doc comments are summary lines with a verb, or noun phrases; rooms are only ever added. */
const summarizedRooms = [
  'api',
  'archive',
  'bundle',
  'catalog',
  'cli',
  'client',
  'core',
  'cluster',
  'document',
  'files',
  'graph',
  'helm',
  'kube',
  'mirror',
  'model',
  'oci',
  'release',
  'serve',
  'source',
  'sqlite',
  'trust',
  'view',
];

/** Returns the doc comments of a module that start with a question word instead of a verb or a noun. */
function unsummarizedIn(file: string, code = readFileSync(path.join(projectRoot, file), 'utf8')): string[] {
  const comments = code.matchAll(
    /\/\*\*[\s*]+((?:Whether|Wh(?:at|ere|o|ose|oever|ich|y)|How|Tells)\b[^\n]*)/g,
  );
  return [...comments].map(([, text = '']) => `${file}: ${text}`);
}

function bannedIn(text: string): string[] {
  return banned.flatMap(([pattern, instead]) => {
    const found = new RegExp(pattern, 'i').exec(text);
    return found === null ? [] : [`"${found[0]}" in "${text.trim().slice(0, 120)}": write ${instead}`];
  });
}

function filesBelow(directory: string, pattern: RegExp): string[] {
  return readdirSync(path.join(projectRoot, directory), { recursive: true, encoding: 'utf8' })
    .filter((name) => pattern.test(name))
    .map((name) => `${directory}/${name}`);
}

/** The texts of a module that someone may read when it runs: literals, without names of modules. */
function textsOf(file: string): string[] {
  const code = readFileSync(path.join(projectRoot, file), 'utf8');
  const texts: string[] = [];
  const visit = (node: ts.Node): void => {
    if (ts.isImportDeclaration(node) || ts.isExportDeclaration(node)) return;
    if (ts.isStringLiteralLike(node) || ts.isJsxText(node)) texts.push(node.text);
    if (ts.isTemplateExpression(node)) {
      texts.push([node.head.text, ...node.templateSpans.map(({ literal }) => literal.text)].join('…'));
    }
    ts.forEachChild(node, visit);
  };
  const kind = file.endsWith('x') ? ts.ScriptKind.TSX : ts.ScriptKind.TS;
  visit(ts.createSourceFile(file, code, ts.ScriptTarget.Latest, false, kind));
  return texts;
}

/** How hints start: with what the reader does. */
const hintVerbs = new Set(
  (
    'add allow apply approve build change check compress convert copy create decrypt delete deprecate disable ' +
    'download edit enable exclude export fix free ignore include install keep list log merge migrate mirror move ' +
    'omit open publish pull push quote raise reduce remove rename render replace restore review run save see ' +
    'select set sign skip specify split start stop trust unpack update use verify wait'
  ).split(' '),
);

/** Returns the hints of a module as they start, without those whose start is a value. */
function hintsOf(file: string, code = readFileSync(path.join(projectRoot, file), 'utf8')): string[] {
  const hints: string[] = [];
  const collect = (node: ts.Expression): void => {
    if (ts.isStringLiteralLike(node)) hints.push(node.text);
    else if (ts.isTemplateExpression(node) && node.head.text !== '') hints.push(node.head.text);
    else if (ts.isParenthesizedExpression(node)) collect(node.expression);
    else if (ts.isConditionalExpression(node)) [node.whenTrue, node.whenFalse].forEach(collect);
    else if (ts.isBinaryExpression(node)) {
      collect(node.left);
      if (node.operatorToken.kind !== ts.SyntaxKind.PlusToken) collect(node.right);
    }
  };
  const isHint = (name: ts.Node): boolean => ts.isIdentifier(name) && /^(?:newH|h)int$|Hint$/.test(name.text);
  const visit = (node: ts.Node): void => {
    if ((ts.isPropertyAssignment(node) || ts.isVariableDeclaration(node)) && isHint(node.name)) {
      if (node.initializer !== undefined) collect(node.initializer);
    }
    if (ts.isFunctionDeclaration(node) && node.name !== undefined && isHint(node.name)) {
      const returned = (inner: ts.Node): void => {
        if (ts.isReturnStatement(inner) && inner.expression !== undefined) collect(inner.expression);
        ts.forEachChild(inner, returned);
      };
      returned(node);
    }
    ts.forEachChild(node, visit);
  };
  visit(ts.createSourceFile(file, code, ts.ScriptTarget.Latest, false));
  return hints;
}

function isImperative(hint: string): boolean {
  return hintVerbs.has(/^[a-z]+/.exec(hint)?.[0] ?? '') || hint.startsWith('did you mean ');
}

describe('words', () => {
  it('finds a hint that is no imperative', () => {
    const code = "fail({ hint: isLocal ? 'use a path' : `the path is ${path}` });";
    expect(hintsOf('x.ts', code).filter((hint) => !isImperative(hint))).toEqual(['the path is ']);
  });

  it('start every hint with a verb', () => {
    const wrong = filesBelow('src', /\.ts$/).flatMap((file) =>
      hintsOf(file)
        .filter((hint) => hint !== '' && !isImperative(hint))
        .map((hint) => `${file}: ${hint}`),
    );
    expect(wrong).toEqual([]);
  });

  it('finds a doc comment that starts with a question word', () => {
    expect(
      unsummarizedIn('x.ts', '/** Whether it is empty. */\n/** Reports whether it is empty. */'),
    ).toEqual(['x.ts: Whether it is empty. */']);
    expect(unsummarizedIn('x.ts', '/**\n * How messages name it.\n */')).toHaveLength(1);
  });

  it.each(summarizedRooms)('start every doc comment of %s with a verb or a noun', (room) => {
    expect(filesBelow(`src/${room}`, /\.ts$/).flatMap((file) => unsummarizedIn(file))).toEqual([]);
  });

  it('finds a banned phrase', () => {
    expect(bannedIn('keep nothing Besides')).toEqual([
      '"Besides" in "keep nothing Besides": write in addition to',
    ]);
    expect(bannedIn('keep only matching bundles')).toEqual([]);
  });

  it('are those of the field in help and messages', () => {
    const wrong = filesBelow('src', /\.tsx?$/).flatMap((file) =>
      textsOf(file).flatMap((text) => bannedIn(text).map((found) => `${file}: ${found}`)),
    );
    expect(wrong).toEqual([]);
  });

  // The reference is generated from help, which is checked above, and from doc comments.
  const pages = [
    'README.md',
    'CHANGELOG.md',
    'CONTRIBUTING.md',
    'SECURITY.md',
    ...filesBelow('docs', /\.md$/),
  ];
  it.each(pages.filter((file) => !file.startsWith('docs/reference')))(
    'are those of the field in %s',
    (file) => {
      const lines = readFileSync(path.join(projectRoot, file), 'utf8').split('\n');
      expect(lines.flatMap((line, i) => bannedIn(line).map((found) => `${file}:${i + 1}: ${found}`))).toEqual(
        [],
      );
    },
  );
});
