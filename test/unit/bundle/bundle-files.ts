import type { BundleFile, BundleFiles } from '../../../src/bundle/read.js';

/** A bundle made of texts: `manifests` and `metadata` map file names to content. */
export function bundleOf(
  manifests: Record<string, string>,
  metadata: Record<string, string> = {},
): BundleFiles {
  const files = (texts: Record<string, string>): BundleFile[] =>
    Object.keys(texts)
      .sort()
      .map((name) => ({ name, content: Buffer.from(texts[name] ?? '') }));
  return { manifests: files(manifests), metadata: files(metadata) };
}

export const annotations = `annotations:
  operators.operatorframework.io.bundle.package.v1: foo
  operators.operatorframework.io.bundle.channels.v1: beta,stable
  operators.operatorframework.io.bundle.channel.default.v1: stable
`;

/** A ClusterServiceVersion whose spec goes on with `spec` (indented by two) and metadata with `metadata`. */
export function csv(spec = '', metadata = ''): string {
  return `apiVersion: operators.coreos.com/v1alpha1
kind: ClusterServiceVersion
metadata:
  name: foo.v1.2.3
${metadata}spec:
  version: 1.2.3
${spec}`;
}

export const crd = `apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata:
  name: foos.example.com
spec:
  group: example.com
  names: {kind: Foo, plural: foos}
  versions:
  - name: v1
  - name: v1alpha1
`;
