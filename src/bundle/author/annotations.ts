import { OpmateError } from '../../core/errors.js';
import { quoteGo } from '../../document/go-json.js';
import { encodeYamlDocument } from '../../document/yaml/present.js';
import { type MediaType, bundleKeys } from '../../model/bundle-keys.js';

/** Values of the annotations of a bundle, which are also the labels of its image. */
export interface AnnotationValues {
  mediaType: MediaType;
  packageName: string;
  /** Separated by commas. */
  channels: string;
  /** Empty if missing. */
  defaultChannel: string;
}

/** Annotation with the directory of the tests of a bundle. (Source: scorecard of operator-sdk.) */
export const testConfigKey = 'operators.operatorframework.io.test.config.v1';

/** Returns the annotations in the order of the Dockerfile, without an empty default channel. */
export function toAnnotations(facts: AnnotationValues): [key: string, value: string][] {
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

/** Returns the text of `annotations.yaml`, with the bytes of `opm alpha bundle generate`. */
export function annotationsFile(facts: AnnotationValues): string {
  return encodeYamlDocument({ annotations: Object.fromEntries(toAnnotations(facts)) });
}

/**
 * Returns the text of `bundle.Dockerfile`, with the bytes of `opm alpha bundle generate`, which quotes nothing; the
 * directories are relative to it, with slashes. Throws OpmateError INVALID for values with line breaks, which could add instructions.
 */
export function bundleDockerfile(
  facts: AnnotationValues,
  { baseImage, manifests, metadata }: { baseImage: string; manifests: string; metadata: string },
): string {
  const labels = toAnnotations(facts);
  for (const [subject, value] of [
    ['base image', baseImage],
    ['path', manifests],
    ['path', metadata],
    ...labels,
  ] as const) {
    if (!/[\n\r]/.test(value)) continue;
    throw new OpmateError('INVALID', `unexpected line break in ${quoteGo(value)}`, {
      subject,
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

/** Reports whether readers of Dockerfiles read an unquoted value unchanged. */
export function isPlainLabel(value: string): boolean {
  return !/[\s"'\\$]/.test(value);
}
