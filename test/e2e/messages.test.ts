import { describe, expect, it } from 'vitest';
import { useSandbox } from '../support/command-line.js';

const sandbox = useSandbox();

describe('a refused connection', () => {
  it('is reported at once with --retry-timeout 0', async () => {
    const { code, stderr } = await sandbox.run(['render', '127.0.0.1:1/a/b:v1', '--retry-timeout', '0']);
    expect({ code, stderr }).toEqual({
      code: 1,
      stderr: 'error: render reference "127.0.0.1:1/a/b:v1": connection refused\n',
    });
  });
});

describe('a missing file or directory', () => {
  it.each([
    ['init', 'widget', '-d', 'none'],
    ['init', 'widget', '-i', 'none'],
    ['generate', 'dockerfile', 'none'],
    ['validate', 'none'],
    ['list', 'bundles', 'none'],
    ['template', 'render', 'none'],
    ['template', 'convert', 'basic', 'none'],
    ['catalog', 'doctor', 'none'],
    ['catalog', 'gate', 'none', '--gate', 'validate-fbc'],
    ['catalog', 'add-fragment', 'none', 'none', '--save', 'oci:x:v1'],
    ['catalog', 'rm-package', 'none', 'x', '--save', 'oci:x:v1'],
    ['oci', 'inspect', 'none'],
    ['catalog', 'filter', 'none', '-f', 'none', '--dry-run'],
    ['bundle', 'validate', 'none'],
    ['bundle', 'render', 'none', '--install-namespace', 'x', '--config', 'none'],
    ['bundle', 'deployment', 'render', '-f', 'none'],
    ['bundle', 'deployment', 'diff', '-f', 'none', '--against', 'none'],
    ['registry', 'serve', '-d', 'none'],
    ['archive', 'verify', 'none'],
    ['mirror', '-c', 'none', 'file://x'],
    ['mirror', 'diff', 'none', 'none'],
    ['mirror', 'capture', 'none'],
    ['verify', '--policy', 'none', 'registry.example.com/demo/x:v1'],
    ['verify', '--key', 'none', 'registry.example.com/demo/x:v1'],
    ['serve', '--catalogs', 'none'],
    ['serve', 'none'],
  ])('is reported alike by %s %s', async (...args) => {
    const { code, stderr } = await sandbox.run(args);
    expect({ code, line: stderr.split('\n')[0] }).toEqual({
      code: 1,
      line: 'error: none: no such file or directory',
    });
  });
});

describe('a gate', () => {
  it('names the flags for an OpenShift version and a released index', async () => {
    await sandbox.write({ 'fragment/a/a.json': '{"schema":"olm.package","name":"a"}' });
    const { stdout } = await sandbox.run(['catalog', 'gate', 'fragment']);
    expect(stdout).toContain(
      'warning: metadata of bundles is not checked: no OpenShift version\n    hint: set --openshift\n',
    );
    const image = 'registry.redhat.io/openshift4/ose-operator-registry-rhel9:latest';
    const tagged = await sandbox.run(['catalog', 'gate', 'fragment', '--base-image', image]);
    expect(tagged.stdout).toContain('the OpenShift version is not a number\n    hint: set --openshift\n');
    const { code, stderr } = await sandbox.run(['catalog', 'gate', 'fragment', '--gate', 'breaking']);
    expect({ code, stderr }).toEqual({
      code: 2,
      stderr:
        'error: gate breaking: the released index is missing\nhint: set --against to the released index\n',
    });
  });
});

describe('a document', () => {
  it('has one finding for a field of the wrong type', async () => {
    const filter = 'kind: CatalogFilter\npackages:\n- name: a\n  channels: x\n';
    await sandbox.write({ 'filter.yaml': filter, 'cat/a.json': '{"schema":"olm.package","name":"a"}' });
    const { stderr } = await sandbox.run(['catalog', 'filter', 'cat', '-f', 'filter.yaml', '--dry-run']);
    expect(stderr).toBe('error: filter.yaml:4:3: packages[0].channels: expected a list, got a string\n');
  });

  it('without a deployment is reported with the next step', async () => {
    await sandbox.write({ 'empty.yaml': '' });
    const { code, stderr } = await sandbox.run(['bundle', 'deployment', 'render', '-f', 'empty.yaml']);
    expect({ code, stderr }).toEqual({
      code: 3,
      stderr:
        'error: empty.yaml: no deployment\n  hint: add a ClusterExtension, Subscription or BundleDeployment\n',
    });
  });
});
