// Runs one benchmark: npm run bench -- NAME. Without a name, lists them; `all` runs every one in turn.
// Each compares with a reference measured in the same run and fails when its ratio is exceeded.
import { readdirSync } from 'node:fs';

const names = readdirSync(new URL('.', import.meta.url))
  .filter((name) => name.endsWith('.js') && name !== 'run.js')
  .map((name) => name.slice(0, -3));

const wanted = process.argv[2];
if (wanted === undefined) {
  for (const name of names) console.log(`${name}: ${(await import(`./${name}.js`)).summary}`);
} else if (wanted !== 'all' && !names.includes(wanted)) {
  console.error(`no benchmark ${wanted}; there are: ${names.join(', ')}, all`);
  process.exitCode = 2;
} else {
  for (const name of wanted === 'all' ? names : [wanted]) {
    const { summary, run } = await import(`./${name}.js`);
    console.log(`${name}: ${summary}`);
    if (!(await run())) process.exitCode = 1;
  }
}
