import { open } from 'node:fs/promises';
import path from 'node:path';
import { describe, expect, it, onTestFinished } from 'vitest';
import { readTemplate } from '../../../src/catalog/template/read.js';
import { type Session, openSourceSession } from '../../../src/source/session.js';
import { validateCatalog } from '../../../src/graph/validate.js';
import { renderTemplateCatalog } from '../../../src/source/template.js';
import { makeCatalogImage, makeImage, serveBuilt } from '../../e2e/images.js';
import { failureOf } from '../../support/connect.js';
import { type FaultRegistry, startFaultRegistry } from '../../support/fault-registry.js';
import { type SmallBundle, smallBundle } from '../../support/small-bundle.js';
import { directoryWith } from '../../support/temporary.js';
import { sessionOptions } from './session-options.js';
import { messagesIn } from '../../support/diagnostics.js';

interface World {
  registry: FaultRegistry;
  session: Session;
  /** Serves a small bundle; returns its reference. */
  serve(version: string, bundle?: SmallBundle): Promise<string>;
  /** The blobs that a template stands for. */
  render(template: string, name?: string): Promise<Record<string, unknown>[]>;
}

async function openWorld(): Promise<World> {
  const registry = await startFaultRegistry();
  const session = await openSourceSession(await sessionOptions());
  onTestFinished(async () => {
    await session.close();
    await registry.close();
  });
  return {
    registry,
    session,
    async serve(version, bundle = {}) {
      const { packageName = 'widget' } = bundle;
      const tag = `${packageName}-${bundle.name ?? version}`.replaceAll('+', '_');
      const labels = { 'operators.operatorframework.io.bundle.package.v1': packageName };
      const image = await makeImage({ files: smallBundle({ version, ...bundle }), labels });
      serveBuilt(registry, 'ns/bundles', tag, image);
      return `${registry.host}/ns/bundles:${tag}`;
    },
    async render(text, name = 'template.yaml') {
      const directory = await directoryWith({ [name]: text });
      const handle = await open(path.join(directory, name));
      try {
        const template = await readTemplate({ handle, label: name }, undefined);
        const rendered = await renderTemplateCatalog(template, session, {
          format: 'json',
          migrationLevel: 'none',
        });
        try {
          let json = '';
          for await (const piece of rendered.assembly.write()) json += piece.toString();
          expect(validateCatalog(rendered.facts).problems).toEqual([]);
          return JSON.parse(`[${json.replaceAll('\n}\n{', '\n},\n{')}]`) as Record<string, unknown>[];
        } finally {
          await rendered.close();
        }
      } finally {
        await handle.close();
      }
    },
  };
}

/** What went wrong, a line for each fault. */
async function faultsOf(work: Promise<unknown>): Promise<string[]> {
  return messagesIn(await failureOf(work), { hints: true });
}

const manifestRequests = (registry: FaultRegistry, tag: string): number =>
  registry.requests.filter((one) => one.method === 'GET' && one.path.endsWith(`/manifests/${tag}`)).length;

describe('source/template semver', () => {
  it('makes package, channels and bundles, fetching each image once', async () => {
    const { serve, render, registry } = await openWorld();
    const icon = [{ base64data: 'aGVsbG8=', mediatype: 'image/png' }];
    const [a, b] = [await serve('1.0.0'), await serve('1.1.0', { spec: { description: 'Newest', icon } })];
    const lists = ['candidate', 'fast', 'stable'].map(
      (name) => `${name}: {bundles: [{image: ${a}}, {image: ${b}}]}`,
    );
    const blobs = await render(`schema: olm.semver\ngenerateMajorChannels: true\n${lists.join('\n')}\n`);
    expect(blobs.map(({ schema, name }) => `${String(schema)} ${String(name)}`)).toEqual([
      'olm.package widget',
      'olm.channel candidate-v1',
      'olm.channel fast-v1',
      'olm.channel stable-v1',
      'olm.bundle widget.v1.0.0',
      'olm.bundle widget.v1.1.0',
    ]);
    expect(blobs[0]).toEqual({
      schema: 'olm.package',
      name: 'widget',
      defaultChannel: 'stable-v1',
      icon: icon[0],
      description: 'Newest',
    });
    expect(manifestRequests(registry, 'widget-1.0.0')).toBe(1);
  });

  it('takes keys in any case', async () => {
    const { serve, render } = await openWorld();
    const image = await serve('1.0.0');
    const blobs = await render(`Schema: olm.semver\nStable: {Bundles: [{Image: "${image}"}]}\n`);
    expect(blobs).toHaveLength(3);
  });

  it('names every key that it does not know or that is there twice, with its line', async () => {
    const { render } = await openWorld();
    const text =
      'schema: olm.semver\nfoo: 1\ngenerateMinorChannels: "yes"\nstable:\n  bundles:\n' +
      '  - image: a/b:c\n    nmae: x\nstable: {}\nFast: {}\nfast: {}\n';
    const start = 'rendering template: render: unable to read file: ';
    const decoding = `${start}error unmarshaling JSON: while decoding JSON: json: `;
    const faults = await faultsOf(render(text));
    expect(faults).toEqual([
      `template.yaml:8: ${start}error converting YAML to JSON: yaml: unmarshal errors: key "stable" already set in map (remove it: first defined on line 4)`,
      expect.stringContaining(`template.yaml:2: ${decoding}unknown field "foo"`),
      expect.stringContaining(`template.yaml:10: ${start}duplicate keys for key "fast": [Fast fast]`),
      `template.yaml:3: ${decoding}cannot unmarshal string into Go struct field SemverTemplateData.generateMinorChannels of type bool`,
    ]);
  });

  it('lists every image that cannot be had, with the line that names it first', async () => {
    const { serve, render, registry } = await openWorld();
    const good = await serve('1.0.0');
    const { host } = registry;
    serveBuilt(
      registry,
      'ns/catalog',
      'v1',
      await makeCatalogImage({ 'a.yaml': 'schema: olm.package\nname: a\n' }),
    );
    const images = [
      good,
      `${host}/ns/none:v1`,
      `${host}/ns/catalog:v1`,
      `${host}/ns/none:v1`,
      '/dev',
      'oci:a',
      `${host}/ns/none:v2`,
    ];
    const text = `schema: olm.semver\nstable:\n  bundles:\n${images.map((image) => `  - image: ${image}\n`).join('')}`;
    const faults = await faultsOf(render(text));
    expect(faults.map((fault) => fault.slice(0, fault.indexOf(' rendering')))).toEqual(
      [5, 6, 8, 9, 10].map((line) => `template.yaml:${line}:`),
    );
    for (const [index, said] of [
      '": not found',
      'cannot render declarative config image: not allowed',
      'render reference "/dev": cannot render declarative config directory: not allowed',
      'render reference "oci:a": invalid reference format',
      '": not found',
    ].entries()) {
      expect(faults[index]).toContain(said);
    }
  });

  it('reads no local file, repository or URL that a template names in place of an image', async () => {
    const { render, registry } = await openWorld();
    const directory = await directoryWith({
      'cm.yaml': 'kind: ConfigMap\napiVersion: v1\n',
      ...smallBundle(),
    });
    const images = [
      `git+file://${directory}`,
      `git+https://${registry.host}/a#main`,
      `http://${registry.host}/x.tar`,
      `HTTPS://${registry.host}/x.tar`,
      `${directory}/x.tar`,
      '../x.tar',
      `configmap:${directory}/cm.yaml`,
      `oci:${directory}`,
      `oci-archive:${directory}/x.tar`,
      `docker://${registry.host}/ns/a:v1`,
      `file://${directory}`,
    ];
    const lists = images.map((image) => `  - image: ${JSON.stringify(image)}\n`).join('');
    for (const text of [
      `schema: olm.semver\nstable:\n  bundles:\n${lists}`,
      `schema: olm.template.basic\nentries:\n${lists.replaceAll('- image', '- schema: olm.bundle\n    image')}`,
    ]) {
      const faults = await faultsOf(render(text));
      expect(faults).toHaveLength(images.length);
      for (const fault of faults)
        expect(fault).toMatch(/: (?:invalid reference format|not an image in a registry)/);
    }
    expect(registry.requests).toEqual([]);
  });

  it('asks no more of a registry that cannot be reached', async () => {
    const { render } = await openWorld();
    const images = Array.from({ length: 40 }, (_, index) => `  - image: 127.0.0.1:1/ns/a:v${index}\n`).join(
      '',
    );
    const faults = await faultsOf(render(`schema: olm.semver\nstable:\n  bundles:\n${images}`));
    expect(faults).toHaveLength(40);
    expect(faults.at(-1)).toContain('skipped: 127.0.0.1:1 is unreachable');
  });

  it('lists every bundle of another package, without a version or there twice', async () => {
    const { serve, render } = await openWorld();
    const given = [
      await serve('1.0.0'),
      await serve('2.0.0', { packageName: 'other' }),
      await serve('1.0', { name: 'widget.short' }),
      await serve('1.5.0', { name: 'widget.v1.0.0' }),
      await serve('1.0.0+build', { name: 'widget.built' }),
    ];
    const text = `schema: olm.semver\nfast:\n  bundles:\n${given.map((image) => `  - image: ${image}\n`).join('')}`;
    const context = 'rendering template: render: unable to post-process bundle info: ';
    const faults = await faultsOf(render(text));
    expect(faults.map((fault) => fault.replace(/ \([^()]*\)$/, ''))).toEqual([
      `template.yaml:5: ${context}bundle "other" does not belong to this package: "widget"`,
      `template.yaml:6: ${context}bundle "widget.short" has invalid version "1.0": No Major.Minor.Patch elements found`,
      `template.yaml:7: ${context}duplicate bundle name "widget.v1.0.0"`,
      `template.yaml:8: ${context}encountered bundle versions which differ only by build metadata, which cannot be ordered: bundle version "1.0.0+build" cannot be compared to "1.0.0"`,
    ]);
  });
});

describe('source/template basic', () => {
  it('puts rendered bundles in place of their images, and keeps all else', async () => {
    const { serve, render, registry } = await openWorld();
    const image = await serve('1.0.0');
    const entries = [
      { schema: 'olm.package', name: 'widget', defaultChannel: 'stable' },
      { schema: 'olm.channel', package: 'widget', name: 'stable', entries: [{ name: 'widget.v1.0.0' }] },
      { schema: 'olm.bundle', image, name: 'told' },
      { schema: 'custom', package: 'widget', z: 1, a: { b: [1.5] } },
    ];
    const blobs = await render(JSON.stringify({ schema: 'olm.template.basic', entries }));
    expect(blobs.map(({ schema, name }) => `${String(schema)} ${String(name)}`)).toEqual([
      'olm.package widget',
      'olm.channel stable',
      'olm.bundle widget.v1.0.0',
      'custom undefined',
    ]);
    expect(blobs[2]).toMatchObject({ image, package: 'widget' });
    expect(manifestRequests(registry, 'widget-1.0.0')).toBe(1);
  });

  it('names every entry that is no blob or a whole bundle, with its line', async () => {
    const { render } = await openWorld();
    const text =
      'schema: olm.template.basic\nentries:\n- schema: olm.bundle\n  image: a/b:c\n  package: w\n' +
      '- null\n- {schema: olm.package, name: 5}\n- schema: olm.channel\n  entries: x\n- {name: a, Name: b}\n';
    const faults = await faultsOf(render(text));
    expect(faults.map((fault) => fault.replace(/ \([^()]*\)$/, ''))).toEqual([
      'template.yaml:3: rendering template: unexpected fields present in basic template bundle',
      "template.yaml:6: rendering template: object '' is missing root schema field",
      'template.yaml:7: rendering template: unmarshalling template: expected value for key "name" to be a string, got %!t(float64=5): 5',
      'template.yaml:8: rendering template: parse channel: json: cannot unmarshal string into Go struct field Channel.entries of type []declcfg.ChannelEntry',
      'template.yaml:10: rendering template: unmarshalling template: duplicate keys for key "name": [Name name]',
    ]);
  });
});

describe('source/template substitutes', () => {
  const bundleBlob = (version: string, more: object = {}): object => ({
    schema: 'olm.bundle',
    name: `widget.v${version}`,
    package: 'widget',
    image: `r.test/w:${version}`,
    properties: [{ type: 'olm.package', value: { packageName: 'widget', version, ...more } }],
  });
  const entries = [
    { schema: 'olm.package', name: 'widget', defaultChannel: 'stable' },
    {
      schema: 'olm.channel',
      package: 'widget',
      name: 'stable',
      entries: [{ name: 'widget.v1.0.0' }, { name: 'widget.v1.1.0', replaces: 'widget.v1.0.0' }],
    },
    bundleBlob('1.0.0'),
    bundleBlob('1.1.0'),
  ];
  const released = (release: string): SmallBundle => ({
    name: `widget-v1.0.0-${release}`,
    annotations: {
      'olm.properties': JSON.stringify([
        { type: 'olm.package', value: { packageName: 'widget', version: '1.0.0', release } },
      ]),
    },
  });
  const template = (substitutions: object[]): string =>
    JSON.stringify({ schema: 'olm.template.substitutes', entries, substitutions }, null, 1);

  it('lets bundles take the place of others, also of those that did so before', async () => {
    const { serve, render } = await openWorld();
    const [first, second] = [await serve('1.0.0', released('1')), await serve('1.0.0', released('2'))];
    const blobs = await render(
      template([
        { name: first, base: 'widget.v1.0.0' },
        { name: second, base: 'widget-v1.0.0-1' },
      ]),
    );
    const channel = blobs.find(({ schema }) => schema === 'olm.channel');
    expect(channel?.['entries']).toEqual([
      { name: 'widget.v1.0.0' },
      { name: 'widget.v1.1.0', replaces: 'widget-v1.0.0-2', skips: ['widget.v1.0.0', 'widget-v1.0.0-1'] },
      { name: 'widget-v1.0.0-1' },
      { name: 'widget-v1.0.0-2', skips: ['widget.v1.0.0', 'widget-v1.0.0-1'] },
    ]);
    expect(blobs.filter(({ schema }) => schema === 'olm.bundle')).toHaveLength(4);
  });

  it('names every substitution that cannot be, with its line', async () => {
    const { serve, render } = await openWorld();
    const image = await serve('0.9.0');
    const text = template([
      { name: image, base: 'widget.v1.0.0' },
      { name: await serve('1.0.0', released('1')), base: 'none' },
    ]);
    const lineOf = (base: string): number =>
      text.slice(0, text.lastIndexOf(`"base": "${base}"`)).split('\n').length - 2;
    const context = 'rendering template: render: error processing substitution';
    expect(await faultsOf(render(text))).toEqual([
      `template.yaml:${lineOf('widget.v1.0.0')}: ${context} "widget.v1.0.0" -> "${image}": base bundle "widget.v1.0.0" is not less than substitute bundle "${image}"`,
      expect.stringContaining(`template.yaml:${lineOf('none')}: ${context} "none"`),
    ]);
    expect(await faultsOf(render(template([{}, { name: 'a', base: 'a' }])))).toEqual([
      expect.stringContaining(`${context} "" -> "": substitution name cannot be empty`),
      expect.stringContaining(`${context} "a" -> "a": substitution name and base cannot be the same`),
    ]);
  });

  it('refuses entries that make no valid catalog, with the place of each problem', async () => {
    const { render } = await openWorld();
    const text =
      'schema: olm.template.substitutes\nentries:\n- schema: olm.package\n  name: w\n  defaultChannel: a\n' +
      '- schema: olm.channel\n  package: w\n  name: b\n  entries:\n  - name: none\nsubstitutions: []\n';
    const faults = await faultsOf(render(text));
    expect(faults[0]).toContain('rendering template: render: entries are not valid FBC: ');
    expect(faults.slice(1).join('\n')).toMatch(/^template\.yaml:10: .*none/m);
  });
});
