// Answers case lines on stdin with answer lines on stdout, through the verbs of the library.
// Usage: node test/corpus/answer.js SET; each module of answers/ is a set. BUNDLES and PLAN_ROOT name directories of inputs.
import { existsSync } from 'node:fs';
import { createInterface } from 'node:readline';

const set = process.argv[2] ?? '';
const module = new URL(`./answers/${set}.js`, import.meta.url);
if (!/^[a-z0-9-]+$/.test(set) || !existsSync(module)) {
  console.error(`answer: unknown set "${set}"`);
  process.exit(2);
}

const { answer } = await import(module.href);
for await (const line of createInterface({ input: process.stdin, crlfDelay: Infinity })) {
  if (line.trim() === '') continue;
  const result = await answer(JSON.parse(line));
  if (!process.stdout.write(`${JSON.stringify(result)}\n`))
    await new Promise((resolve) => process.stdout.once('drain', resolve));
}
