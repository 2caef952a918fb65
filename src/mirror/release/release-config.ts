import type { TextPosition } from '../../core/diagnostic.js';
import { OpmateError } from '../../core/errors.js';
import { quoteGo } from '../../core/go-json-quote.js';
import { type RegistryReference, parseReference } from '../../core/reference.js';
import type { Field } from '../../document/field.js';
import type { ChannelRequest } from '../../release/select-releases.js';
import {
  openItem,
  readBounds,
  readNamed,
  type PlatformConfig,
  readPlatforms,
} from '../image-set/config-fields.js';

/** The releases of an image set: `mirror.platform`. */
export type ReleaseConfig = NonNullable<ReturnType<typeof readReleaseSection>>;

/** Architectures of published releases. */
export const releaseArchitectures = ['amd64', 'arm64', 'ppc64le', 's390x', 'multi'] as const;

/** Other names of architectures, as in tags of release images. */
const otherNames: Readonly<Record<string, string>> = { x86_64: 'amd64', aarch64: 'arm64' };

const keys = ['graph', 'channels', 'architectures', 'platforms', 'release', 'kubeVirtContainer'] as const;

/**
 * Reads the section; undefined if it asks for no release and no graph image. Reports errors to the document's
 * diagnostics. (Source: oc-mirror v2.)
 */
export function readReleaseSection(section: Field) {
  const fields = section.object(keys);
  if (fields === undefined || Object.keys(section.jsonObject() ?? {}).length === 0) return undefined;
  const items = fields.channels.optionalList();
  const channels = readNamed(items, 'channel', readChannel);
  const architectures = fields.architectures.optionalList().map(readArchitecture);
  const platforms = readPlatforms(fields.platforms);
  if (architectures.length > 0 && platforms.length > 0) {
    const hint = 'keep platforms: architectures is deprecated';
    fields.platforms.fail('platforms and architectures cannot be combined', {
      code: 'exclusive-fields',
      hint,
    });
  }
  const release = fields.release.optionalParsed(parseRelease);
  const graph = fields.graph.optionalBoolean();
  const kubeVirtContainer = fields.kubeVirtContainer.optionalBoolean();
  if (items.length === 0 && !fields.release.isSet && !graph) return undefined;
  return {
    channels,
    /** Architectures of releases; `multi` for multi-architecture releases. */
    architectures: getArchitectures(architectures, platforms),
    /** Platforms to copy of multi-architecture releases; empty for all. */
    platforms,
    /** Single release image, instead of channels. */
    release,
    /** Mirrors the graph image too. */
    graph,
    place: section.place,
    kubeVirtContainer,
  };
}

function getArchitectures(
  listed: readonly (string | undefined)[],
  platforms: readonly PlatformConfig[],
): string[] {
  if (platforms.length > 0) return ['multi'];
  const known = listed.filter((name) => name !== undefined);
  return known.length > 0 ? [...new Set(known)] : ['amd64'];
}

function readChannel(item: Field): (ChannelRequest & { place: TextPosition }) | undefined {
  const keys = ['name', 'type', 'minVersion', 'maxVersion', 'shortestPath', 'full'] as const;
  const fields = openItem(item, keys, 'name');
  if (fields === undefined) return undefined;
  const name = fields.name.matching((text) => /^[\w.-]{1,200}$/.test(text), 'the name of a channel');
  const channel = {
    type: fields.type.optionalChoice(['ocp', 'okd']) ?? 'ocp',
    ...readBounds(fields),
    shortestPath: fields.shortestPath.optionalBoolean(),
    full: fields.full.optionalBoolean(),
    place: item.place,
  };
  return name === undefined ? undefined : { name, ...channel };
}

function readArchitecture(field: Field): string | undefined {
  const text = field.text();
  if (text === undefined || (releaseArchitectures as readonly string[]).includes(text)) return text;
  const usual = otherNames[text];
  return field.fail(`unknown architecture ${quoteGo(text)}`, {
    hint: usual === undefined ? `use one of ${releaseArchitectures.join(', ')}` : `use ${quoteGo(usual)}`,
  });
}

function parseRelease(text: string): RegistryReference {
  const reference = parseReference(text);
  const isNamed = (reference.tag ?? reference.digest) !== undefined;
  if (reference.transport === 'docker' && isNamed) return reference;
  throw new OpmateError('INVALID', `${quoteGo(text)} is not an image in a registry with tag or digest`, {
    hint: 'use a reference such as quay.io/openshift-release-dev/ocp-release:4.18.1-x86_64',
  });
}
