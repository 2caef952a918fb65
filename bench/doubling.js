import { createHash } from 'node:crypto';
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { median, opmate } from './support/measure.js';
import { spawn } from 'node:child_process';

export const summary =
  'time of readers and checks on catalogs of hostile shapes, as a ratio of doubled input to input';

/** Doubled input may take this many times as long; quadratic work takes four times. */
const maxRatio = 3;
const runs = 3;

const line = (blob) => `${JSON.stringify(blob)}\n`;
const packageBlob = { schema: 'olm.package', name: 'p', defaultChannel: 'c' };
const bundle = (index) => ({
  schema: 'olm.bundle',
  package: 'p',
  name: `p.v0.0.${index}`,
  image: `quay.io/p/p:v0.0.${index}`,
  properties: [{ type: 'olm.package', value: { packageName: 'p', version: `0.0.${index}` } }],
});
const channel = (entries) => ({ schema: 'olm.channel', package: 'p', name: 'c', entries });
const numbers = (count) => Array.from({ length: count }, (_, index) => index);
const chain = (count) =>
  channel(
    numbers(count).map((i) => ({
      name: `p.v0.0.${i}`,
      ...(i > 0 && { replaces: `p.v0.0.${i - 1}`, skipRange: `<0.0.${i}` }),
    })),
  );
const healthy = (count) => [packageBlob, chain(count), ...numbers(count).map(bundle)].map(line).join('');
const yamlChain = (count) =>
  `---\nschema: olm.package\nname: p\ndefaultChannel: c\n---\nschema: olm.channel\npackage: p\nname: c\nentries:\n${numbers(
    count,
  )
    .map((i) => `- name: p.v0.0.${i}\n${i > 0 ? `  replaces: p.v0.0.${i - 1}\n` : ''}`)
    .join('')}`;

/** A tar of empty files and links, in the layout of docker-archive, so that all of it is gone through. */
const archive = (count) => {
  const header = (name, content, flag = '0') => {
    const block = Buffer.alloc(512);
    block.write(name, 0);
    block.write('0000644\0', 100);
    block.write('0000000\0'.repeat(2), 108);
    block.write(`${content.length.toString(8).padStart(11, '0')}\0`, 124);
    block.write('00000000000\0        ', 136);
    block.write(flag, 156);
    block.write('ustar\x0000', 257);
    const sum = block.reduce((total, byte) => total + byte, 0);
    block.write(`${sum.toString(8).padStart(6, '0')}\0 `, 148);
    return Buffer.concat([block, content, Buffer.alloc((512 - (content.length % 512)) % 512)]);
  };
  const entry = (name, text) => header(name, Buffer.from(text));
  const layer = Buffer.concat([
    entry('configs/catalog.json', healthy(1)),
    ...numbers(count).map((i) => entry(`configs/d${i % 100}/.f${i}/catalog.json`, '')),
    Buffer.alloc(1024),
  ]);
  const labels = { 'operators.operatorframework.io.index.configs.v1': '/configs' };
  const diffId = `sha256:${createHash('sha256').update(layer).digest('hex')}`;
  const config = {
    architecture: 'amd64',
    os: 'linux',
    config: { Labels: labels },
    rootfs: { type: 'layers', diff_ids: [diffId] },
  };
  return Buffer.concat([
    entry(
      'manifest.json',
      JSON.stringify([{ Config: 'config.json', RepoTags: ['bench.test/c:v1'], Layers: ['layer.tar'] }]),
    ),
    entry('config.json', JSON.stringify(config)),
    header('layer.tar', layer),
    Buffer.alloc(1024),
  ]);
};

/** A catalog whose bundles need each other, so that resolution has to look further. */
const needy = (count) =>
  numbers(count)
    .flatMap((i) => [
      { schema: 'olm.package', name: `p${i}`, defaultChannel: 'c' },
      { schema: 'olm.channel', package: `p${i}`, name: 'c', entries: [{ name: `p${i}.v1.0.0` }] },
      {
        schema: 'olm.bundle',
        package: `p${i}`,
        name: `p${i}.v1.0.0`,
        image: `quay.io/p/p${i}:v1.0.0`,
        properties: [
          { type: 'olm.package', value: { packageName: `p${i}`, version: '1.0.0' } },
          ...(i > 0
            ? [{ type: 'olm.package.required', value: { packageName: `p${i - 1}`, versionRange: '>=1.0.0' } }]
            : []),
        ],
      },
    ])
    .map(line)
    .join('');

/** A substitutes template with nothing to fetch. */
const template = (count) =>
  JSON.stringify({
    schema: 'olm.template.substitutes',
    entries: [packageBlob, chain(count), ...numbers(count).map(bundle)],
    substitutions: [],
  });

/** A channel whose entries name bundles that are spelled otherwise. */
const misspelled = (count) =>
  [
    packageBlob,
    channel(
      numbers(count).map((i) => ({ name: `p.v0.0.${i}`, ...(i > 0 && { replaces: `q.v0.0.${i - 1}` }) })),
    ),
    ...numbers(count).map((i) => ({ ...bundle(i), name: `pp.v0.0.${i}` })),
  ]
    .map(line)
    .join('');

/** A package with a channel of one entry per bundle. */
const channels = (count) =>
  [
    { ...packageBlob, defaultChannel: 'c0' },
    ...numbers(count).map((i) => ({ ...channel([{ name: `p.v0.0.${i}` }]), name: `c${i}` })),
    ...numbers(count).map(bundle),
  ]
    .map(line)
    .join('');

const catalogName = 'catalog.yaml';

/** Catalogs by their size, and what reads or checks them; commands may end with findings. */
const cases = [
  {
    name: 'JSON with nothing between the blobs',
    count: 40_000,
    make: (count) =>
      numbers(count)
        .map((i) => JSON.stringify({ schema: 'x', name: `n${i}` }))
        .join(''),
    commands: [['validate'], ['render', '-o', 'yaml'], ['catalog', 'doctor']],
  },
  {
    name: 'JSON blobs that open as pretty ones and do not end so',
    count: 40_000,
    make: (count) => '{\n"schema":"x"}'.repeat(count),
    commands: [['validate']],
  },
  {
    name: 'JSON blobs without schema',
    count: 20_000,
    make: (count) => '{}'.repeat(count),
    commands: [['validate'], ['catalog', 'doctor']],
  },
  {
    name: 'empty YAML documents',
    count: 20_000,
    make: (count) => '---\n'.repeat(count),
    commands: [['validate'], ['catalog', 'doctor']],
  },
  {
    name: 'YAML that the quick reader does not take',
    count: 20_000,
    make: (count) =>
      `schema: x\n? list\n: ${numbers(count)
        .map((i) => `\n  - !!str "a${i}"`)
        .join('')}\n`,
    commands: [['validate']],
  },
  {
    name: 'channel without bundles, JSON',
    count: 10_000,
    make: (count) => line(packageBlob) + line(chain(count)),
    commands: [['validate'], ['catalog', 'doctor']],
  },
  {
    name: 'channel without bundles, YAML',
    count: 10_000,
    make: yamlChain,
    commands: [['validate'], ['catalog', 'doctor']],
  },
  {
    name: 'one long channel',
    count: 4_000,
    make: healthy,
    commands: [
      ['validate'],
      ['catalog', 'doctor'],
      ['list', 'bundles'],
      ['list', 'channels'],
      ['graph'],
      ['catalog', 'filter', '-p', 'p', '-o', '-'],
    ],
  },
  {
    name: 'one long chain without ranges',
    count: 10_000,
    make: (count) =>
      [
        packageBlob,
        channel(
          numbers(count).map((i) => ({ name: `p.v0.0.${i}`, ...(i > 0 && { replaces: `p.v0.0.${i - 1}` }) })),
        ),
        ...numbers(count).map(bundle),
      ]
        .map(line)
        .join(''),
    commands: [['graph'], ['catalog', 'diff', '{catalog}']],
  },
  {
    name: 'many packages',
    count: 5_000,
    make: (count) =>
      numbers(count)
        .map((i) =>
          [
            { schema: 'olm.package', name: `p${i}`, defaultChannel: 'c' },
            { schema: 'olm.channel', package: `p${i}`, name: 'c', entries: [{ name: `p${i}.v1.0.0` }] },
          ]
            .map(line)
            .join(''),
        )
        .join(''),
    commands: [['validate'], ['catalog', 'doctor']],
  },
  {
    name: 'layer of many entries',
    count: 5_000,
    file: 'image.tar',
    make: archive,
    commands: [['render', 'docker-archive:{input}']],
  },
  {
    name: 'long channel to resolve from',
    count: 5_000,
    make: healthy,
    commands: [['bundle', 'resolve', 'p', '--catalog', '{input}', '--installed', 'p.v0.0.0']],
  },
  {
    name: 'skip range in every entry',
    count: 6_000,
    make: healthy,
    commands: [
      ['view', '{input}', '--export', '{output}'],
      ['bundle', 'successors', 'p', 'p.v0.0.0', '--catalog', '{input}'],
    ],
  },
  {
    name: 'many channels',
    count: 6_000,
    make: channels,
    commands: [
      ['view', '{input}', '--export', '{output}'],
      ['bundle', 'successors', 'p', 'p.v0.0.0', '--catalog', '{input}'],
    ],
  },
  {
    name: 'packages that require each other',
    count: 3_000,
    make: needy,
    commands: [
      ['catalog', 'doctor'],
      ['catalog', 'filter', '-p', 'p0', '-o', '-'],
    ],
  },
  {
    name: 'substitutes template',
    count: 4_000,
    file: 'template.json',
    make: template,
    commands: [
      ['template', 'render', '{input}'],
      ['template', 'render', '{input}', '-o', 'mermaid'],
    ],
  },
  {
    name: 'misspelled names',
    count: 10_000,
    make: misspelled,
    commands: [['validate'], ['catalog', 'doctor']],
  },
];

/** Seconds that a command takes, which must end with an expected exit code: what fails at once measures nothing. */
function time(args, codes) {
  return new Promise((resolve, reject) => {
    const start = performance.now();
    const child = spawn(process.execPath, [opmate, ...args], { stdio: ['ignore', 'ignore', 'pipe'] });
    let errors = '';
    child.stderr.on('data', (chunk) => (errors = errors.length > 2000 ? errors : errors + chunk));
    child.on('error', reject);
    child.on('close', (code) => {
      if (codes.includes(code)) resolve((performance.now() - start) / 1000);
      else reject(new Error(`opmate ${args.join(' ')}: exit ${code}\n${errors}`));
    });
  });
}

export async function run() {
  const work = mkdtempSync(path.join(tmpdir(), 'opmate-bench-'));
  const output = path.join(work, 'output');
  let good = true;
  try {
    for (const [index, { name, count, make, commands, file: given = catalogName }] of cases.entries()) {
      const [once, twice] = [1, 2].map((factor) => {
        const directory = path.join(work, `${index}-${factor}`);
        mkdirSync(directory);
        const file = path.join(directory, given);
        writeFileSync(file, make(count * factor));
        return given === catalogName ? directory : file;
      });
      for (const command of commands) {
        const argsFor = (input) =>
          command.some((word) => word.includes('{input}'))
            ? command.map((word) => word.replace('{input}', input).replace('{output}', output))
            : [...command.map((word) => (word === '{catalog}' ? input : word)), input];
        // Many of these catalogs are not valid, which ends validate with 1 and doctor with 3.
        const codes = command[0] === 'validate' ? [0, 1] : [0, 3];
        const seconds = [];
        const ratios = [];
        for (let i = 0; i < runs; i++) {
          const base = await time(argsFor(once), codes);
          rmSync(output, { recursive: true, force: true });
          const doubled = await time(argsFor(twice), codes);
          rmSync(output, { recursive: true, force: true });
          seconds.push(doubled);
          ratios.push(doubled / base);
        }
        const ratio = median(ratios);
        const isGood = ratio <= maxRatio;
        good &&= isGood;
        console.log(
          `  ${name}, ${command.filter((word) => !word.includes('{')).join(' ')}: ${median(seconds).toFixed(2)} s for ${2 * count}, ratio ${ratio.toFixed(2)} (limit ${maxRatio})${isGood ? '' : '  EXCEEDED'}`,
        );
      }
    }
  } finally {
    rmSync(work, { recursive: true, force: true });
  }
  return good;
}
