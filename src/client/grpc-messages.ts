import {
  type BundleMessage,
  type PackageMessage,
  bundleType,
  channelEntryType,
  packageNameType,
  packageType,
} from '../catalog/content/messages.js';
import type { CatalogEntry, CatalogPackage } from './catalog-queries.js';

/** `api.Bundle`: a bundle in a channel. Missing texts and lists are empty. */
export interface RegistryBundle extends Omit<BundleMessage, 'deprecation'> {
  /** Deprecation message of the bundle. */
  deprecation?: string;
}

/** `api.ChannelEntry` */
export type RegistryEntry = Pick<CatalogEntry, 'package' | 'channel' | 'name' | 'replaces'>;

export function decodePackageName(bytes: Buffer): string {
  return packageNameType.decode(bytes).name;
}

export function decodePackageMessage(bytes: Buffer): CatalogPackage {
  const { name, defaultChannelName, channels, deprecation } = packageType.decode(bytes);
  return {
    name,
    defaultChannel: defaultChannelName,
    channels: channels.map((channel) => ({
      name: channel.name,
      head: channel.csvName,
      ...toText(channel.deprecation),
    })),
    ...toText(deprecation),
  };
}

export function decodeBundleMessage(bytes: Buffer): RegistryBundle {
  const { deprecation, ...bundle } = bundleType.decode(bytes);
  return { ...bundle, ...toText(deprecation) };
}

export function decodeEntryMessage(bytes: Buffer): RegistryEntry {
  const { packageName, channelName, bundleName, replaces } = channelEntryType.decode(bytes);
  return { package: packageName, channel: channelName, name: bundleName, replaces };
}

function toText(deprecation: PackageMessage['deprecation']): { deprecation?: string } {
  return deprecation === undefined ? {} : { deprecation: deprecation.message };
}
