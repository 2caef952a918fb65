import { readFile } from 'node:fs/promises';
import path from 'node:path';
import { loadAll } from 'js-yaml';
import { describe, expect, it } from 'vitest';
import { run } from '../../src/cli/main.js';
import { readImageSetConfiguration } from '../../src/mirror/image-set/image-set-config.js';
import { loadTree } from '../../src/cli/command/loaded-tree.js';
import { projectRoot } from '../support/command-line.js';
import { directoryWith } from '../support/temporary.js';
import { createWorld } from './cli/world.js';

const page = await readFile(path.join(projectRoot, 'docs', 'from-oc-mirror.md'), 'utf8');
const { program } = await loadTree();
const mirror = program.commands.find((command) => command.name() === 'mirror');
const remove = mirror?.commands.find((command) => command.name() === 'delete');

/** First and second cell of the table rows that begin with code. */
const rows = [...page.matchAll(/^\| `([^`]+)` \| (.*) \|$/gm)].map(
  ([, name, text]) => [name as string, text as string] as const,
);
const flags = rows.filter(([name]) => name.startsWith('--'));
const fields = rows.filter(([name]) => /^[a-z][\w.[\]]*$/.test(name));

/** Every leaf of a document as the page writes it: `mirror.operators[].catalog`. */
function leavesOf(value: unknown, at: string): string[] {
  if (Array.isArray(value)) {
    return value.flatMap((item) => (typeof item === 'object' ? leavesOf(item, `${at}[]`) : [at]));
  }
  if (typeof value !== 'object' || value === null) return [at];
  return Object.entries(value).flatMap(([key, below]) => leavesOf(below, at === '' ? key : `${at}.${key}`));
}

/** Runs opmate in a directory of its own, with the configuration of the page. */
async function opmate(configuration: string, ...args: string[]): Promise<{ code: number; said: string }> {
  const workingDirectory = await directoryWith({ 'imageset.yaml': configuration });
  const world = { ...createWorld(), workingDirectory };
  return { code: await run(args, world), said: world.stderr.text };
}

const example = /```yaml\n([^]*?)```/.exec(page)?.[1] ?? '';

/** Flags of `oc-mirror` v2 and of its `delete`, hidden ones included. (Source: oc-mirror, flags of its commands.) */
const ocMirrorFlags = `
  --config --cache-dir --from --workspace --log-level --port --parallel-images --parallel-layers --retry-times --retry-delay
  --image-timeout --dry-run --dry-run-manifest-lists --since --strict-archive --max-nested-paths --secure-policy --policy
  --registries.d --remove-signatures --rootless-storage-path --src-tls-verify --dest-tls-verify --authfile --v1 --v2
  --ignore-release-signature --force --quiet --cpu-prof --mem-prof
  --src-authfile --src-cert-dir --src-creds --src-no-creds --src-username --src-password --src-registry-token
  --src-shared-blob-dir --src-daemon-host
  --dest-authfile --dest-cert-dir --dest-creds --dest-no-creds --dest-username --dest-password --dest-registry-token
  --dest-shared-blob-dir --dest-daemon-host --dest-compress --dest-decompress --dest-compress-format --dest-compress-level
  --dest-oci-accept-uncompressed-layers --dest-precompute-digests
  --generate --delete-yaml-file --delete-id --delete-signatures --delete-v1-images --force-cache-delete`.match(
  /\S+/g,
);

/** Flags of `oc-mirror list`. */
const listFlags = {
  operators: '--catalog --package --channel --catalogs --version',
  releases: '--channel --channels --version --filter-by-archs',
};

/** Fields of an ImageSetConfiguration of version v2alpha1. (Source: oc-mirror, its configuration types.) */
const configurationFields: readonly string[] =
  `
  archiveSize
  mirror.platform.graph mirror.platform.channels[].name mirror.platform.channels[].type
  mirror.platform.channels[].minVersion mirror.platform.channels[].maxVersion mirror.platform.channels[].shortestPath
  mirror.platform.channels[].full mirror.platform.architectures mirror.platform.platforms[].os
  mirror.platform.platforms[].architecture mirror.platform.release mirror.platform.kubeVirtContainer
  mirror.operators[].catalog mirror.operators[].full mirror.operators[].targetCatalog mirror.operators[].targetTag
  mirror.operators[].targetCatalogSourceTemplate mirror.operators[].skipDependencies mirror.operators[].platforms[].os
  mirror.operators[].platforms[].architecture mirror.operators[].packages[].name mirror.operators[].packages[].defaultChannel
  mirror.operators[].packages[].minVersion mirror.operators[].packages[].maxVersion
  mirror.operators[].packages[].channels[].name mirror.operators[].packages[].channels[].minVersion
  mirror.operators[].packages[].channels[].maxVersion
  mirror.additionalImages[].name mirror.additionalImages[].targetRepo mirror.additionalImages[].targetTag
  mirror.additionalImages[].platforms[].os mirror.additionalImages[].platforms[].architecture
  mirror.blockedImages[].name
  mirror.helm.repositories[].name mirror.helm.repositories[].url mirror.helm.repositories[].charts[].name
  mirror.helm.repositories[].charts[].version mirror.helm.repositories[].charts[].imagePaths
  mirror.helm.repositories[].charts[].platforms[].os mirror.helm.repositories[].charts[].platforms[].architecture
  mirror.helm.local[].name mirror.helm.local[].path mirror.helm.local[].imagePaths mirror.helm.local[].platforms[].os
  mirror.helm.local[].platforms[].architecture
  mirror.samples`.match(/\S+/g) ?? [];

/** Fields without which others are not read. */
const required: Readonly<Record<string, object>> = {
  repositories: { name: 'a', url: 'b' },
  charts: { name: 'a' },
};

/** Returns a configuration with one field, of any value. */
function configurationWith(field: string): string {
  const value = field.split('.').reduceRight<unknown>((below, name) => {
    if (!name.endsWith('[]')) return { [name]: below };
    const list = name.slice(0, -2);
    return { [list]: [{ ...required[list], ...(below as object) }] };
  }, 'any') as object;
  const own = { kind: 'ImageSetConfiguration', apiVersion: 'mirror.openshift.io/v2alpha1' };
  return JSON.stringify({ ...own, mirror: {}, ...value });
}

describe('docs/from-oc-mirror.md', () => {
  it('names every flag of oc-mirror, and every field of its configuration', () => {
    expect(flags.map(([name]) => name).sort()).toEqual(
      expect.arrayContaining([...new Set(ocMirrorFlags)].sort()),
    );
    expect(fields.map(([name]) => name).sort()).toEqual([...configurationFields].sort());
  });

  it.each(Object.entries(listFlags))('is right that mirror list %s takes the same flags', (name, taken) => {
    const list = mirror?.commands.find((command) => command.name() === 'list');
    const command = list?.commands.find((sub) => sub.name() === name);
    const known = command?.options.map(({ long }) => long);
    expect(known).toEqual(expect.arrayContaining(taken.split(' ')));
  });

  it.each(configurationFields)('is right that configurations have %s', (field) => {
    const read = (name: string): string => {
      try {
        readImageSetConfiguration(configurationWith(name), 'imageset.yaml');
        return '';
      } catch (error) {
        return (error as Error).message;
      }
    };
    expect(read(field)).not.toContain('unknown');
    expect(read(`${field}x`)).toContain('unknown');
  });

  it('has an example with fields of the table only', () => {
    const [document] = loadAll(example);
    const known = new Set(leavesOf(document, ''));
    for (const own of ['kind', 'apiVersion']) known.delete(own);
    expect([...known].filter((name) => !configurationFields.includes(name))).toEqual([]);
  });

  it('has an example whose fields are all supported', async () => {
    // The first thing that cannot work is the template, which is not there.
    const { said } = await opmate(example, 'mirror', '-c', 'imageset.yaml', 'docker://127.0.0.1:1/x');
    expect(said).toContain('catalogsource.yaml');
    expect(said).not.toMatch(/unknown|not supported|expected/);
  });

  it('names every flag that is there for oc-mirror', () => {
    const named = new Set(flags.map(([name]) => name));
    const ofOc = new Set([
      '--certificate-authority',
      '--filter-by-os',
      '--max-registry',
      '--keep-manifest-list',
    ]);
    for (const skipped of ['--skip-multiple-scopes', '--skip-mount']) ofOc.add(skipped);
    const hidden = [mirror, remove].flatMap((command) => command?.options ?? []);
    const missing = hidden
      .filter((option) => option.hidden && !option.flags.includes('='))
      .map((option) => option.long ?? option.flags)
      .filter((flag) => !named.has(flag) && !ofOc.has(flag));
    expect(missing).toEqual([]);
  });

  it.each(flags)('is right about %s', async (flag, text) => {
    const command = [mirror, remove, program].find((one) => one?.options.some(({ long }) => long === flag));
    const option = command?.options.find(({ long }) => long === flag);
    expect(option, flag).toBeDefined();
    const isSwitch = option?.required !== true;
    const value = isSwitch ? [flag] : [flag, '1'];
    if (text.startsWith('refused')) {
      const { code, said } = await opmate('', 'mirror', '-c', 'imageset.yaml', ...value, 'file://out');
      expect({ code, said }).toEqual({
        code: 1,
        said: expect.stringContaining(`${flag}: not supported\nhint: `) as string,
      });
    }
    // `--force-cache-delete` has words of its own.
    const isIdle = /^(?:no effect|ignored)/.test(option?.description ?? '');
    expect(isIdle).toBe(text.startsWith('no effect'));
  });
});
