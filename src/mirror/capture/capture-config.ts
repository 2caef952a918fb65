import { printableLine, count } from '../../core/printable.js';
import { encodeYamlDocument } from '../../document/yaml/present.js';
import { readImageSetConfiguration } from '../image-set/image-set-config.js';
import type { ClusterCapture } from './capture-cluster.js';
import type { CapturedCatalog, CapturedPackage } from './catalog-capture.js';

/**
 * Encodes a capture as an `ImageSetConfiguration`, with reasons as comments; equal captures have equal bytes. Throws
 * DiagnosticsError for an invalid result.
 */
export function encodeCapture({ catalogs, subscriptions, extensions }: ClusterCapture): string {
  const from = [count(subscriptions, 'Subscription'), count(extensions, 'ClusterExtension')];
  const lines = [
    `# Written by opmate from ${from.join(' and ')}: what keeps this cluster installable and upgradable.`,
    'kind: ImageSetConfiguration',
    'apiVersion: mirror.openshift.io/v2alpha1',
    'mirror:',
    '  operators:',
    ...catalogs.flatMap(toCatalogLines),
  ];
  const text = lines.map((line) => `${line}\n`).join('');
  readImageSetConfiguration(text, 'the captured configuration');
  return text;
}

function toCatalogLines({ image, reasons, targetCatalog, packages }: CapturedCatalog): string[] {
  return [
    ...comments('  ', reasons),
    `  - ${pair('catalog', image)}`,
    ...(targetCatalog === undefined
      ? []
      : ['    # Another catalog has the same path and tag.', `    ${pair('targetCatalog', targetCatalog)}`]),
    '    packages:',
    ...packages.flatMap(toPackageLines),
  ];
}

function toPackageLines({ name, reasons, defaultChannel, channels, minVersion }: CapturedPackage): string[] {
  return [
    ...comments('    ', reasons),
    `    - ${pair('name', name)}`,
    ...(minVersion === undefined ? [] : [`      ${pair('minVersion', minVersion)}`]),
    ...(defaultChannel === undefined ? [] : [`      ${pair('defaultChannel', defaultChannel)}`]),
    ...(channels === undefined ? [] : ['      channels:']),
    ...(channels ?? []).flatMap((channel) => [
      `      - ${pair('name', channel.name)}`,
      ...(channel.minVersion === undefined ? [] : [`        ${pair('minVersion', channel.minVersion)}`]),
    ]),
  ];
}

function comments(indent: string, texts: readonly string[]): string[] {
  return texts.map((text) => `${indent}# ${printableLine(text)}`);
}

function pair(key: string, value: string): string {
  return encodeYamlDocument({ [key]: value }).trimEnd();
}
