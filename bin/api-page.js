// The page of the library: every name that src/index.ts exports, with its doc comment; those of src/api with
// their declarations. Syntax only; no
// types are computed, so it takes less than a second.
import { readFileSync } from 'node:fs';
import path from 'node:path';
import ts from 'typescript';

const parse = (file) =>
  ts.createSourceFile(file, readFileSync(file, 'utf8'), ts.ScriptTarget.Latest, /* setParentNodes */ true);

/** Exports of a module: the names, or undefined for `export *`, and the file that declares them. */
function exportsOf(file) {
  return parse(file)
    .statements.filter((statement) => ts.isExportDeclaration(statement) && statement.moduleSpecifier)
    .map((statement) => ({
      file: path.join(path.dirname(file), statement.moduleSpecifier.text.replace(/\.js$/, '.ts')),
      names: statement.exportClause?.elements.map((element) => element.name.text),
    }));
}

function isExported(statement) {
  return statement.modifiers?.some(({ kind }) => kind === ts.SyntaxKind.ExportKeyword) ?? false;
}

/** Declarations of a module by name: exported ones, and other types. */
function declarationsOf(source) {
  const all = new Map();
  const isType = (statement) => ts.isInterfaceDeclaration(statement) || ts.isTypeAliasDeclaration(statement);
  for (const statement of source.statements.filter((one) => isExported(one) || isType(one))) {
    if (ts.isVariableStatement(statement)) {
      for (const { name } of statement.declarationList.declarations) all.set(name.text, statement);
    } else if (statement.name !== undefined && !all.has(statement.name.text)) {
      all.set(statement.name.text, statement);
    }
  }
  return all;
}

/** Doc comment as text, without the stars. */
function commentOf(node) {
  const [comment] = (node.jsDoc ?? []).slice(-1);
  if (comment === undefined) return '';
  return comment
    .getText()
    .replace(/^\/\*\*\s*|\s*\*\/$/g, '')
    .replace(/^\s*\* ?/gm, '')
    .trim();
}

/** Declaration without bodies and private members. */
function signatureOf(node) {
  const source = node.getSourceFile();
  const text = (one) => source.text.slice(one.getStart(source), one.end);
  if (ts.isFunctionDeclaration(node)) {
    const end = node.body?.pos ?? node.end;
    return source.text.slice(node.getStart(source), end).trim();
  }
  if (ts.isClassDeclaration(node)) {
    const isPublic = (member) =>
      !ts.isPrivateIdentifier(member.name ?? member) &&
      !member.modifiers?.some(({ kind }) => kind === ts.SyntaxKind.PrivateKeyword);
    const members = node.members.filter(isPublic).map((member) => {
      const end = member.body?.pos ?? member.initializer?.pos ?? member.end;
      const head = source.text.slice(member.getStart(source), end);
      return `  ${head.replace(/\s*=?\s*$/, '').replace(/;$/, '')};`;
    });
    const head = source.text.slice(node.getStart(source), node.members.pos);
    return `${head.trim()}\n${members.join('\n')}\n}`;
  }
  if (ts.isVariableStatement(node)) return text(node).split(' = ')[0];
  return text(node);
}

/** Files of the names that a module imports from others of the project. */
function importsOf(source) {
  const files = new Map();
  for (const { importClause, moduleSpecifier } of source.statements.filter(ts.isImportDeclaration)) {
    const target = moduleSpecifier.text;
    const file = path.join(path.dirname(source.fileName), target.replace(/\.js$/, '.ts'));
    const names = importClause?.namedBindings?.elements ?? [];
    if (target.startsWith('.')) for (const { name } of names) files.set(name.text, file);
  }
  return files;
}

/** Markdown of the library's exports, verbs first, with the types of their options and results. */
export function apiPage(root) {
  const modules = new Map();
  const moduleOf = (file) => {
    const known = modules.get(file);
    if (known !== undefined) return known;
    const source = parse(file);
    const module = { declarations: declarationsOf(source), imports: importsOf(source) };
    modules.set(file, module);
    return module;
  };
  const entries = new Map();
  const add = (file, name) => {
    const node = moduleOf(file).declarations.get(name);
    if (node === undefined) throw new Error(`${path.relative(root, file)}: does not declare ${name}`);
    const isOwn = file.includes('/src/api/');
    const isType = ts.isInterfaceDeclaration(node) || ts.isTypeAliasDeclaration(node);
    const entry = { file, name, comment: commentOf(node), signature: signatureOf(node), isOwn, isType };
    entries.set(name, entry);
    return entry;
  };
  for (const { file, names } of exportsOf(path.join(root, 'src', 'index.ts'))) {
    for (const name of names ?? moduleOf(file).declarations.keys()) add(file, name);
  }
  const extended = new Set();
  const pending = [...entries.values()].filter(({ isOwn }) => isOwn);
  for (const { file, signature } of pending) {
    const { declarations, imports } = moduleOf(file);
    const parents =
      /^(?:export )?interface [^{]* extends ([^{]+)\{/.exec(signature)?.[1]?.match(/\w+/g) ?? [];
    for (const name of new Set(signature.match(/\b[A-Z]\w+/g))) {
      const home = declarations.has(name) ? file : imports.get(name);
      const isWanted = parents.includes(name) || home?.includes('/src/api/') === true;
      if (home === undefined || !isWanted || !moduleOf(home).declarations.has(name)) continue;
      if (parents.includes(name)) extended.add(name);
      if (!entries.has(name)) pending.push(add(home, name));
    }
  }
  const sorted = [...entries.values()].sort((a, b) => (a.name < b.name ? -1 : 1));
  const section = (title, list) =>
    `## ${title}\n\n${list
      .map(({ name, comment, signature }) =>
        [`### ${name}`, comment, `\`\`\`ts\n${signature.replace(/^export /, '')}\n\`\`\``]
          .filter(Boolean)
          .join('\n\n'),
      )
      .join('\n\n')}\n`;
  const isListed = ({ name, isOwn, isType }) => isOwn || (isType && extended.has(name));
  const own = sorted.filter(isListed);
  const summaries = sorted
    .filter((entry) => !isListed(entry))
    .map(({ name, comment }) => {
      const [summary] = comment.replace(/\s+/g, ' ').split(/(?<=\.) (?=[A-Z])/);
      return `- \`${name}\`${summary === '' ? '' : `: ${summary}`}`;
    });
  return (
    [
      '<!-- Generated by `npm run reference` from the doc comments of src; do not edit. -->\n# Library\n',
      'Calls are typed, stream where results are large, stop when the AbortSignal of their session fires, and throw\n`OpmateError`; nothing prints or exits. See `docs/library.md` for an example of each, `docs/examples` for whole programs.\n',
      section(
        'Verbs',
        own.filter(({ isType }) => !isType),
      ),
      '',
    ].join('\n') +
    section(
      'Types',
      own.filter(({ isType }) => isType),
    ).replace(
      '## Types\n',
      '## Types\n\nOf options and results. Name them as `Parameters<typeof render>[2]` or `Awaited<ReturnType<typeof validate>>`.\n',
    ) +
    `\n## Building blocks\n\nThe declarations in the package have their details.\n\n${summaries.join('\n')}\n`
  );
}
