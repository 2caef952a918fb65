import { describe, expect, it } from 'vitest';
import { formatMessage } from '../../../../src/core/diagnostic.js';
import { readDeploymentDocuments } from '../../../../src/cluster/documents/deployment-documents.js';
import { type DocumentSource, findRefusals } from '../../../../src/cluster/documents/source-fields.js';
import { findUnpinned } from '../../../../src/source/content/content-pins.js';
import { placedAt } from '../../source/content/content-world.js';

function deploymentOf(source: string) {
  const text = `apiVersion: core.rukpak.io/v1alpha2
kind: BundleDeployment
metadata: {name: a}
spec:
  format: plain
  sources:
  - ${source}
`;
  const { deployments } = readDeploymentDocuments([{ name: 'a.yaml', content: Buffer.from(text) }]);
  const [deployment] = deployments;
  if (deployment === undefined) throw new Error('no deployment');
  return deployment;
}

const sourceOf = (text: string): DocumentSource => deploymentOf(text).sources[0] as DocumentSource;
const sum = `sha256:${'a'.repeat(64)}`;
const commit = '0123456789abcdef0123456789abcdef01234567';

describe('deployment/source-rules', () => {
  it.each(['oci:/srv/layout:v1', 'oci-archive:/srv/a.tar', 'docker-archive:/srv/a.tar:r.io/a:v1'])(
    'refuses an image on this machine unless local sources are allowed: %s',
    (ref) => {
      const source = sourceOf(`{kind: image, image: {ref: "${ref}"}}`);
      expect(findRefusals(source, {})).toEqual([
        {
          message: `spec.sources[0]: "${ref}" is on this machine`,
          hint: expect.stringContaining('options.allowLocal'),
        },
      ]);
      expect(findRefusals(source, { allowLocal: true })).toEqual([]);
    },
  );

  it.each(['file:///srv/repo', '/srv/repo', './repo', 'git+file:///srv/repo', 'ext::sh -c id'])(
    'refuses a repository that is neither https nor ssh: %s',
    (repository) => {
      const source = sourceOf(`{kind: git, git: {repository: "${repository}", ref: main}}`);
      expect(findRefusals(source, {})).toHaveLength(1);
      expect(findRefusals(source, { allowLocal: true })).toEqual([]);
    },
  );

  it.each([
    '{kind: git, git: {repository: "https://git.example/a.git", ref: main}}',
    '{kind: git, git: {repository: "ssh://git@git.example/a.git", ref: main}}',
    '{kind: git, git: {repository: "git@git.example:a.git", ref: main}}',
    '{kind: image, image: {ref: "r.io/a:v1"}}',
    '{kind: http, http: {url: "https://a.example/a.tgz"}}',
  ])('takes what is elsewhere: %s', (text) => {
    expect(findRefusals(sourceOf(text), {})).toEqual([]);
  });

  it.each([
    '{kind: image, image: {ref: "r.io/a:v1", insecureSkipTLSVerify: true}}',
    '{kind: git, git: {repository: "https://git.example/a", ref: main, auth: {insecureSkipVerify: true}}}',
    '{kind: http, http: {url: "https://a.example/a", auth: {insecureSkipVerify: true}}}',
  ])('refuses to skip verification for a document: %s', (text) => {
    const source = sourceOf(text);
    expect(findRefusals(source, { allowLocal: true }).map(({ message }) => message)).toEqual([
      'spec.sources[0]: skips certificate verification',
    ]);
    expect(findRefusals(source, { allowInsecure: true })).toEqual([]);
  });
});

describe('deployment/source-fields: pins in addresses', () => {
  it.each([
    `{kind: http, http: {url: "https://a.example/a.tgz#${sum}"}}`,
    `{uri: "https://a.example/a.tgz@${sum}"}`,
    `{uri: "https://a.example/a.tgz#${sum}", checksum: "${sum}"}`,
  ])('reads the checksum behind a URL: %s', (text) => {
    const { source } = sourceOf(text);
    expect(source).toEqual({ kind: 'http', url: 'https://a.example/a.tgz', checksum: sum });
  });

  it.each([
    [`https://a.example/a.tgz#sha256:abc`, 'invalid checksum'],
    [`https://a.example/a.tgz#main`, 'invalid checksum'],
    [
      `https://a.example/a.tgz#${sum}", checksum: "sha256:${'b'.repeat(64)}`,
      'differs from checksum "sha256:bbbb',
    ],
  ])('refuses a checksum that is none, or another one: %s', (url, message) => {
    const { findings } = deploymentOf(`{kind: http, http: {url: "${url}"}}`);
    expect(findings.map(formatMessage).join()).toContain(message);
    expect(findings[0]?.line).toBe(7);
  });

  it('reads ref and directory from the URL of a repository, and refuses conflicting fields', () => {
    expect(sourceOf('{uri: "https://git.example/a.git#main:deploy"}').source).toMatchObject({
      repository: 'https://git.example/a.git',
      revision: 'main',
      directory: 'deploy',
    });
    const address = '"https://git.example/a.git#main:deploy"';
    const { findings } = deploymentOf(
      `{kind: git, git: {repository: ${address}, ref: other, directory: elsewhere}}`,
    );
    expect(findings.map(formatMessage)).toEqual([
      expect.stringContaining('git.repository: ref "main" differs from field ref'),
      expect.stringContaining('git.repository: directory "deploy" differs from field directory'),
    ]);
  });

  it('accepts only a full commit in ref as a pin', () => {
    const unpinned = (ref: string): number => {
      const { source } = sourceOf(`{kind: git, git: {repository: "https://git.example/a", ref: ${ref}}}`);
      return findUnpinned([placedAt('src', source as never)]).length;
    };
    expect([commit, 'main', commit.slice(0, 12)].map((ref) => unpinned(`"${ref}"`))).toEqual([0, 1, 1]);
  });
});
