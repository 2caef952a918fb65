// Compares validate and render of generated, mutated catalogs with opm's recorded verdicts: `npm run test:differential`.
// With OPM=FILE it runs this opm instead, also on other catalogs: `-- --cases COUNT SEED`; the same seed makes the same ones.
// With OPM=FILE `-- --record [CASES]` it records its verdicts.
import { execFileSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { mkdir, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { Readable, Writable } from 'node:stream';
import { fileURLToPath } from 'node:url';
import { run } from '../../dist/cli/main.js';
import { createRandom, mutateBytes } from './mutate.js';

const recordFile = fileURLToPath(new URL('verdicts.json', import.meta.url));
const opm = process.env.OPM;
const [flag, cases = '500', seed = '0'] = process.argv.slice(2);
if (flag === '--cases' && opm === undefined) throw new Error('--cases: OPM=FILE is not set');
/** Seeds of different nights share no case. */
const first = flag === '--cases' ? Number(seed) * 100_000 : 0;
const scalars = ['yes', '012', '0o12', '1_000', '1e3', '~', '.inf', '1:23', '2001-01-01', '0x1F', '"x"', "'y'", '!!str 1', '[a]', '{b: 1}', '-0', '.5', '+1', 'null', '""']; // prettier-ignore
const separators = ['', '\n', '\n\n', ' ', '\n---\n', '\n\n---\n', '\n--- \n', '\t\n'];
const patterns = ['*.json', '/a.json', 'd/', '**/a.json', 'a.json/**', '*/**', '!a.json', 'd/*', '# x', '\\*', '[a-b].json', 'd']; // prettier-ignore

/** Returns the files of a case; the same for the same number. */
function makeCatalog(number) {
  const random = createRandom(number);
  const version = `1.${random.below(3)}.${random.below(3)}`;
  const blobs = [
    { schema: 'olm.package', name: 'p', defaultChannel: 'c' },
    {
      ...{ schema: 'olm.channel', package: 'p', name: 'c' },
      entries: [{ name: 'p.v1' }, { name: 'p.v2', replaces: 'p.v1', skipRange: `<${version}` }],
    },
    ...[1, 2].map((major) => ({
      ...{ schema: 'olm.bundle', package: 'p', name: `p.v${major}`, image: `quay.test/p:v${major}` },
      properties: [{ type: 'olm.package', value: { packageName: 'p', version: `${major}.0.0` } }],
      relatedImages: [{ name: '', image: `quay.test/p:v${major}` }],
    })),
    { schema: 'custom', name: 'x', value: random.pick([1, 1.5, 'a<b', null, [true], { z: 1, a: 2 }]) },
  ];
  const json = () => blobs.map((blob) => JSON.stringify(blob)).join(random.pick(separators.slice(0, 4)));
  const yaml = () =>
    blobs.map((blob) => `---\n${JSON.stringify(blob)}\n`).join('') +
    `---\nschema: custom\nname: y\nvalue: ${random.pick(scalars)}\n`;
  const mixed = () =>
    `${json()}${random.pick(separators)}schema: custom\nname: z\nvalue: ${random.pick(scalars)}\n`;
  const text = random.pick([json, yaml, mixed])();
  const files = { [random.pick(['a.json', 'd/a.json', 'a.yaml'])]: Buffer.from(text) };
  if (random.below(2) > 0)
    for (const name of Object.keys(files)) files[name] = mutateBytes(files[name], random);
  if (random.below(3) === 0) {
    files['b.json'] = Buffer.from('{"schema": "other", "name": "b"}');
    files['.indexignore'] = Buffer.from(`${random.pick(patterns)}\n${random.pick(patterns)}\n`);
  }
  return files;
}

const hash = (text) => createHash('sha256').update(text).digest('hex').slice(0, 12);

class Capture extends Writable {
  chunks = [];
  _write(chunk, _encoding, ready) {
    this.chunks.push(chunk);
    ready();
  }
}

async function runOpmate(root, args) {
  const stdout = new Capture();
  const exit = await run(args, {
    ...{ environment: {}, workingDirectory: root, homeDirectory: root, temporaryDirectory: root },
    ...{ stdin: Readable.from([]), stdout, stderr: new Capture(), signal: new AbortController().signal },
    ...{ now: () => new Date(0), architecture: 'x64' },
  });
  return { exit, stdout: Buffer.concat(stdout.chunks) };
}

function runOpm(root, args) {
  try {
    return { exit: 0, stdout: execFileSync(opm, args, { cwd: root, stdio: ['ignore', 'pipe', 'ignore'] }) };
  } catch (error) {
    if (typeof error.status !== 'number') throw error;
    return { exit: error.status, stdout: Buffer.alloc(0) };
  }
}

/** Returns the exit codes of validate and render, and the digest of what render prints. */
async function judge(root, execute) {
  const validated = await execute(root, ['validate', 'catalog']);
  const rendered = await execute(root, ['render', 'catalog']);
  return `${validated.exit}${rendered.exit}${rendered.exit === 0 ? hash(rendered.stdout) : ''}`;
}

/** Returns opm's verdict; of several, as its order of blobs without package in several files is random, the same one. */
async function judgeByOpm(root, verdict) {
  const verdicts = [];
  while (verdicts.length < 8 && !verdicts.includes(verdict)) verdicts.push(await judge(root, runOpm));
  return verdicts.at(-1);
}

const recorded = JSON.parse(await readFile(recordFile, 'utf8').catch(() => '{"verdicts": []}'));
const count = flag === undefined ? recorded.verdicts.length : Number(cases);
const verdicts = [];
let failures = 0;
for (let number = first; number < first + count; number++) {
  const root = await mkdtemp(path.join(tmpdir(), 'opmate-differential-'));
  try {
    for (const [name, content] of Object.entries(makeCatalog(number))) {
      const file = path.join(root, 'catalog', name);
      await mkdir(path.dirname(file), { recursive: true });
      await writeFile(file, content);
    }
    process.chdir(root);
    const verdict = await judge(root, runOpmate);
    const expected = opm === undefined ? recorded.verdicts[number] : await judgeByOpm(root, verdict);
    verdicts.push(expected);
    if (verdict === expected) continue;
    failures++;
    console.log(`case ${number}: expected ${expected}, got ${verdict}`);
  } finally {
    process.chdir(tmpdir());
    await rm(root, { recursive: true, force: true });
  }
}
if (flag === '--record') await writeFile(recordFile, `${JSON.stringify({ verdicts }, null, 2)}\n`);
console.log(`${count} cases with seed ${flag === '--cases' ? seed : 'of the record'}, ${failures} different`);
process.exitCode = failures > 0 ? 1 : 0;
