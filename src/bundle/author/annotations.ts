import { OpmateError } from '../../core/errors.js';
import { quoteGo } from '../../document/go-json.js';
import { encodeYaml } from '../../document/yaml.js';
import { type MediaType, bundleKeys } from '../../model/bundle-keys.js';

/** What the annotations of a bundle say; also the labels of its image. */
export interface BundleFacts {
  mediaType: MediaType;
  packageName: string;
  /** Separated by commas. */
  channels: string;
  /** Empty if missing. */
  defaultChannel: string;
}

/** The annotation by which the tests of a bundle are found. (Source: operator-sdk's scorecard.) */
export const testConfigKey = 'operators.operatorframework.io.test.config.v1';

/** The annotations in the order of the Dockerfile; that of a default channel only where there is one. */
export function toAnnotations(facts: BundleFacts): [key: string, value: string][] {
  return [
    [bundleKeys.mediaType, facts.mediaType],
    [bundleKeys.manifests, 'manifests/'],
    [bundleKeys.metadata, 'metadata/'],
    [bundleKeys.package, facts.packageName],
    [bundleKeys.channels, facts.channels],
    ...(facts.defaultChannel === ''
      ? []
      : ([[bundleKeys.defaultChannel, facts.defaultChannel]] as [string, string][])),
  ];
}

/** The text of `annotations.yaml`, with the bytes of `opm alpha bundle generate`. */
export function annotationsFile(facts: BundleFacts): string {
  return encodeYaml({ annotations: Object.fromEntries(toAnnotations(facts)) }, { foldsLines: false });
}

interface DockerfilePlaces {
  /** The image that is built on. */
  baseImage: string;
  /** Directories of manifests and metadata, relative to the Dockerfile, with slashes. */
  manifests: string;
  metadata: string;
}

/**
 * The text of `bundle.Dockerfile`, with the bytes of `opm alpha bundle generate`: nothing is quoted. Throws
 * OpmateError INVALID for what would end its line and be read as an instruction of its own.
 */
export function bundleDockerfile(
  facts: BundleFacts,
  { baseImage, manifests, metadata }: DockerfilePlaces,
): string {
  const labels = toAnnotations(facts);
  for (const [what, value] of [
    ['the base image', baseImage],
    ['the path', manifests],
    ['the path', metadata],
    ...labels.map(([key, value]) => [`${key}:`, value] as const),
  ] as const) {
    if (!/[\n\r]/.test(value)) continue;
    throw new OpmateError('INVALID', `${what} ${quoteGo(value)}: a line break cannot stand in a Dockerfile`, {
      hint: 'use a single-line value',
    });
  }
  const lines = [
    `FROM ${baseImage}`,
    '',
    ...labels.map(([key, value]) => `LABEL ${key}=${value}`),
    ...(facts.defaultChannel === '' ? [] : ['']),
    `COPY ${manifests} /manifests/`,
    `COPY ${metadata} /metadata/`,
  ];
  return `${lines.join('\n')}\n`;
}

/** Whether a program that reads a Dockerfile takes an unquoted value as it is written. */
export function isPlainLabel(value: string): boolean {
  return !/[\s"'\\$]/.test(value);
}
