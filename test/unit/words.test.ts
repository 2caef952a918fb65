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
  [/\b\w*(?:colour|behaviour|honour|favour)\w*\b/, 'US spelling'],
];

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

describe('words', () => {
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
