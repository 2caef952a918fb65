// Removes the declarations of dist that the library's own do not lead to: the package contains only those.
import { readdirSync, rmSync } from 'node:fs';
import path from 'node:path';
import { fileURLToPath } from 'node:url';
import ts from 'typescript';

const dist = fileURLToPath(new URL('../dist/', import.meta.url));
const options = { module: ts.ModuleKind.NodeNext, moduleResolution: ts.ModuleResolutionKind.NodeNext };
const program = ts.createProgram([path.join(dist, 'index.d.ts')], options);
const needed = new Set(program.getSourceFiles().map(({ fileName }) => path.resolve(fileName)));
for (const name of readdirSync(dist, { recursive: true })) {
  const file = path.resolve(dist, name);
  if (file.endsWith('.d.ts') && !needed.has(file)) rmSync(file);
}
