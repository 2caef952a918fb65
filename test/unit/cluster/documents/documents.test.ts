import { readFile } from 'node:fs/promises';
import path from 'node:path';
import { Ajv } from 'ajv';
import { loadAll } from 'js-yaml';
import { describe, expect, it } from 'vitest';
import { formatMessage } from '../../../../src/core/diagnostic.js';
import {
  configText,
  readDeploymentDocuments,
} from '../../../../src/cluster/documents/deployment-documents.js';
import type { Documents } from '../../../../src/cluster/documents/document-types.js';

const schemaFile = path.resolve(import.meta.dirname, '../../../../schemas/bundle-deployment.schema.json');
const matches = new Ajv().compile(JSON.parse(await readFile(schemaFile, 'utf8')) as object);

/** Where the schema for editors does not take documents. */
const unlikeSchema = (...texts: string[]): unknown[] =>
  texts.flatMap((text) => loadAll(text)).flatMap((value) => (matches(value) ? [] : [matches.errors]));

/** Reads documents; those that are taken without a word must be right by the schema too. */
const read = (...texts: string[]): Documents => {
  const documents = readDeploymentDocuments(
    texts.map((text, index) => ({ name: `${index + 1}.yaml`, content: Buffer.from(text) })),
  );
  if (told(documents).length + warned(documents).length === 0) expect(unlikeSchema(...texts)).toEqual([]);
  return documents;
};

const told = ({ deployments, findings }: Documents): string[] =>
  [...findings, ...deployments.flatMap((deployment) => deployment.findings)].map(
    ({ file, line, ...finding }) => `${file}:${line}: ${formatMessage(finding)}`,
  );
const warned = ({ deployments, warnings }: Documents): string[] =>
  [...warnings, ...deployments.flatMap((deployment) => deployment.warnings)].map(
    ({ file, line, ...finding }) => `${file}:${line}: ${formatMessage(finding)}`,
  );

/** As it is printed in the proposal for v1alpha2. */
const proposal = `apiVersion: core.rukpak.io/v1alpha2
kind: BundleDeployment
metadata:
  name: foo
spec:
  paused: true | false
  # sources is a list of places from which we fetch content. We support multiple in case you need to fetch multiple.
  sources:
  - kind: image
    image:
      ref: foo/bar@sha256:123
      auth:
        # it may be a security concern
        namespace: ns
        name: n
    destination: foo/bar # where to unpack the image's contents in the local fs
  - kind: git
    git:
      repository: https://github.com/foo/bar
      ref: a3b1dff2
      directory: '' # leave blank to copy the entire repo
      auth:
        secret:
          namespace: foo
          name: my-git-creds
      destination: foo/moo
  - kind: http
    http:
      url: https://example.com/foo.tgz
      auth:
        secret:
          namespace: foo
          name: my-http-creds
      destination: foo/http
  format: registry-v1 | helm | plain
`;

describe('deployment/documents', () => {
  it('reads health checks in the form of progressionProbes', () => {
    const withChecks = (checks: string): string =>
      `apiVersion: core.rukpak.io/v1alpha2\nkind: BundleDeployment\nmetadata: {name: a}\nspec:\n  format: plain\n  sources: [{kind: image, image: {ref: a/b:c}}]\n  healthChecks: ${checks}\n`;
    const selector = '{type: GroupKind, groupKind: {group: apps, kind: Deployment}}';
    const assertion = '{type: ConditionEqual, conditionEqual: {type: Available, status: "True"}}';
    const valid = withChecks(`[{selector: ${selector}, assertions: [${assertion}]}]`);
    const documents = read(valid);
    expect([told(documents), unlikeSchema(valid)]).toEqual([[], []]);
    expect(documents.deployments[0]?.healthChecks).toHaveLength(1);
    for (const [checks, field] of [
      ['[]', 'spec.healthChecks: '],
      [`[{selector: ${selector}}]`, 'spec.healthChecks[0].assertions: '],
      [
        `[{selector: ${selector}, assertions: [${assertion}], wait: 1}]`,
        'spec.healthChecks[0].wait: unknown field',
      ],
    ] as const) {
      const findings = told(read(withChecks(checks)));
      expect(findings.join('\n')).toContain(field);
      expect(unlikeSchema(withChecks(checks))).not.toEqual([]);
    }
  });

  it('reads the format of the proposal', () => {
    const documents = read(proposal);
    expect(told(documents)).toEqual([]);
    expect(unlikeSchema(proposal.replace('true | false', 'true'))).toEqual([]);
    expect(warned(documents)).toEqual([
      '1.yaml:6: BundleDeployment "foo": spec.paused: "true | false" names both values, read as false',
      '1.yaml:15: BundleDeployment "foo": spec.sources[0].image.auth.name: n is the boolean false in YAML, read as a string',
      '1.yaml:35: BundleDeployment "foo": spec.format: "registry-v1 | helm | plain" names several formats; the files decide',
    ]);
    const [deployment] = documents.deployments;
    expect(deployment).toMatchObject({
      manifest: { name: 'foo' },
      isPaused: false,
      formats: ['registry-v1', 'helm', 'plain'],
    });
    const [image, git, http] = deployment?.sources ?? [];
    expect(image).toMatchObject({
      destination: 'foo/bar',
      source: { kind: 'image', ref: 'foo/bar@sha256:123' },
      secret: { namespace: 'ns', name: 'n' },
    });
    expect(git).toMatchObject({
      destination: 'foo/moo',
      source: { kind: 'git', repository: 'https://github.com/foo/bar', revision: 'a3b1dff2' },
      secret: { namespace: 'foo', name: 'my-git-creds' },
    });
    expect(http).toMatchObject({
      destination: 'foo/http',
      source: { kind: 'http', url: 'https://example.com/foo.tgz' },
      secret: { namespace: 'foo', name: 'my-http-creds' },
    });
  });

  it('reads the uniform variant, with uri and auth beside the kind or without a kind', () => {
    const documents = read(`apiVersion: core.rukpak.io/v1alpha2
kind: BundleDeployment
metadata: {name: foo}
spec:
  paused: true
  format: plain
  sources:
  - kind: image
    uri: docker://quay.io/foo/bar:v1
    destination: a
    auth: {secret: {namespace: ns, name: nn}}
  - kind: git
    uri: https://github.com/foo/bar#v1
    directory: ./deploy
  - uri: git+https://github.com/foo/baz
    ref: {branch: main}
    destination: ./c/
  - uri: https://example.com/x.tgz
    checksum: sha256:00
`);
    expect([told(documents), warned(documents)]).toEqual([[], []]);
    const [deployment] = documents.deployments;
    expect(deployment?.isPaused).toBe(true);
    expect(deployment?.sources.map(({ source, destination }) => ({ ...source, destination }))).toEqual([
      { kind: 'image', ref: 'quay.io/foo/bar:v1', destination: 'a' },
      {
        kind: 'git',
        repository: 'https://github.com/foo/bar',
        revision: 'v1',
        directory: 'deploy',
        destination: '',
      },
      { kind: 'git', repository: 'https://github.com/foo/baz', branch: 'main', destination: 'c' },
      { kind: 'http', url: 'https://example.com/x.tgz', checksum: 'sha256:00', destination: '' },
    ]);
  });

  it('reads v1alpha1 with a template, as in the documentation of rukpak', () => {
    const documents = read(`apiVersion: core.rukpak.io/v1alpha1
kind: BundleDeployment
metadata:
  name: my-ahoy
spec:
  provisionerClassName: core-rukpak-io-helm
  config:
    values: |
      # Default values for hello-world.
      replicaCount: 1
  template:
    metadata:
      labels:
        app: my-ahoy
    spec:
      provisionerClassName: core-rukpak-io-helm
      source:
        http:
        git:
          ref:
            branch: main
          repository: https://github.com/akihikokuroda/examples
          directory: ./charts
        type: git
`);
    expect([told(documents), warned(documents)]).toEqual([[], []]);
    const [deployment] = documents.deployments;
    expect(deployment).toMatchObject({
      formats: ['helm'],
      sources: [{ source: { kind: 'git', branch: 'main', directory: 'charts' } }],
    });
    expect(configText(deployment?.config ?? {}, 'helm')).toEqual({
      text: '# Default values for hello-world.\nreplicaCount: 1\n',
    });
  });

  it('reads v1alpha2', () => {
    const documents = read(`apiVersion: core.rukpak.io/v1alpha2
kind: BundleDeployment
metadata:
  name: my-bundle-deployment
spec:
  installNamespace: there
  watchNamespaces: [a, b]
  provisionerClassName: core-rukpak-io-registry
  source:
    type: image
    image:
      ref: my-bundle@sha256:xyz123
      pullSecret: pull
      insecureSkipTLSVerify: true
`);
    expect([told(documents), warned(documents)]).toEqual([[], []]);
    expect(documents.deployments[0]).toMatchObject({
      formats: ['registry-v1'],
      installNamespace: 'there',
      watchNamespaces: ['a', 'b'],
      sources: [
        {
          source: { kind: 'image', ref: 'my-bundle@sha256:xyz123', insecureSkipTlsVerify: true },
          secret: { namespace: '', name: 'pull' },
        },
      ],
    });
  });

  it('reads Bundles referenced by instances, and the class of a provisioner', () => {
    const bundle = `apiVersion: core.rukpak.io/v1alpha1
kind: Bundle
metadata:
  name: combo-private
spec:
  source:
    type: git
    git:
      ref:
        branch: main
      repository: git@github.com:me/combo
      auth:
        secret:
          name: gitsecret
          insecureSkipVerify: false
  provisionerClassName: mine
`;
    const classes = `apiVersion: core.rukpak.io/v1alpha1
kind: ProvisionerClass
metadata:
  name: mine
provisioner: core.rukpak.io/registry
# parameters has no schema, is provisioner-specific
parameters: {}
`;
    const instance = `apiVersion: core.rukpak.io/v1alpha1
kind: BundleInstance
metadata:
  name: my-bundle-instance
spec:
  provisionerClassName: core.rukpak.io/plain
  bundleName: combo-private
`;
    const documents = read(bundle, instance, classes);
    expect([told(documents), warned(documents)]).toEqual([[], []]);
    expect(documents.deployments).toMatchObject([
      {
        manifest: { name: 'my-bundle-instance' },
        formats: ['registry-v1'],
        sources: [{ source: { repository: 'git@github.com:me/combo', branch: 'main' } }],
      },
    ]);
    expect(read(bundle, classes).deployments).toMatchObject([{ manifest: { name: 'combo-private' } }]);
    expect(told(read(instance))).toEqual([
      '1.yaml:7: BundleInstance "my-bundle-instance": spec.bundleName: Bundle "combo-private" not found among the documents',
    ]);
    expect(warned(read(bundle, classes, proposal))).toContain(
      '1.yaml:2: Bundle "combo-private": nothing installs it',
    );
    expect(told(read(bundle))[0]).toContain(
      '1.yaml:16: Bundle "combo-private": spec.provisionerClassName: unsupported value "mine"',
    );
  });

  it.each([
    ['core-rukpak-io-plain', 'plain'],
    ['core.rukpak.io/plain', 'plain'],
    ['core-rukpak-io-registry', 'registry-v1'],
    ['kuberpak.io/registry+v1', 'registry-v1'],
    ['core-rukpak-io-helm', 'helm'],
  ])('knows the format of the class %s', (name, format) => {
    const documents = read(
      `{apiVersion: core.rukpak.io/v1alpha2, kind: BundleDeployment, metadata: {name: a},
        spec: {provisionerClassName: ${name}, source: {type: image, image: {ref: x}}}}`,
    );
    expect(told(documents)).toEqual([]);
    expect(documents.deployments[0]?.formats).toEqual([format]);
  });

  it('refuses sources that only exist in a cluster, with a hint', () => {
    const local = (source: string): string => `apiVersion: core.rukpak.io/v1alpha1
kind: Bundle
metadata: {name: combo-v0.1.0}
spec:
  source: ${source}
  provisionerClassName: core-rukpak-io-plain
`;
    const [, upload] = ['local', 'upload'].map((kind) => {
      const documents = read(local(`{type: ${kind}, ${kind}: {configmap: {name: a, namespace: b}}}`));
      expect(told(documents)).toEqual([
        `1.yaml:5: Bundle "combo-v0.1.0": spec.source.type: ${kind} content exists only in its cluster`,
      ]);
      return documents.deployments[0]?.findings[0]?.hint;
    });
    expect(upload).toContain('api.renderBundle');
  });

  it('reports all problems in all documents, with file and line', () => {
    const documents = read(
      `apiVersion: core.rukpak.io/v1alpha2
kind: BundleDeployment
metadata:
  name: Bad_Name
spec:
  pasued: true
  sources:
  - kind: imag
  - kind: git
    git:
      repository: https://x/y
      ref: {branch: a, tag: b}
      directory: ../up
  - kind: http
    destination: /abs
    http: {}
  - image: {ref: a}
    git: {repository: b}
    destinaton: x
  - 7
  - {}
  paused: maybe
  format: Zip!
  watchNamespaces: [a, '']
  extra: 1
`,
      'kind: BundleDeployment\n---\napiVersion: core.rukpak.io/v1alpha2\nkind: BundleDeployment\nmetadata: {}\n---\n- 1\n',
    );
    expect(told(documents)).toMatchInlineSnapshot(`
      [
        "2.yaml:7: expected an object, got a list",
        "2.yaml:1: BundleDeployment: apiVersion: missing",
        "2.yaml:3: BundleDeployment: spec.sources: missing",
        "2.yaml:5: BundleDeployment: metadata.name: missing",
        "1.yaml:4: BundleDeployment "Bad_Name": metadata.name: invalid name "Bad_Name"",
        "1.yaml:6: BundleDeployment "Bad_Name": spec.pasued: unknown field",
        "1.yaml:8: BundleDeployment "Bad_Name": spec.sources[0].kind: unsupported value "imag"",
        "1.yaml:12: BundleDeployment "Bad_Name": spec.sources[1].git.ref: expected one of branch, tag and commit, got branch and tag",
        "1.yaml:13: BundleDeployment "Bad_Name": spec.sources[1].git.directory: expected a path within the content, got "../up"",
        "1.yaml:15: BundleDeployment "Bad_Name": spec.sources[2].destination: expected a path within the content, got "/abs"",
        "1.yaml:16: BundleDeployment "Bad_Name": spec.sources[2].http.url: missing",
        "1.yaml:18: BundleDeployment "Bad_Name": spec.sources[3].git: cannot be combined with image",
        "1.yaml:19: BundleDeployment "Bad_Name": spec.sources[3].destinaton: unknown field",
        "1.yaml:20: BundleDeployment "Bad_Name": spec.sources[4]: expected an object, got the number 7",
        "1.yaml:21: BundleDeployment "Bad_Name": spec.sources[5]: no source",
        "1.yaml:22: BundleDeployment "Bad_Name": spec.paused: expected true or false, got a string",
        "1.yaml:23: BundleDeployment "Bad_Name": spec.format: unsupported value "Zip!"",
        "1.yaml:24: BundleDeployment "Bad_Name": spec.watchNamespaces: an empty name selects all namespaces, and must be the only one",
      ]
    `);
    expect(warned(documents)).toContain(
      '1.yaml:25: BundleDeployment "Bad_Name": spec.extra: unknown field, ignored',
    );
  });

  it.each([
    'metadata: {name: Bad_Name}',
    'spec: {format: plain, source: {image: {ref: x}}, sources: [{image: {ref: x}}]}',
    'spec: {format: plain, sources: []}',
    'spec: {format: plain, sources: [{}]}',
    'spec: {format: plain, sources: [{kind: zip}]}',
    'spec: {format: plain, sources: [{image: {reference: x}}]}',
    'spec: {format: plain, sources: [{image: {ref: x}, destination: ../y}]}',
    'spec: {format: plain, sources: [{git: {repository: x, ref: {branch: a, tag: b}}}]}',
    'spec: {format: plain, paused: maybe, sources: [{image: {ref: x}}]}',
    'spec: {format: plain, pasued: true, sources: [{image: {ref: x}}]}',
    'kind: Bundles',
  ])('refuses, as the schema for editors does: %s', (wrong) => {
    const fields = new Map([
      ['kind', 'kind: BundleDeployment'],
      ['metadata', 'metadata: {name: a}'],
      ['spec', 'spec: {format: plain, sources: [{image: {ref: x}}]}'],
    ]);
    const text = (): string => ['apiVersion: core.rukpak.io/v1alpha2', ...fields.values()].join('\n');
    expect([told(read(text())), unlikeSchema(text())]).toEqual([[], []]);
    fields.set(wrong.split(':')[0] as string, wrong);
    expect(told(read(text()))).not.toEqual([]);
    expect(unlikeSchema(text())).toHaveLength(1);
  });

  it('reports the line of YAML and bytes that do not parse once, without a hint about objects', () => {
    const { findings } = readDeploymentDocuments([
      { name: 'a.yaml', content: Buffer.from('a: [b\nc: }\n') },
      { name: 'b.yaml', content: Buffer.from('kind: A\nname: \xff\n', 'latin1') },
    ]);
    expect(findings).toEqual([
      {
        severity: 'error',
        code: 'syntax',
        problem: expect.stringMatching(/^yaml: did not/) as string,
        file: 'a.yaml',
        line: 2,
      },
      { severity: 'error', code: 'syntax', problem: 'invalid UTF-8', file: 'b.yaml', line: 2 },
    ]);
  });

  it('reports duplicate keys, of which the last would be used', () => {
    const fields = '{format: plain, installNamespace: a,\n  installNamespace: b, source: {image: {ref: x}}}';
    const text = `---\napiVersion: core.rukpak.io/v1alpha2\nkind: BundleDeployment\nmetadata: {name: a}\nspec: ${fields}\n`;
    expect(told(read(`# other\n${text}`))).toEqual([
      '1.yaml:7: spec.installNamespace: duplicate key, first defined on line 6',
    ]);
  });

  it.each([
    [
      'metadata: 5\nspec: {format: plain, source: {image: {ref: x}}}',
      'metadata: expected an object, got the number 5',
    ],
    ['metadata: {name: a}\nspec: []', 'spec: expected an object, got a list'],
  ])('reports one mistake once: %s', (rest, problem) => {
    const documents = read(`apiVersion: core.rukpak.io/v1alpha2\nkind: BundleDeployment\n${rest}\n`);
    expect(
      [...told(documents), ...warned(documents)].map((line) =>
        line.replace(/^.*?BundleDeployment( "a")?: /, ''),
      ),
    ).toEqual([problem]);
  });

  it('ignores other documents and refuses duplicate deployments', () => {
    const documents = read(
      proposal,
      `${proposal}---\napiVersion: v1\nkind: Namespace\nmetadata: {name: a}\n`,
      'apiVersion: fleet.cattle.io/v1alpha1\nkind: BundleDeployment\nmetadata: {name: a}\n',
    );
    expect(told(documents)).toEqual([
      '2.yaml:2: BundleDeployment "foo": duplicate, first defined in 1.yaml:2:1',
    ]);
    expect(warned(documents).slice(0, 2)).toEqual([
      '2.yaml:38: Namespace "a": v1 Namespace is not a deployment, ignored',
      '3.yaml:2: BundleDeployment "a": fleet.cattle.io/v1alpha1 BundleDeployment is not a deployment, ignored',
    ]);
  });

  it('reads commits of digits as text', () => {
    const documents = read(`apiVersion: core.rukpak.io/v1alpha2
kind: BundleDeployment
metadata: {name: a}
spec: {format: plain, sources: [{git: {repository: 'https://x/y', ref: 0012345}}]}
`);
    expect(told(documents)).toEqual([]);
    expect(documents.deployments[0]?.sources[0]?.source).toMatchObject({ revision: '0012345' });
    expect(documents.deployments[0]?.warnings[0]?.hint).toBe('quote it: "0012345"');
  });

  it('returns findings for any document', () => {
    const junk = ['null', '7', '[]', '{}', 'true', '"x"', '[null]', '{a: [{}]}', '{name: {}}'];
    const paths = [
      'spec',
      'spec.sources',
      'spec.source',
      'spec.template',
      'spec.template.spec',
      'spec.config',
    ];
    for (const path of [
      ...paths,
      'spec.source.image',
      'spec.source.git.ref',
      'spec.source.configMaps',
      'metadata',
    ]) {
      for (const value of junk) {
        const keys = path.split('.');
        const nested = keys.reduceRight((inner, key) => `{${key}: ${inner}}`, value);
        const text = `{apiVersion: core.rukpak.io/v1alpha2, kind: BundleDeployment, ${nested.slice(1)}`;
        expect(() => read(text)).not.toThrow();
      }
    }
  });
});
