import { readFileSync } from 'node:fs';
import path from 'node:path';
import ts from 'typescript';
import { expect, it } from 'vitest';
import * as library from '../../src/index.js';

const root = path.resolve(import.meta.dirname, '../..');
const page = readFileSync(path.join(root, 'docs', 'library.md'), 'utf8');
const examples = [...page.matchAll(/^```js\n([\s\S]*?)^```/gm)].map(([, code]) => code as string);

it('has an example of every function and class of the library', () => {
  const used = new Set(examples.join('\n').match(/\w+/g));
  expect(Object.keys(library).filter((name) => !used.has(name))).toEqual([]);
  expect(Object.keys(library).length).toBeLessThanOrEqual(146);
});

it('has examples that the compiler accepts', () => {
  const files = new Map(
    examples.map((code, index) => {
      const session = code.includes('const session')
        ? ''
        : `declare const session: import('opmate').Session;`;
      return [path.join(root, `example-${index}.mts`), `${session}${code}`];
    }),
  );
  const options: ts.CompilerOptions = {
    target: ts.ScriptTarget.ES2023,
    module: ts.ModuleKind.NodeNext,
    moduleResolution: ts.ModuleResolutionKind.NodeNext,
    strict: true,
    exactOptionalPropertyTypes: true,
    skipLibCheck: true,
    noEmit: true,
    types: ['node'],
    paths: { opmate: [path.join(root, 'src', 'index.ts')] },
  };
  const host = ts.createCompilerHost(options);
  const { fileExists, readFile, getSourceFile } = host;
  host.fileExists = (file) => files.has(file) || fileExists(file);
  host.readFile = (file) => files.get(file) ?? readFile(file);
  host.getSourceFile = (file, target, ...rest) => {
    const code = files.get(file);
    return code === undefined
      ? getSourceFile.call(host, file, target, ...rest)
      : ts.createSourceFile(file, code, target);
  };
  const program = ts.createProgram([...files.keys()], options, host);
  const problems = [...files.keys()].flatMap((file) => {
    const source = program.getSourceFile(file);
    return [...program.getSyntacticDiagnostics(source), ...program.getSemanticDiagnostics(source)].map(
      ({ messageText }) => `${path.basename(file)}: ${ts.flattenDiagnosticMessageText(messageText, ' ')}`,
    );
  });
  expect(problems).toEqual([]);
});
