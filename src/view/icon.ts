import type { PackageBlob } from '../model/declarative-config.js';

/** Kinds of images that are sent; browsers show them without running anything. */
const iconTypes: readonly string[] = ['image/png', 'image/jpeg', 'image/gif', 'image/svg+xml'];
/** Bytes of an icon. */
const maxIconBytes = 2 * 1024 * 1024;

/** The icon of a package. */
export interface Icon {
  mediaType: string;
  content: Buffer;
}

/** The icon of a package; undefined where it has none, or one of a kind or size that is not shown. */
export function readIcon({ icon }: PackageBlob): Icon | undefined {
  const data = icon?.base64data ?? '';
  const mediaType = icon?.mediatype.toLowerCase() ?? '';
  if (data === '' || !iconTypes.includes(mediaType) || data.length > (maxIconBytes / 3) * 4) return undefined;
  return { mediaType, content: Buffer.from(data, 'base64') };
}
